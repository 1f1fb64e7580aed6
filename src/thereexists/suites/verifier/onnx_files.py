"""A network as an ONNX file of primitive operators: MatMul, Add, Relu, Softmax, Transpose; static shapes, batch 1.

    X (1, n, features) → Y (1, n, outputs)         opset 13, float32, every value of rank 3 after the first addition

Every weight is an initializer with its name (``block0.head1.W_Q``). Its numbers are float64 in the proof; where they do
not fit into float32, or where a split is asked for, it is written as parts, ``W.a`` + ``W.b`` (+ ``W.c``), each
float32: the product is then taken with every part and added up, and the sum of the parts is the weight, exactly.

``read`` is the inverse: names and parts come back from the file, and ``written`` of what was read gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.errors import CannotBuild, InvalidInput, Obstructed
from thereexists.core.memory import unless_memory
from thereexists.core.regular_files import read_regular
from thereexists.functions.target import Array
from thereexists.suites.net import Block, Fixed, Head, Hidden, Net

OPSET, IR = 13, 8
OPERATORS = ("MatMul", "Add", "Relu", "Softmax", "Transpose")
PARTS = "abc"
MOST_BYTES = 1 << 28
Parts = dict[str, list[Array]]  # of every weight, float32; they add up to it


def needed(name: str = "onnx") -> Any:
    """onnx or onnxruntime, which are extras."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise Obstructed(f"This suite needs the package {name}: pip install 'thereexists[export]'.") from None


def parts_of(net: Net, rng: np.random.Generator | None = None) -> Parts:
    """Float32 parts of every weight. With ``rng``, matrices are split: W = (W + S) + (−S), S of multiples of 1/8."""
    found = {}
    for name, W in net.weights().items():
        split = rng is not None and W.ndim == 2 and not name.endswith((".A", "E"))
        first = W + rng.integers(-8, 9, W.shape) / 8 if split and rng is not None else W
        parts = _parts(W, first)
        parts = parts if np.array_equal(_sum(parts), W) else _parts(W, W)  # too many bits to be split so
        if not np.array_equal(_sum(parts), W):
            raise CannotBuild(f"The weight {name} is not a sum of {len(PARTS)} float32 numbers.")
        found[name] = parts
    return found


def _parts(W: Array, first: Array) -> list[Array]:
    """``first`` rounded, then what is missing to W, rounded, and so on."""
    parts = [first.astype(np.float32)]
    rest = W - parts[0]
    while rest.any() and len(parts) < len(PARTS):
        parts.append(rest.astype(np.float32))
        rest = rest - parts[-1]
    return parts


def joined(parts: Parts) -> Net:
    """The network whose weights these are."""
    whole = {name: _sum(some) for name, some in parts.items()}
    blocks: list[Block] = []
    while any(name.startswith(f"block{len(blocks)}.") for name in whole):
        i, heads = len(blocks), []
        while any(name.startswith(f"block{i}.head{len(heads)}.") for name in whole):
            start = f"block{i}.head{len(heads)}."
            kind = Fixed if start + "A" in whole else Head
            heads.append(kind(**{f: whole[start + f] for f in kind.__dataclass_fields__}))
        start = f"block{i}.hidden."
        has = start + "W_1" in whole
        hidden = Hidden(**{f: whole[start + f] for f in Hidden.__dataclass_fields__}) if has else None
        blocks.append(Block(tuple(heads), hidden))
    return Net(whole["W_in"], whole["E"], tuple(blocks), whole["W_out"])


def _sum(parts: list[Array]) -> Array:
    """From the last on: exact, as a part's rest is smaller than it, or a short multiple of 1/8."""
    total = parts[-1].astype(np.float64)
    for part in reversed(parts[:-1]):
        total = total + part.astype(np.float64)
    return total


