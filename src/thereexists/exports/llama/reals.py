"""Causal programs over the reals as Llama blocks that take ``inputs_embeds``: weights, files, card.

What is written where is the verifier's ``Network``; here it gets weights.

- The constant C is 2^18 times what all rows are together, or more: RMSNorm then is a power of two, √d/C.
- ReLU(t) is silu(G t)/G with G so large that G t is up to 2^24: what silu is beside ReLU, 0.28/G, is less than what
  float32 rounds. Being relative, that rounding does not mind G.
- A product: the gate is 256 or more where it is open, the other factor is what is multiplied.
- A head that looks at one token: codes of ±1 on the slowest frequencies of RoPE, which hardly turn; 256 a bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists._version import __version__
from thereexists.certificates.llama import format as stock
from thereexists.certificates.llama.card import opening
from thereexists.certificates.llama.format import Checkpoint, Shape, config_of
from thereexists.certificates.llama.layouts import stock_of
from thereexists.certificates.llama.reals.claim import RealClaim
from thereexists.certificates.llama.reals.network import CONSTANT, HEAD, Fetched, Form, Head, Hinges, Network, Products
from thereexists.certificates.llama.reals.verify import LARGEST, drawn, far_off, real_proofs
from thereexists.certificates.llama.run import loaded
from thereexists.core.dtypes import as_dtype
from thereexists.core.errors import CannotBuild
from thereexists.core.json_files import record_digest
from thereexists.core.modes import as_the_umask_says
from thereexists.core.regular_files import file_sha256
from thereexists.core.rounded_figures import power_of_two, rounded_up
from thereexists.core.tensor_files import save_tensors
from thereexists.exports.llama.layout import EPS, THETA, as_json, refuse

STEEP = 2.0**24  # G t, at the most
OPEN = 256.0
BIT = 256.0  # of a logit
_TRIED = 64


def shape_of(claim: RealClaim) -> Shape:
    """The sizes of the checkpoint."""
    network, d = claim.network, HEAD
    while d < len(network.rows):
        d *= 4
    heads = 1 << (max(1, *map(len, network.heads)) - 1).bit_length()  # the loader wants d_model to be a multiple
    tokens = max(network.n, claim.outputs)
    return Shape(d, max(1, *network.units), network.layers, heads, heads, HEAD, tokens, network.n)


@dataclass(frozen=True)
class _Lowering:
    network: Network
    shape: Shape
    C: float
    weights: dict[str, np.ndarray]

    @property
    def scale(self) -> np.ndarray:
        """What RMSNorm makes of a row's 1; of the constant's C."""
        found = np.full(self.shape.d_model, self.shape.d_model**0.5 / self.C)
        found[CONSTANT] = self.shape.d_model**0.5
        return found

    def row(self, form: Form, factor: float) -> np.ndarray:
        """The weights of factor·form, behind the norm."""
        found = np.zeros(self.shape.d_model)
        found[list(form)] = [float(c) for c in form.values()]
        return found * factor / self.scale

    def of(self, layer: int, part: str) -> np.ndarray:
        return self.weights[f"model.layers.{layer}.{part}_proj.weight"]


def lowered(claim: RealClaim) -> dict[str, torch.Tensor]:
    """The weights in float32."""
    network, shape = claim.network, shape_of(claim)
    weights = {name: np.zeros(size) for name, size in shape.weights().items()}
    for name, weight in weights.items():
        if "norm" in name:
            weight[:] = 1.0
    squares = sum(float(row.span.max()) ** 2 for row in network.rows)
    p = _Lowering(network, shape, _power_above(2.0**18 * math.sqrt(squares)), weights)
    E = weights["model.embed_tokens.weight"]
    E[:, CONSTANT] = p.C
    for r, row in enumerate(network.rows):
        if row.table is not None:
            E[: network.n, r] = row.table
    for real in network.reals:
        if real.write is not None:
            _WRITES[type(real.write)](p, real.write)
    for t, heads in enumerate(network.heads):
        for h, head in enumerate(heads):
            _look(p, t, h, head)
    for f, real in enumerate(network.outputs):
        weights["lm_head.weight"][f] = p.row(real.form, 1.0)
    return {name: torch.from_numpy(weight).float() for name, weight in weights.items()}


def _power_above(number: float) -> float:
    if not 2.0**-1000 <= number <= 2.0**1000:
        raise CannotBuild("A value of this program is too small or too large for a stock checkpoint; scale it.")
    return 2.0 ** math.ceil(math.log2(number))


def _hinges(p: _Lowering, write: Hinges) -> None:
    for unit, part in zip(write.units, write.parts, strict=True):
        G = STEEP / _power_above(max(float(part.size.max()), 2.0**-60))
        p.of(write.layer, "mlp.gate")[unit] = p.row(part.form, G)
        p.of(write.layer, "mlp.up")[unit] = p.row({CONSTANT: 1}, 1.0)
        p.of(write.layer, "mlp.down")[write.row, unit] = float(part.a) / G


def _products(p: _Lowering, write: Products) -> None:
    for unit, (a, gate, of) in zip(write.units, write.parts, strict=True):
        least = float(np.minimum(np.abs(gate.low), np.abs(gate.high)).min())
        K = _power_above(OPEN / least if least else math.inf)
        p.of(write.layer, "mlp.gate")[unit] = p.row(gate.form, K)
        p.of(write.layer, "mlp.up")[unit] = p.row(of.form, 1.0)
        p.of(write.layer, "mlp.down")[write.row, unit] = float(a) / K


def _fetched(p: _Lowering, write: Fetched) -> None:
    (place,) = write.columns(HEAD)
    p.of(write.layer, "self_attn.v")[place] = p.row(write.of.form, 1.0)
    p.of(write.layer, "self_attn.o")[write.row, place] = 1.0


def _look(p: _Lowering, t: int, h: int, head: Head) -> None:
    slowest = h * HEAD + HEAD // 2 - 1
    for b, (query, key) in enumerate(zip(head.queries, head.keys, strict=True)):
        p.of(t, "self_attn.q")[slowest - b] = p.row({query: 1}, BIT * HEAD**0.5)
        p.of(t, "self_attn.k")[slowest - b] = p.row({key: 1}, 1.0)


_WRITES = {Hinges: _hinges, Products: _products, Fetched: _fetched}


# --- the folder -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RealWritten:
    """A checkpoint that lies in a folder, as ``transformers`` has loaded it, and what the folder claims."""

    claim: RealClaim
    model: Any
    dtype: str
    stated: dict[str, Any]

    def compared(self, witness: Any) -> tuple[int, str]:
        """On how many random inputs it was run, and kept its bound; refused where it did not."""
        off = far_off(self.claim, self.model, drawn(self.claim, np.random.default_rng(), _TRIED))
        if not off <= self.claim.bounds[self.dtype]:
            raise CannotBuild("The export does not keep its bound; nothing was written.")
        return _TRIED, "random inputs"

    def record(self, said: dict[str, Any]) -> dict[str, Any]:
        record = {**said, "format": stock.OVER_REALS, **self.stated}
        return record | {"digest": record_digest(record)}


def write_reals(claim: RealClaim, dtype: str, folder: Path, beside: str = "", named: str = "llama") -> RealWritten:
    """Write all files but the record; refused where there is no bound in the dtype."""
    stocked, shape = stock_of(named), shape_of(claim)
    refuse(dtype)
    weights = {name: weight.to(as_dtype(dtype)) for name, weight in lowered(claim).items()}
    if max(float(weight.abs().max()) for weight in weights.values()) > LARGEST:
        raise CannotBuild(
            f"The checkpoint would need weights above {power_of_two(LARGEST)}: the input's box is too small for it."
        )
    found, reasons = real_proofs(Checkpoint(shape, THETA, EPS, weights, claim))
    if dtype not in found:
        raise CannotBuild(f"The checkpoint is not proved in {dtype}: {reasons[dtype]}")
    claim = claim.bounded({name: _three_digits(proof.bound) for name, proof in found.items()})
    save_tensors(stocked.written(weights), folder / stock.WEIGHTS, metadata={"format": "pt"})
    config = config_of(shape, THETA, EPS, dtype, named, speaks=False)
    (folder / stock.CONFIG).write_text(as_json(config), encoding="utf-8")
    (folder / stock.CARD).write_text(_card(claim, shape, stocked.architecture, beside), encoding="utf-8")
    for name in stock.REAL_FILES:
        as_the_umask_says(folder / name)
    stated = {
        "format_version": stock.VERSION,
        "claim": claim.describe(),
        "dtypes": list(found),
        "files": {name: file_sha256(folder / name) for name in stock.REAL_FILES},
    }
    return RealWritten(claim, loaded(folder, dtype), dtype, stated)


def _three_digits(bound: float) -> float:
    """Rounded up: the float next to a decimal that is not below another float is not below it either."""
    return float(rounded_up(bound, 3))


def _numbers(count: int) -> str:
    return "one number" if count == 1 else f"{count} numbers"


def _card(claim: RealClaim, shape: Shape, architecture: str, beside: str) -> str:
    first, d, outputs = claim.network.inputs[0], claim.tokens["d"], claim.outputs
    low, high = claim.tokens["low"], claim.tokens["high"]
    return f"""{opening(claim.paragraph(), speaks=False)}A program over the reals as a stock checkpoint

