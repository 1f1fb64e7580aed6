"""How long explore takes to answer: one JSON line, times in milliseconds, of requests over HTTP on this machine.

python benchmarks/explore.py
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from http.client import HTTPConnection
from pathlib import Path

import numpy as np

import thereexists as te
from thereexists.reports.explore import Server, open_viewer

INPUTS = 100


def main() -> None:
    witness = te.build(te.targets.builtin("sort", n=4), delta=1 / 8)
    with tempfile.TemporaryDirectory() as folder:
        witness.save(Path(folder) / "w")
        viewer = open_viewer(Path(folder) / "w")
    rng = np.random.default_rng(0)
    with Server(viewer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        answered, computed, frames = [], [], []
        for x in rng.random((INPUTS, 4, 1)):
            begun = time.perf_counter()
            connection = HTTPConnection("127.0.0.1", server.port)
            body, kind = json.dumps({"x": x.tolist()}), {"Content-Type": "application/json"}
            connection.request("POST", f"/{server.token}/api/run", body, kind)
            answer = json.loads(connection.getresponse().read())
            answered.append(1000 * (time.perf_counter() - begun))
            computed.append(answer["milliseconds"])
            frames.append(len(answer["frames"]) - 1)
        server.shutdown()
    figures = {
        "layers": witness.network.depth,
        "inputs": INPUTS,
        "frames": [min(frames), max(frames)],
        "request_median": round(float(np.median(answered)), 1),
        "request_95th": round(float(np.quantile(answered, 0.95)), 1),
        "server_median": round(float(np.median(computed)), 1),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
