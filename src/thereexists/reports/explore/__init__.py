"""``explore``: a local page on which one sequence goes through a witness, layer by layer.

viewer = open_viewer("w")       # what the page asks, from Python: viewer.run({"x": [[0.7], [0.1]]})
Server(viewer).serve_forever()  # the page itself: loopback only
"""

from thereexists.reports.explore.frames import Changes, Frame, changes
from thereexists.reports.explore.server import Server, explore
from thereexists.reports.explore.static import save_static
from thereexists.reports.explore.viewer import Viewer, open_viewer

__all__ = ["Changes", "Frame", "Server", "Viewer", "changes", "explore", "open_viewer", "save_static"]
