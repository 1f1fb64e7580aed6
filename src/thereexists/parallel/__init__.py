"""Past one process: one parallel map over blocks of cells, with joblib underneath. See docs/scale.md."""

from thereexists.parallel.map import Task, one_thread, parallel_map
from thereexists.parallel.pools import HERE, POOLS, Progress, Workers

__all__ = ["HERE", "POOLS", "Progress", "Task", "Workers", "one_thread", "parallel_map"]
