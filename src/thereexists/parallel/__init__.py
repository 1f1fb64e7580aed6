"""Past one process: one parallel map over blocks of cells, with joblib underneath. See docs/scale.md."""

from thereexists.parallel.engines import ENGINES, HERE, Progress, Workers, WorkersLost
from thereexists.parallel.map import Task, one_thread, parallel_map

__all__ = ["ENGINES", "HERE", "Progress", "Task", "Workers", "WorkersLost", "one_thread", "parallel_map"]