class _Writer:
    """Nodes in the order of the formulas of ``net.py``."""

    def __init__(self, parts: Parts, dtype: type):
        onnx = needed()
        self.helper, self.numpy = onnx.helper, needed("onnx.numpy_helper")
        self.parts, self.dtype = parts, dtype
        self.nodes: list[Any] = []
        self.arrays: list[Any] = []

    def node(self, operator: str, *inputs: str, name: str, **attributes: Any) -> str:
        self.nodes.append(self.helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def array(self, name: str, part: Array, lead: int = 0) -> str:
        """An initializer; ``lead`` more axes of length 1 in front, so that every sum has rank 3."""
        shaped = np.ascontiguousarray(part.astype(self.dtype)).reshape((1,) * lead + part.shape)
        self.arrays.append(self.numpy.from_array(shaped, name))
        return name

    def each_part(self, name: str, lead: int = 0) -> Iterator[str]:
        for letter, part in zip(PARTS, self.parts[name], strict=False):
            yield self.array(name if len(self.parts[name]) == 1 else f"{name}.{letter}", part, lead)

    def times(self, Z: str, name: str, out: str) -> str:
        """Z W, part by part."""
        products = [self.node("MatMul", Z, W, name=f"{out}.{W}") for W in self.each_part(name)]
        return self.total(products, out)

    def total(self, terms: list[str], out: str) -> str:
        found = terms[0]
        for k, term in enumerate(terms[1:]):
            found = self.node("Add", found, term, name=f"{out}.sum{k}")
        return found

    def plus(self, Z: str, name: str, out: str, lead: int) -> str:
        for k, b in enumerate(self.each_part(name, lead)):
            Z = self.node("Add", Z, b, name=f"{out}.plus{k}")
        return Z

    def head(self, head: Head | Fixed, Z: str, start: str) -> str:
        if isinstance(head, Fixed):
            (A,) = self.each_part(f"{start}.A", lead=1)
        else:
            Q = self.plus(self.times(Z, f"{start}.W_Q", f"{start}.Q"), f"{start}.b_Q", f"{start}.Qb", 2)
            K = self.plus(self.times(Z, f"{start}.W_K", f"{start}.K"), f"{start}.b_K", f"{start}.Kb", 2)
            turned = self.node("Transpose", K, name=f"{start}.KT", perm=[0, 2, 1])
            logits = self.node("MatMul", Q, turned, name=f"{start}.logits")
            A = self.node("Softmax", logits, name=f"{start}.weights", axis=-1)
        V = self.times(Z, f"{start}.W_V", f"{start}.V")
        mixed = self.node("MatMul", A, V, name=f"{start}.mixed")
        return self.times(mixed, f"{start}.W_O", f"{start}.O")

    def all(self, net: Net) -> None:
        Z = self.plus(self.times("X", "W_in", "embedded"), "E", "Z0", 1)
        for i, block in enumerate(net.blocks):
            terms = [Z, *(self.head(head, Z, f"block{i}.head{j}") for j, head in enumerate(block.heads))]
            Z = self.total(terms, f"block{i}.attended")
            if block.hidden is not None:
                start = f"block{i}.hidden"
                up = self.plus(self.times(Z, f"{start}.W_1", f"{start}.up"), f"{start}.b_1", f"{start}.upb", 2)
                active = self.node("Relu", up, name=f"{start}.active")
                down = self.plus(
                    self.times(active, f"{start}.W_2", f"{start}.down"), f"{start}.b_2", f"{start}.downb", 2
                )
                Z = self.node("Add", Z, down, name=f"block{i}.out")
        last = self.times(Z, "W_out", "readout")
        self.nodes[-1].output[0] = "Y"
        assert self.nodes[-1].name == last


def model_of(parts: Parts, dtype: type = np.float32, batch: int | str = 1) -> Any:
    """The ONNX model. A float64 one, or one for any batch, is for checks only: the file has float32 and batch 1."""
    onnx = needed()
    net = joined(parts)
    writer = _Writer(parts, dtype)
    writer.all(net)
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    values = [
        onnx.helper.make_tensor_value_info(name, kind, [batch, net.n, size])
        for name, size in (("X", net.W_in.shape[0]), ("Y", net.W_out.shape[1]))
    ]
    graph = onnx.helper.make_graph(writer.nodes, "thereexists", values[:1], values[1:], writer.arrays)
    opsets = [onnx.helper.make_opsetid("", OPSET)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="thereexists")


def written(parts: Parts) -> bytes:
    """The file: the same bytes for the same parts."""
    return model_of(parts).SerializeToString(deterministic=True)


def read(file: Path) -> tuple[bytes, Parts]:
    """The bytes of a file and the parts of its weights; refused unless the file is just what they are written as."""
    onnx = needed()
    content = read_regular(file, MOST_BYTES, InvalidInput)
    try:
        stored = onnx.load_model_from_string(content).graph.initializer
        arrays = {weight.name: needed("onnx.numpy_helper").to_array(weight) for weight in stored}
        parts: Parts = {}
        for name, array in arrays.items():
            whole, dot, letter = name.rpartition(".")
            is_part = bool(dot) and len(letter) == 1 and letter in PARTS
            field = (whole if is_part else name).rpartition(".")[2]
            drop = 1 if field in ("E", "A") else 2 if field.startswith("b_") else 0
            parts.setdefault(whole if is_part else name, []).append(array.reshape(array.shape[drop:]))
        same = written(parts) == content
    except Exception as error:
        raise InvalidInput(f"{file} is not an ONNX file of this suite: {unless_memory(error)}.") from None
    if not same:
        raise InvalidInput(f"{file} is not what its own weights are written as: its operators or names were changed.")
    return content, parts


def session(model: Any) -> Any:
    """ONNX Runtime on one thread of the CPU."""
    onnxruntime = needed("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    content = model if isinstance(model, bytes) else model.SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def runner(parts: Parts, dtype: type = np.float32) -> Any:
    """(batch, n, features) → (batch, n, outputs) by ONNX Runtime: the file's graph with the batch left open."""
    running = session(model_of(parts, dtype, "batch"))
    n = parts["E"][0].shape[0]
    tile = max(1, (1 << 21) // (n * max(n, 64)))

    def run(X: Array) -> Array:
        given = np.ascontiguousarray(X, dtype=dtype)
        parts = [running.run(None, {"X": given[i : i + tile]})[0] for i in range(0, len(X), tile)]
        return np.concatenate(parts).astype(np.float64)

    return run
