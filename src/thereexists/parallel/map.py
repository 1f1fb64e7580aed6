"""One parallel map over blocks of cells: the same results, in the same order, for any number of workers and any pool.

A *task* cuts its work into blocks that depend on the work alone; what a block gives never depends on which process
computes it, or beside which others (one thread each: the order of a floating sum is then fixed). Blocks are scheduled
in *chunks* of several seconds, whose size follows from the measured cost of the first block. Chunks go through the
job's folder, and the results are handed on in the order of the blocks: how they were cut and who did them is forgotten.
"""

from __future__ import annotations

import functools
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from thereexists.core.errors import Obstructed
from thereexists.parallel.job import JobFolder, put
from thereexists.parallel.pools import (
    HERE,
    Progress,
    Workers,
    WorkersLost,
    check_workers,
    end_processes,
    run_chunks,
    starting,
)
from thereexists.parallel.ranges import Range, cut, missing

CHUNK_SECONDS = 5.0
LONGEST_CHUNK = 600.0
MOST_CHUNKS = 10_000
MANY_BLOCKS = 8  # from here on processes are started while the first block is timed
WORTH_STARTING = 10.0  # seconds of work below which starting processes, which import everything, does not pay
_ATTEMPTS = 4  # rounds in a row that may end in a dead worker without one more finished chunk
_POLL = 1.0

Block = Callable[[int], Any]


@runtime_checkable
class Task(Protocol):
    """What ``parallel_map`` maps: work that is cut into blocks of cells.

        class Squares:
            key, cells, block = "squares of 0 to 9", 10, 4

            def open(self):
                return lambda number: [i * i for i in range(4 * number, min(4 * number + 4, 10))]

        isinstance(Squares(), te.parallel.Task)  # True

    The object travels to the workers, so keep it small. A block must give the same result in any process.
    """

    @property
    def key(self) -> str:
        """A digest of all that the results depend on."""
        ...

    @property
    def cells(self) -> int:
        """How many there are."""
        ...

    @property
    def block(self) -> int:
        """Cells of a block; the last one may have fewer."""
        ...

    def open(self) -> Block:
        """Load what every block needs, and return the function from a block's number to its result (JSON data)."""
        ...


