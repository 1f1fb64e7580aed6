"""The runs of an experiment over the machines of a Ray cluster: one run a GPU (or several), a lost one is begun again.

Records and checkpoints lie in one folder that all machines see, so a run whose machine is lost goes on from its last
checkpoint wherever it is started again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from thereexists.parallel.pools import Workers, import_ray, start_ray

if TYPE_CHECKING:
    from thereexists.experiments.grid import Run
    from thereexists.experiments.runner import How

_RETRIES = 3  # of a run whose worker or machine was lost


def run_on_ray(
    todo: list[Run],
    how: How,
    attempt: Callable[[Run, How], Any],
    finished: Callable[..., None],
    time_is_up: Callable[[], bool],
) -> list[str]:
    """``how.parallel`` runs on every GPU of the cluster (or CPU); returns the names of those that were not started."""
    ray = import_ray()
    started = not ray.is_initialized()
    if started:
        start_ray(ray, Workers(None if how.address else how.parallel, "ray", how.address))
    try:
        have = ray.cluster_resources()
        gpus = int(have.get("GPU", 0)) if how.device != "cpu" else 0
        slots = gpus * how.parallel or max(1, int(have.get("CPU", 1)))
        share = {"num_cpus": 1, "num_gpus": 1 / how.parallel if gpus else 0}
        remote = ray.remote(max_retries=_RETRIES, **share)(attempt)
        queue, busy = list(todo), {}
        while busy or (queue and not time_is_up()):
            while queue and len(busy) < slots and not time_is_up():
                run = queue.pop(0)
                busy[remote.remote(run, how)] = run
            done, _ = ray.wait(list(busy), num_returns=1)
            run = busy.pop(done[0])
            try:
                finished(run, *ray.get(done[0]))
            except ray.exceptions.RayError as error:
                finished(run, None, f"its worker was lost {_RETRIES + 1} times: {str(error).splitlines()[0]}")
        return [run.key for run in queue]
    finally:
        if started:
            ray.shutdown()
