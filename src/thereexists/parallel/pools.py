"""The pools that run chunks, all through joblib: processes of this machine (loky), or a Ray cluster.

No pool decides what a result is: a worker writes its finished chunk into the job's folder, and the folder is read
when the pool returns or fails. A worker that dies (killed, out of memory, its machine lost) is reported as
:class:`WorkersLost`; what it had not finished is simply still missing.

What listens where: loky talks through pipes. A Ray cluster that is started here binds to 127.0.0.1 and ends with the
job; one that is named by an address is only connected to.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput, Obstructed, ThereExistsError
from thereexists.core.plain_numbers import shown
from thereexists.core.safe_path import nothing_from_here
from thereexists.parallel.ranges import Range

POOLS = ("loky", "ray")
_OBJECT_STORE = 80 << 20  # Ray's shared memory; chunks go through files, so the smallest size it accepts is enough


class WorkersLost(ThereExistsError):
    """A worker process died before it had finished its chunk."""


@dataclass(frozen=True)
class Progress:
    """How far a whole job has come, whatever runs it; ``Workers(report=...)`` is called with one.

        te.parallel.Progress(
            chunks_done=1, chunks=4, cells_done=250, cells=1000, seconds=2.0, cells_before=0
        ).seconds_left  # 6.0

    Attributes:
        chunks_done: chunks that are finished.
        chunks: all of them.
        cells_done: cells that are finished.
        cells: all of them.
        seconds: since this run began.
        cells_before: cells that earlier runs had finished.
    """

    chunks_done: int
    chunks: int
    cells_done: int
    cells: int
    seconds: float
    cells_before: int

    @property
    def cells_per_second(self) -> float:
        return (self.cells_done - self.cells_before) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        rate = self.cells_per_second
        return (self.cells - self.cells_done) / rate if rate > 0 else None


@dataclass(frozen=True)
class Workers:
    """How a job is run, which never changes its result.

        te.certify(witness, workers=te.parallel.Workers(count=2))

    ``count`` processes (None: the cores there are, or what the cluster has); ``pool`` loky or ray; ``address`` of a
    running Ray cluster ("auto" finds the one on this machine), without which a local one is started.

    Args:
        count: of processes, None for the cores there are.
        pool: ``loky`` or ``ray``.
        address: of a running Ray cluster.
        report: called with a ``Progress`` now and then.
    """

    count: int | None = None
    pool: str = "loky"
    address: str | None = None
    report: Callable[[Progress], object] | None = None

    def __post_init__(self) -> None:
        if self.pool not in POOLS:
            raise Obstructed(f"'pool' must be one of {', '.join(POOLS)}; got {self.pool!r} instead.")
        if self.count is not None:
            good = isinstance(self.count, int | np.integer) and not isinstance(self.count, bool) and self.count >= 1
            if not good:
                raise Obstructed(f"'workers' must be an integer of at least 1; got {shown(self.count)} instead.")
            object.__setattr__(self, "count", int(self.count))
        if self.address is not None and self.pool == "loky":
            raise Obstructed("An address belongs to a cluster: say --pool ray, or leave --address out.")

    @property
    def processes(self) -> int:
        """How many chunks run at once; of a cluster that is not connected yet, at least that many."""
        if self.count is not None:
            return self.count
        from joblib import cpu_count

        return cpu_count()

    @property
    def alone(self) -> bool:
        """Whether everything happens in the process that asks."""
        return self.pool == "loky" and self.processes == 1


HERE = Workers(1)  # this very process


def check_workers(given: Any) -> None:
    """Refuse a bare number, which says how many and not where."""
    if not isinstance(given, Workers):
        raise InvalidInput(f"'workers' must be te.parallel.Workers(count=…); got {shown(given)} instead.")


def run_chunks(work: Callable[[Range], None], parts: list[Range], workers: Workers) -> None:
    """``work(part)`` for every part, in any order; raises what a work raises, and WorkersLost for a dead worker."""
    with _lost_workers(), warnings.catch_warnings(), _cluster(workers) as count:
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given to the executor")
        _map(work, parts, workers.pool, count)


_PATIENCE = 20.0  # seconds that processes get to start before a mistake is reported


@contextmanager
def starting(workers: Workers, prepare: Callable[[int], object]) -> Iterator[None]:
    """Local processes start and ``prepare`` while the caller does something; ``run_chunks`` then finds them ready.

    Nothing depends on it: where it fails, they start when they are given work.
    """
    if workers.alone or workers.pool != "loky":
        yield
        return

    import joblib.externals.loky  # here and now: two threads must not import it at once  # noqa: F401

    def start() -> None:
        with suppress(Exception):
            _map(prepare, range(workers.processes), workers.pool, workers.processes)

    thread = threading.Thread(target=start, daemon=True)
    thread.start()
    try:
        yield
        thread.join()
    except BaseException:
        # Not while the thread hands out work: loky waits for its manager, whose callback waits for the thread, which
        # waits for loky. A thread that takes its time is left alone; idle processes end by themselves.
        thread.join(_PATIENCE)
        if not thread.is_alive():
            end_processes()
        raise


def end_processes() -> None:
    """End the local processes, if there are any."""
    loky = sys.modules.get("joblib.externals.loky")
    if loky is not None:  # else none was ever started here
        loky.get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _map(work: Callable[[Any], object], arguments: Iterable[Any], pool: str, count: int) -> None:
    import joblib

    threads = {"inner_max_num_threads": 1} if pool == "loky" else {}
    with nothing_from_here(), joblib.parallel_config(backend=pool, n_jobs=count, **threads):
        joblib.Parallel(batch_size=1, pre_dispatch="2*n_jobs", max_nbytes=None)(  # pyright: ignore[reportArgumentType]
            joblib.delayed(work)(one) for one in arguments
        )


@contextmanager
def _lost_workers() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as error:  # loky's TerminatedWorkerError is one
        raise WorkersLost(str(error).splitlines()[0]) from error
    except Exception as error:
        module = type(error).__module__
        if module.startswith("ray") and "Actor" in type(error).__name__ + type(error.__cause__).__name__:
            raise WorkersLost(str(error).splitlines()[0]) from error
        raise


@contextmanager
def _cluster(workers: Workers) -> Iterator[int]:
    """The number of processes, after starting or finding what the pool needs; ends what was started here."""
    if workers.pool == "loky":
        try:
            yield workers.processes
        finally:
            end_processes()
        return
    ray = import_ray()
    from ray.util.joblib import register_ray

    register_ray()
    started = not ray.is_initialized()
    if started:
        start_ray(ray, workers)
    try:
        have = int(ray.cluster_resources().get("CPU", 1))
        yield max(2, have if workers.count is None else workers.count)  # joblib runs a single one in this process
    finally:
        if started:
            ray.shutdown()


def import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns of a change to come
    try:
        import ray
    except ImportError:
        raise Obstructed(
            "The pool ray needs the package ray: pip install 'thereexists[cluster]', or take --pool loky."
        ) from None
    return ray


def _our_path(ray: Any) -> Any:
    """Workers of Ray import what this process imports, from where it does, and nothing from where it stands.

    Ray puts the driver's current folder first on every worker's path, unless the job has a working folder of its own.
    What belongs to the installation every machine has for itself; the rest of this process's path is handed on.
    """

    class OurPath(ray.job_config.JobConfig):
        def _runtime_env_has_working_dir(self) -> bool:
            return True

    installed = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    ours = [os.path.abspath(place) for place in sys.path if not place.startswith(installed)]
    return OurPath(_py_driver_sys_path=ours[::-1])  # a worker puts each of them before the last


def start_ray(ray: Any, workers: Workers, **more: Any) -> None:
    """Connect to the cluster at the address, or start one that only this machine can reach."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "job_config": _our_path(ray)}
    if workers.address is not None:
        try:
            ray.init(address=workers.address, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            raise Obstructed(
                f"There is no Ray cluster at {workers.address!r} ({reason}); start one with `ray start --head`, or "
                "leave --address out for a local one."
            ) from error
        return
    # Ray replaces a loopback address by the machine's own, except where it forms no clusters: macOS, Windows, and here.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    ray._private.ray_constants.ENABLE_RAY_CLUSTER = False
    with nothing_from_here():
        ray.init(
            address="local",
            num_cpus=max(2, workers.processes),  # joblib runs a single one in this process
            include_dashboard=False,
            object_store_memory=_OBJECT_STORE,
            _node_ip_address="127.0.0.1",
            **quiet,
            **more,
        )