def parallel_map(
    task: Task,
    workers: Workers = HERE,
    folder: Path | None = None,
    open_here: Callable[[], Block] | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> list[Any]:
    """The results of all blocks, in order: the same for any number of workers and any pool.

        class Squares:
            key, cells, block = "squares of 0 to 9", 10, 4

            def open(self):
                return lambda number: [i * i for i in range(4 * number, min(4 * number + 4, 10))]

        te.parallel.parallel_map(Squares())  # [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]

    Args:
        task: the work.
        workers: how many processes run it, and where.
        folder: keeps finished chunks until the caller removes it: an interrupted job resumes from there.
        open_here: what this process calls in place of ``task.open``, where it has the files' content already.
        progress: called as ``progress(done, total)`` with cells; ``workers.report`` gets more.

    Returns:
        One result for each block.

    Raises:
        Obstructed: a cluster was asked for without a folder, or the workers die again and again.
    """
    check_workers(workers)
    total = -(-task.cells // task.block)
    if workers.address is not None and folder is None:
        raise Obstructed(
            "The machines of a cluster exchange their work through a folder that all can reach: name it with --job."
        )
    with _folder(folder) as path, one_thread():
        job = JobFolder(path, task.key, total)
        watch = _Watch(job, task, workers, progress)
        block: Block | None = None
        if job.chunk is None:  # nothing is known of this job yet: do one block and time it
            with starting(workers, functools.partial(_get_ready, task)) if total >= MANY_BLOCKS else nullcontext():
                block = (open_here or task.open)()
                began = time.perf_counter()
                _finish(path, task.key, Range(0, 1), block, job.secret)
                watch.seconds_per_block = time.perf_counter() - began
            job.settle(chunk_size(total, watch.seconds_per_block, workers.processes))
            watch.tell(Range(0, 1))
        else:
            watch.tell()
        size = job.chunk or 1
        failures = 0
        while todo := cut(missing(job.finished(), total), size, total):
            left = sum(map(len, todo)) * watch.seconds_per_block
            if workers.alone or (workers.pool == "loky" and left < WORTH_STARTING):
                end_processes()
                block = block or (open_here or task.open)()
                for part in todo:
                    _finish(path, task.key, part, block, job.secret)
                    watch.tell(part)
                continue
            done = len(job.finished())
            try:
                with watch:
                    run_chunks(functools.partial(_chunk, task, path, job.secret), todo, workers)
            except WorkersLost as lost:
                failures = failures + 1 if len(job.finished()) == done else 0
                if failures >= _ATTEMPTS:
                    raise Obstructed(
                        f"Workers die again and again ({lost}); {len(todo)} chunks are missing, the first of them the "
                        f"blocks {todo[0].first} to {todo[0].stop}. Is there enough memory for this many workers?"
                    ) from lost
        return job.results()


def chunk_size(total: int, seconds_per_block: float, workers: int) -> int:
    """Blocks of a chunk: some seconds of work, at most 10,000 chunks until one takes ten minutes, enough for all."""
    seconds = min(max(CHUNK_SECONDS, total * seconds_per_block / MOST_CHUNKS), LONGEST_CHUNK)
    return max(1, min(int(seconds / max(seconds_per_block, 1e-9)), -(-total // (4 * workers))))


def _chunk(task: Task, folder: Path, secret: bytes, part: Range) -> None:
    """What a worker does; the task is opened once in a process."""
    with one_thread():
        _finish(folder, task.key, part, _opened(task), secret)


def _get_ready(task: Task, number: int) -> None:
    """What a worker may do before there is work for it."""
    with one_thread():
        _opened(task)


_OPEN: dict[str, Block] = {}


def _opened(task: Task) -> Block:
    if task.key not in _OPEN:
        _OPEN.clear()  # one job at a time: the last one's weights are not needed any more
        _OPEN[task.key] = task.open()
    return _OPEN[task.key]


def _finish(folder: Path, key: str, part: Range, block: Block, secret: bytes) -> None:
    put(folder, key, part, [block(number) for number in range(part.first, part.stop)], secret)


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one thread: more of them may sum in another order, and the cores are taken by workers.

        with te.parallel.one_thread():
            np.ones((4, 4)) @ np.ones((4, 4))

    Returns:
        A context.
    """
    from threadpoolctl import threadpool_limits

    from thereexists.core.threads import torch_threads

    with torch_threads(1), threadpool_limits(1):
        yield


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield Path(os.path.realpath(given))  # a worker may stand in another folder
        return
    with tempfile.TemporaryDirectory(prefix="thereexists-job-") as made:
        yield Path(made) / "job"


class _Watch:
    """Reports how far the job is; while a pool runs, a thread looks into the job's folder once a second."""

    def __init__(self, job: JobFolder, task: Task, workers: Workers, progress: Callable[[int, int], object]):
        self.job, self.task, self.workers, self.progress = job, task, workers, progress
        self.seconds_per_block = float("inf")  # not measured: a job that is resumed is worth its workers
        self.chunks, self.blocks = job.count()
        self.began, self.before = time.monotonic(), self._cells()
        self.stop = threading.Event()

    def __enter__(self) -> None:
        self.stop.clear()
        self.thread = threading.Thread(target=self._poll, daemon=True)
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()
        self.chunks, self.blocks = self.job.count()
        self.tell()

    def tell(self, finished: Range | None = None) -> None:
        if finished is not None:
            self.chunks, self.blocks = self.chunks + 1, self.blocks + len(finished)
        self.progress(self._cells(), self.task.cells)
        if self.workers.report is not None:
            chunks = 1 + -(-(self.job.total - 1) // (self.job.chunk or 1))
            seconds = time.monotonic() - self.began
            self.workers.report(Progress(self.chunks, chunks, self._cells(), self.task.cells, seconds, self.before))

    def _cells(self) -> int:
        return min(self.blocks * self.task.block, self.task.cells)

    def _poll(self) -> None:
        while not self.stop.wait(_POLL):
            self.chunks, self.blocks = self.job.count()
            self.tell()
