"""``explore``: a local page on which one sequence goes through a witness, layer by layer.

te.report.explore.open_session("w")     # what the page asks, from Python
te.report.explore.Server(session)       # the page: loopback only
"""

from thereexists.report.explore.frames import Changes, Frame, changes
from thereexists.report.explore.server import Server
from thereexists.report.explore.session import Session, open_session

__all__ = ["Changes", "Frame", "Server", "Session", "changes", "open_session"]
