"""Past one process: one parallel map over blocks of cells, with joblib underneath. See docs/scale.md."""

from thereexists.parallel.map import Task, one_thread, parallel_map
from thereexists.parallel.pools import HERE, POOLS, Progress, Workers, check_workers

__all__ = ["HERE", "POOLS", "Progress", "Task", "Workers", "check_workers", "one_thread", "parallel_map"]
