"""Outside verifiers on a suite: ``python benchmarks/verifiers.py TOOL vnn/ answers.csv [--seconds 20] [--levels 1 2]``.

Run it with the Python of an environment that has the tool; this package is not needed there.

    marabou    pip install maraboupy "numpy<2" "onnx<1.17" onnxruntime       (2.0.0)
    crown      auto_LiRPA, CROWN bounds, and 1,000 random points as an attack: on PyPI its newest is 0.3, which wants
               torch < 1.13 and so Python 3.10; the source of 0.7.1 installs with --no-deps and runs with torch 2.13
    alpha      the same with bounds optimised by gradient descent (20 steps)

Every instance runs in a process of its own, which is ended when its time is over. The answers go to
``thereexists suite score vnn/ answers.csv``, and counterexamples to ``answers.shown/``, in the form of VNN-COMP.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import multiprocessing
import os
import re
import sys
import time
from pathlib import Path

import numpy as np


def property_of(text):
    """Boxes [(low, high)] as flat arrays, and limits [(index, sense, value)]: the two forms that the suite writes."""
    bare = re.sub(r";[^\n]*", "", text)
    count = len(re.findall(r"declare-const X_", bare))
    bounds = re.findall(r"\((>=|<=) X_(\d+) (\S+?)\)", bare)
    boxes = []
    for start in range(0, len(bounds), 2 * count):
        low, high = np.empty(count), np.empty(count)
        for sign, index, value in bounds[start : start + 2 * count]:
            (low if sign == ">=" else high)[int(index)] = float(value)
        boxes.append((low, high))
    limits = [(int(i), 1 if s == ">=" else -1, float(v)) for s, i, v in re.findall(r"\((>=|<=) Y_(\d+) (\S+?)\)", bare)]
    return boxes, limits


def marabou(network, boxes, limits, seconds):
    """One query for every box and limit."""
    from maraboupy import Marabou  # pyright: ignore[reportMissingImports]

    until = time.monotonic() + seconds
    unknown = False
    for low, high in boxes:
        for index, sense, value in limits:
            query = Marabou.read_onnx(network)
            for variable, a, b in zip(query.inputVars[0].ravel(), low, high, strict=True):
                query.setLowerBound(int(variable), float(a))
                query.setUpperBound(int(variable), float(b))
            output = int(query.outputVars[0].ravel()[index])
            (query.setLowerBound if sense > 0 else query.setUpperBound)(output, value)
            left = max(1, int(until - time.monotonic()))
            code, values, _ = query.solve(
                verbose=False, options=Marabou.createOptions(timeoutInSeconds=left, verbosity=0)
            )
            if code == "sat":
                return "sat", [values[int(variable)] for variable in query.inputVars[0].ravel()]
            if code == "TIMEOUT":
                return "timeout", None
            unknown = unknown or code != "unsat"
    return ("unknown" if unknown else "unsat"), None


def torch_module(network):
    """The nodes of the file as a torch module; every weight a constant."""
    import onnx
    import torch

    graph = onnx.load(network).graph
    arrays = {w.name: torch.from_numpy(onnx.numpy_helper.to_array(w).copy()) for w in graph.initializer}
    shape = [size.dim_value for size in graph.input[0].type.tensor_type.shape.dim]

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for number, array in enumerate(arrays.values()):
                self.register_buffer(f"w{number}", array)

        def forward(self, X):
            known = {name: getattr(self, f"w{number}") for number, name in enumerate(arrays)}
            known[graph.input[0].name] = X
            for node in graph.node:
                given = [known[name] for name in node.input]
                known[node.output[0]] = {
                    "MatMul": lambda a, b: torch.matmul(a, b),
                    "Add": lambda a, b: a + b,
                    "Relu": lambda a: torch.relu(a),
                    "Softmax": lambda a: torch.softmax(a, dim=-1),
                    "Transpose": lambda a: a.transpose(1, 2),
                }[node.op_type](*given)
            return known[graph.output[0].name].flatten(1)

    return Module(), shape


def lirpa(network, boxes, limits, method, steps=20):
    import torch
    from auto_LiRPA import BoundedModule, BoundedTensor  # pyright: ignore[reportMissingImports]
    from auto_LiRPA.perturbations import PerturbationLpNorm  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    module, shape = torch_module(network)
    rng = np.random.default_rng(0)
    for low, high in boxes:
        share = rng.random((1000, len(low)))
        share[::2] = rng.integers(0, 2, share[::2].shape)
        X = torch.from_numpy((low + share * (high - low)).astype(np.float32)).reshape(-1, *shape[1:])
        with torch.no_grad():
            Y = module(X).numpy()
        for index, sense, value in limits:
            unsafe = np.flatnonzero(sense * (Y[:, index] - value) >= 0)
            if len(unsafe):
                return "sat", X[unsafe[0]].flatten().tolist()
    model = BoundedModule(module, torch.zeros(shape), bound_opts={"optimize_bound_args": {"iteration": steps}})
    for low, high in boxes:
        ends = [torch.from_numpy(side.astype(np.float32)).reshape(shape) for side in (low, high)]
        X = BoundedTensor((ends[0] + ends[1]) / 2, PerturbationLpNorm(norm=np.inf, x_L=ends[0], x_U=ends[1]))
        outputs = model(X).shape[1]
        for index, sense, value in limits:
            C = torch.zeros(1, 1, outputs)
            C[0, 0, index] = sense
            _, most = model.compute_bounds(x=(X,), C=C, method=method, bound_lower=False)
            if not float(most) < sense * value:
                return "unknown", None
    return "unsat", None


TOOLS = {
    "marabou": marabou,
    "crown": lambda network, boxes, limits, seconds: lirpa(network, boxes, limits, "CROWN"),
    "alpha": lambda network, boxes, limits, seconds: lirpa(network, boxes, limits, "CROWN-Optimized"),
}


def answered(tool, network, text, seconds, pipe):
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        os.dup2(nowhere.fileno(), 1)  # native code writes there too
        os.dup2(nowhere.fileno(), 2)
        try:
            pipe.send(TOOLS[tool](network, *property_of(text), seconds))
        except Exception as error:
            pipe.send((f"error {type(error).__name__}: {error}", None))


def ask(tool, network, text, seconds):
    """The answer, its counterexample or None, and the seconds; the process is ended after its time."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    start = time.monotonic()
    job = multiprocessing.get_context("fork").Process(target=answered, args=(tool, network, text, seconds, theirs))
    job.start()
    theirs.close()
    answer, shown = "timeout", None
    if ours.poll(seconds):
        try:
            answer, shown = ours.recv()
        except EOFError:
            answer = "error: it ended without a word"
    job.kill()
    job.join()
    return answer, shown, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("suite", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0, help="for an instance, whatever instances.csv says")
    parser.add_argument("--levels", type=int, nargs="*", default=[1, 2, 3, 4, 5])
    parser.add_argument("--families", nargs="*", default=None)
    parser.add_argument("--most", type=int, default=None, help="so many instances of a family and level")
    asked = parser.parse_args()
    importlib.import_module({"marabou": "maraboupy.Marabou"}.get(asked.tool, "auto_LiRPA"))  # before the clock runs
    lines, seen = ["onnx,vnnlib,result,seconds,counterexample"], {}
    beside = asked.answers.with_suffix(".shown")
    for line in (asked.suite / "instances.csv").read_text().splitlines():
        network, text, _ = line.split(",")
        family, level, _ = Path(text).stem.rsplit("-", 2)
        if int(level) not in asked.levels or (asked.families and family not in asked.families):
            continue
        seen[family, level] = seen.get((family, level), 0) + 1
        if asked.most is not None and seen[family, level] > asked.most:
            continue
        content = (asked.suite / text).read_text()
        answer, shown, seconds = ask(asked.tool, str(asked.suite / network), content, asked.seconds)
        print(f"{text} {answer} {seconds:.1f} s", file=sys.stderr, flush=True)
        file = ""
        if shown is not None:
            beside.mkdir(exist_ok=True)
            file = f"{beside.name}/{Path(text).stem}.txt"
            values = "\n ".join(f"(X_{i} {x!r})" for i, x in enumerate(map(float, shown)))
            (asked.answers.parent / file).write_text(f"sat\n({values})\n")
        lines.append(f"{network},{text},{answer.split()[0].rstrip(':')},{seconds:.2f},{file}")
    asked.answers.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
