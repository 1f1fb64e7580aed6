"""The server behind ``explore``: loopback only, one page, three questions, nothing from outside.

- It binds to 127.0.0.1. Every address of it begins with a random token of its own run, so another page of the same
  browser cannot guess one; a request whose Host is not this server is refused (a name that somebody else's DNS points
  at 127.0.0.1 has another Host), and so is one whose Origin is another site.
- A question is a POST of at most ``MOST_BYTES`` bytes of JSON; a slow or endless sender is cut off after
  ``PATIENCE`` seconds. Answers are computed one at a time.
- The page's policy allows this server's own script and style, requests to this server, and nothing else. The witness's
  texts arrive as JSON and are written with ``textContent``.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
import time
import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.core.named_folder import folder_named
from thereexists.core.neutral import neutral
from thereexists.functions.target import Target
from thereexists.reports.explore.assets import document, read, script
from thereexists.reports.explore.static import save_static
from thereexists.reports.explore.viewer import Viewer, open_viewer, plain

MOST_BYTES = 1 << 16
PATIENCE = 10.0
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PAGES = {
    "": (document, "text/html; charset=utf-8"),
    "explore.js": (script, "text/javascript; charset=utf-8"),
    "explore.css": (lambda: read("explore/page/explore.css"), "text/css; charset=utf-8"),
    "page.css": (lambda: read("page.css"), "text/css; charset=utf-8"),
}
QUESTIONS = ("run", "attention", "map")


class Server(ThreadingHTTPServer):
    """``Server(viewer).serve_forever()``; ``server.url`` is where the page is."""

    daemon_threads = True
    request_queue_size = 16

    def __init__(self, viewer: Viewer, port: int = 0):
        self.viewer = viewer
        self.token = secrets.token_urlsafe(18)
        self.turn = threading.Lock()
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or "it must be from 0 to 65535"
            raise InvalidInput(f"Port {port} cannot be used: {why}. Leave out --port to get a free one.") from error

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def about(self) -> dict[str, Any]:
        with self.turn, neutral():
            return plain(self.viewer.about())

    def answer(self, question: str, asked: dict[str, Any]) -> dict[str, Any]:
        begun = time.perf_counter()
        with self.turn, neutral():
            found = getattr(self.viewer, question)(asked)
        return plain(found) | {"milliseconds": round(1000 * (time.perf_counter() - begun), 2)}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is no event."""


class _Handler(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version, sys_version = "thereexists", ""
    timeout = PATIENCE

    def setup(self) -> None:
        super().setup()
        self.late = threading.Timer(PATIENCE, self._cut_off)  # of the whole request; ``timeout`` is of each piece
        self.late.daemon = True
        self.late.start()

    def finish(self) -> None:
        self.late.cancel()
        super().finish()

    def _cut_off(self) -> None:
        """Nothing more is read; an answer that is under way is sent."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RD)

    def do_GET(self) -> None:
        place = self._place()
        if place in PAGES:
            made, kind = PAGES[place]
            self._send(200, made().encode(), kind)
        elif place == "api/witness":
            self._json(200, self.server.about())
        elif place is not None:
            self._json(404, {"error": "There is nothing here."})

    def do_POST(self) -> None:
        place = self._place()
        if place is None:
            return
        if place.removeprefix("api/") not in QUESTIONS or not place.startswith("api/"):
            self._json(404, {"error": "There is nothing here."})
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 18 or int(length) > MOST_BYTES:
            self._json(413, {"error": f"A request must state its length, at most {MOST_BYTES:,} bytes."})
            return
        if self.headers.get_content_type() != "application/json":
            self._json(415, {"error": "A request must be application/json."})
            return
        try:
            asked = json.loads(self.rfile.read(int(length)))
            if not isinstance(asked, dict):
                raise InvalidInput("A request must be a JSON object.")
            self._json(200, self.server.answer(place.removeprefix("api/"), asked))
        except ThereExistsError as error:
            self._json(400, {"error": str(error)[:1000]})
        except (ValueError, RecursionError):
            self._json(400, {"error": "A request must be a JSON object of numbers."})
        except Exception as error:  # a forged witness must not end the page; the reason is sent, and the server goes on
            self._json(500, {"error": f"This witness cannot be run: {type(error).__name__}."})

    def _place(self) -> str | None:
        """What is asked for below the token; None, and an answer, for those who must not ask."""
        ours = {f"127.0.0.1:{self.server.port}", f"localhost:{self.server.port}"}
        origin = self.headers.get("Origin")
        if self.headers.get("Host") not in ours or origin not in (None, *(f"http://{host}" for host in ours)):
            self._json(403, {"error": "This server answers only its own page."})
            return None
        first, slash, rest = self.path.split("?", 1)[0].removeprefix("/").partition("/")
        if not slash or not secrets.compare_digest(first.encode(), self.server.token.encode()):
            self._json(404, {"error": "Open the address that thereexists explore printed, token included."})
            return None
        return rest

    def _json(self, status: int, content: Any) -> None:
        self._send(status, json.dumps(content, allow_nan=False).encode(), "application/json; charset=utf-8")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **HEADERS}.items():
            self.send_header(name, value)
        if status >= 400:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal is for the user."""


def explore(
    witness: Any, target: Target | None = None, port: int = 0, browser: bool = True, out: str | Path | None = None
) -> None:
    """Watch inputs go through a witness: a page on this machine only, until Ctrl-C, or a page in a file.

    Args:
        witness: the witness, or its folder.
        target: the function, for a witness of your own: its code is not stored.
        port: where to listen on 127.0.0.1; 0: a free port.
        browser: open the page in the browser.
        out: write the page to this .html file, with the answers to many inputs, instead of serving it.

    Raises:
        InvalidInput: the port is taken, or the target does not fit.
        CannotBuild: the network is too large to be shown.

    Example:
        te.explore("w", out="page.html")
    """
    file = None if out is None else folder_named(out)
    viewer = open_viewer(witness, target)
    if file is not None:
        save_static(viewer, file)
        return
    with Server(viewer, port) as server:
        print(f"{server.url}\nOnly this machine can open it. Ctrl-C stops it.", flush=True)
        if browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print("\nStopped.")
