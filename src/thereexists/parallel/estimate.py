"""What a job will cost, before it is run: one block is computed and timed, the rest is arithmetic."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from thereexists.parallel.map import Block, Task, chunk_size, one_thread
from thereexists.parallel.pools import Workers


@dataclass(frozen=True)
class Estimate:
    """``worker_bytes`` is the peak of the process that measured, its libraries included: what a worker will need."""

    cells: int
    blocks: int
    chunks: int
    chunk_cells: int
    seconds_per_cell: float
    worker_bytes: int
    workers: int
    core_hours: float
    hours: float

    def record(self) -> dict[str, Any]:
        return asdict(self)


def estimate(task: Task, workers: Workers, open_here: Callable[[], Block] | None = None) -> Estimate:
    """Open the task, compute the block in the middle, and extrapolate."""
    total = -(-task.cells // task.block)
    with one_thread():
        block = (open_here or task.open)()
        middle = (total - 1) // 2
        began = time.process_time()  # whoever else uses the machine now is not charged to the job
        block(middle)
        seconds = time.process_time() - began
    measured = min(task.block, task.cells - middle * task.block)
    size = chunk_size(total, seconds, workers.processes)
    per_cell = seconds / measured
    core_hours = per_cell * task.cells / 3600
    return Estimate(
        cells=task.cells,
        blocks=total,
        chunks=1 + -(-(total - 1) // size),
        chunk_cells=min(size * task.block, task.cells),
        seconds_per_cell=per_cell,
        worker_bytes=peak_bytes(),
        workers=workers.processes,
        core_hours=core_hours,
        hours=core_hours / min(workers.processes, total),
    )


def peak_bytes() -> int:
    """The most memory this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
