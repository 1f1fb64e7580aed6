"""The largest dense witness that float64 holds, 4.4 GB of weights: built, run, certified, verified in little memory.

Every process stays below 1.5 GB. One token more and the ids need 54 bits, which is refused: the faithful construction
runs out of float64 before it runs out of memory. ``make test-large``; takes 10 GB of disk. The figures it prints are
those of docs/scale.md.
"""

import json
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.large
MOST_BYTES = 1.5e9
N_TOKENS = 20

FUNCTION = '''
import numpy as np

def f(X):
    """Running means."""
    return np.cumsum(X, axis=1) / np.arange(1, X.shape[1] + 1)[None, :, None]
'''
PREDICT = """
import dataclasses, json, sys, thereexists as te
from thereexists.certificates import predict
from thereexists.cli.certificate import given_target
w = te.load(sys.argv[1])
target = dataclasses.replace(given_target(w.target, sys.argv[2]), lipschitz=1.0)
print(json.dumps(predict(w, target=target).record()))
"""


def measured(label, arguments, folder):
    """Run a command; its last line of output, and the largest peak of any process of its family."""
    peaks, began = {}, time.monotonic()
    with (folder / "out.txt").open("w") as out:
        process = psutil.Popen([sys.executable, *arguments], stdout=out)
        while process.poll() is None:
            for pid in family(process):
                peaks[pid] = max(peaks.get(pid, 0), high_water(pid))
            time.sleep(0.2)
    seconds = time.monotonic() - began
    text = (folder / "out.txt").read_text()
    assert process.returncode == 0, text
    figure = {"step": label, "seconds": round(seconds), "peak_MB": round(max(peaks.values()) / 1e6)}
    print(json.dumps(figure | {"processes": len(peaks)}))
    return json.loads(text.splitlines()[-1]), max(peaks.values())


def family(process):
    try:
        return [process.pid, *(child.pid for child in process.children(recursive=True))]
    except psutil.Error:
        return []


def high_water(pid):
    """The most memory that a process has ever held: the kernel keeps the maximum, nothing is missed between looks."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


def test_the_largest_dense_witness(tmp_path):
    file, witness = tmp_path / "f.py", tmp_path / "w"
    file.write_text(FUNCTION)
    name, command = f"{file}:f", ["-m", "thereexists"]
    size = ["--n", str(N_TOKENS), "--delta", "1/2", "--shard-size", "32MB"]
    build = [*command, "build", name, *size, "--workers", "2", "--no-certify", "--out", str(witness), "--json"]
    built, peak = measured("build", build, tmp_path)
    peaks = [peak]
    weights = sum(shard.stat().st_size for shard in witness.glob("model-*.safetensors"))
    print(json.dumps({"weights_bytes": weights, "layers": built["layers"]["total"], "cells": 2**N_TOKENS}))
    assert weights >= 4e9
    sequence = " ".join(str(i % 2) for i in range(N_TOKENS))
    output, peak = measured("run", [*command, "run", str(witness), "--input", sequence, "--json"], tmp_path)
    # Cells are [0, 1/2) and [1/2, 1], so the inputs 0 and 1 stand for their centres 1/4 and 3/4.
    wanted = [sum(0.25 + 0.5 * (i % 2) for i in range(k + 1)) / (k + 1) for k in range(N_TOKENS)]
    # A value z + (A − z) is rounded once, to half an ulp of its rank; 2^-20 of the values is what two sweeps keep to.
    assert all(abs(a[0] - b) <= 2.0**-20 for a, b in zip(output["output"][0], wanted, strict=True))
    peaks.append(peak)
    function = ["--function", name]
    certify = [*command, "certify", str(witness), *function, "--bound", "1", "--json"]
    peaks.append(measured("certify", certify, tmp_path)[1])
    verdict, peak = measured("verify", [*command, "verify", str(witness), *function, "--json"], tmp_path)
    assert verdict["holds"] is True
    estimate, last = measured("one rigorous block", ["-c", PREDICT, str(witness), name], tmp_path)
    print(json.dumps(estimate))
    assert max(*peaks, peak, last) < MOST_BYTES
