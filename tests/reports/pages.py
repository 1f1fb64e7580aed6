"""What tests of pages share: text that must stay text, a judge of whole pages, a server."""

import re
import threading
from contextlib import contextmanager
from html.parser import HTMLParser

EVIL = "</title><script>window.pwned = 1</script><img src=x onerror=window.pwned=2>\" onload='window.pwned=3' &amp; "


@contextmanager
def serving(folder):
    """The page of a witness on a server of its own."""
    from thereexists.reports.explore import Server, open_viewer

    with Server(open_viewer(folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


VOID = {"meta", "link", "input", "br"}
OUTSIDE = re.compile(r"(?:https?:)?//|\bsrc\s*=|url\((?!#)|@import|<script|<iframe|<object|\son\w+\s*=", re.I)


class Balance(HTMLParser):
    """Fails on a tag that is closed wrongly; ``open`` must be empty at the end."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open[-1:] == [tag], f"</{tag}> closes nothing"
        self.open.pop()


def balanced(document):
    parser = Balance()
    parser.feed(document)
    parser.close()
    return parser.open == []