An unmodified `{architecture}`, constructed and not trained: a causal program of {len(claim.program["nodes"])}
operations on sequences of 1 to {claim.n:,} tokens. A token is {_numbers(d)} from {low!r} to {high!r}, the answer at a
token {_numbers(outputs)}. There is no text and no tokenizer: numbers go in by `inputs_embeds`, and come out as the
first of the logits.

```python
import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("FOLDER", dtype=torch.float32)
x = torch.empty(5, {min(claim.n, 4)}, {d}).uniform_({low!r}, {high!r})  # (batch, tokens, numbers)
E = model.model.embed_tokens.weight[: x.shape[1]].detach().repeat(len(x), 1, 1)  # constants, by position
E[..., {first}:{first + d}] = x.to(E.dtype)  # the rows that hold the numbers
y = model(inputs_embeds=E).logits[..., :{outputs}]  # (batch, tokens, answers)
```

Row 0 of `E` is a constant, and some rows are tables of positions; they are the embedding's own, the token number k
being the position k. Do not normalise or scale `E`.

## Sizes

{shape.layers} layer{"s" if shape.layers > 1 else ""}, d_model {shape.d_model}, {shape.heads}
head{"s" if shape.heads > 1 else ""} of size {shape.head_size}, width {shape.width:,}, {shape.parameters:,} parameters.
{beside}
Made by thereexists {__version__}.
"""
