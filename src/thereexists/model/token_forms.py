"""A memorised data set, a network of *codes*, told from its weights alone; and in which dtypes it is right.

It works in place, with cancellation, so it is compared number by number with the form below, which is written down here
again: nothing of what builds is used. Rows, in this order: D codes, D means, n·g values, n positions, g outputs.

    embedding  token t: D signs, then 0; row 0 (padding) is 0       E  position k: D signs, 1 in position row k
    codes      z + 2 ReLU(−z) − 1, and 1/2 at the first position    in the code rows; t·k = |t + k| − 1 for signs
    sums       the mean of the code rows into the mean rows, then the literals r⁺ = ReLU(4n·mean) into the code rows
               and r⁻ = ReLU(−4n·mean) into the mean rows, which are cleared in the same step
    recall     ReLU(1 − D literals), a full key for each unit, all keys distinct; writes whole numbers 0 … base
    select     ReLU(v + base·position − base) of the value rows, into the outputs

**In a dtype** with u = 2^-p the answer is the same on every input whose first token is real. A sum of signs and one
half is at least 1/2 from 0. The common weight 1/r is at least (1−u)²/n. Accumulation in float32 or better moves the
sum by at most g(n + 1/2), g = (1+u_a)^(n+2) − 1, in units of that weight, and 6 more roundings are relative: a literal
that is not 0 is at least 4(1/2 − g(n + 1/2))(1−u)^8. To clear the row, c (|c| ≤ 3/2) is taken away and added again:
exact where the literal is 0, else at most three roundings of u(literal + 3)(1+u). What is left must be at least 1; then
exactly the unit with the sequence's key gives 1, all others give 0, and whole numbers up to 2·base exist.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from thereexists.core.dtypes import SIGNIFICAND, as_dtype, represents
from thereexists.core.rounded_figures import rounded_down
from thereexists.core.verdict import Verdict
from thereexists.model import EmbeddedTransformer

STAGES = ("codes", "sums", "recall", "select")


@dataclass(frozen=True)
class CodeForm:
    """A network of codes: sizes, base, and the units of its memory."""

    D: int
    n: int
    g: int
    base: int
    keys: np.ndarray  # (units, D) of bits
    digits: torch.Tensor  # (units, n, g)

    @classmethod
    def of(cls, network: EmbeddedTransformer) -> CodeForm | None:
        """The form, or None if a single weight is another number."""
        if tuple(network.stages) != STAGES or network.embedding is None or network.E is None:
            return None
        for name, stage in network.stages.items():
            if stage.depth != 1 or stage.feed_forward is None or (stage.attention is not None) != (name == "sums"):
                return None
        (g, d), n, V = network.W_out.shape, len(network.E), len(network.embedding) - 1
        D, odd = divmod(d - n * g - n - g, 2)
        select = network.stages["select"].feed_forward.b_1.detach().flatten()  # pyright: ignore[reportOptionalMemberAccess]
        if odd or min(D, n, V, g) < 1 or len(select) != n * g:
            return None
        base = -float(select[0])
        if not 1 <= base < 2**24 or base != int(base):
            return None
        weights = {key: w.detach() for key, w in network.state_dict().items()}
        memory = [weights.pop(f"stages.recall.feed_forward.{k}")[0] for k in ("W_1", "b_1", "W_2", "b_2")]
        if {key: tuple(w.shape) for key, w in weights.items()} != _shapes(D, n, g, d, V + 1):
            return None
        wanted = _wanted(D, n, g, int(base), weights["embedding"], weights["E"])
        if wanted is None or not all(torch.equal(w.double(), wanted[key]) for key, w in weights.items()):
            return None
        stored = _memory(D, n, g, int(base), *memory)
        return None if stored is None else cls(D, n, g, int(base), *stored)

    def verdict(self, name: str) -> Verdict:
        """Whether every input gets the same answer in a dtype as in exact arithmetic."""
        dtype, u = as_dtype(name), 2.0 ** -SIGNIFICAND[name]
        if 2 * self.base > 1 / u:  # digits and base; all other weights are 0, 1/2, 1, 2 and 4n
            return Verdict(False, (f"it does not represent every integer up to {2 * self.base}",))
        if not represents(np.array([4.0 * self.n]), dtype).all():
            return Verdict(False, (f"it has no {4 * self.n}, a weight of the sums",))
        limits = torch.finfo(dtype)
        if 8 * (self.n + 1) > limits.max / 4 or 4 * self.n * limits.tiny > 1:
            return Verdict(False, (f"a mean over {self.n} tokens, or its literal, is beyond its numbers",))
        moved = math.expm1((self.n + 2) * math.log1p(min(u, 2.0**-24))) * (self.n + 0.5)
        literal = 4 * (0.5 - moved) * (1 - u) ** 8
        left = literal - 3 * u * (literal + 3) * (1 + u)
        least = rounded_down(left, 3)
        if left < 1 + 1e-9:
            return Verdict(False, (f"a literal of a mean over {self.n} tokens may be {least}, and 1 is needed",))
        return Verdict(
            True, (f"all numbers are exact in it; a literal of a mean is {least} at least, where 1 is enough",)
        )


def _wanted(
    D: int, n: int, g: int, base: int, embedding: torch.Tensor, E: torch.Tensor
) -> dict[str, torch.Tensor] | None:
    """Every weight outside the memory, given the signs of tokens and positions."""
    d = 2 * D + n * g + n + g
    code, mean, value, position, out = (
        torch.arange(end - size, end)
        for size, end in zip((D, D, n * g, n, g), np.cumsum((D, D, n * g, n, g)).tolist(), strict=True)
    )
    tokens, places = embedding[1:, :D].double(), E[:, :D].double()
    if not bool((tokens.abs() == 1).all()) or not bool((places.abs() == 1).all()):
        return None
    shapes = _shapes(D, n, g, d, len(embedding))
    wanted = {key: torch.zeros(shape, dtype=torch.float64) for key, shape in shapes.items()}
    wanted["embedding"][1:, code] = tokens
    wanted["E"][:, code], wanted["E"][torch.arange(n), position] = places, 1.0
    wanted["W_out"][torch.arange(g), out] = 1.0

    def layer(name: str) -> list[torch.Tensor]:
        return [wanted[f"stages.{name}.feed_forward.{key}"][0] for key in ("W_1", "b_1", "W_2", "b_2")]

    i = torch.arange(D)
    W_1, _, W_2, b_2 = layer("codes")
    W_1[i, code], W_2[code, i], b_2[code] = -1.0, 2.0, -1.0
    W_1[D, position[0]], W_2[code, D] = 1.0, 0.5
    wanted["stages.sums.attention.W_V"][0, 0, i, code] = 1.0
    wanted["stages.sums.attention.W_O"][0, 0, mean, i] = 1.0
    W_1, _, W_2, _ = layer("sums")
    for block, (row, slope, write, factor) in enumerate(
        (
            (mean, 4.0 * n, code, 1.0), (mean, -4.0 * n, mean, 1.0),
            (code, 1.0, code, -1.0), (code, -1.0, code, 1.0), (mean, 1.0, mean, -1.0), (mean, -1.0, mean, 1.0),
        )
    ):  # fmt: skip
        W_1[block * D + i, row], W_2[write, block * D + i] = slope, factor
    W_1, b_1, W_2, _ = layer("select")
    unit = torch.arange(n * g)
    W_1[unit, value], W_1[unit, position[unit // g]], b_1[:] = 1.0, float(base), -float(base)
    W_2[out[unit % g], unit] = 1.0
    return wanted


def _shapes(D: int, n: int, g: int, d: int, rows: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"embedding": (rows, d), "E": (n, d), "W_out": (g, d)}
    for name, r in (("codes", D + 1), ("sums", 6 * D), ("select", n * g)):
        parts = {"W_1": (1, r, d), "b_1": (1, r), "W_2": (1, d, r), "b_2": (1, d)}
        shapes |= {f"stages.{name}.feed_forward.{key}": shape for key, shape in parts.items()}
    heads = {"W_Q": (1, 1, D, d), "b_Q": (1, 1, D), "W_K": (1, 1, D, d), "W_V": (1, 1, D, d), "W_O": (1, 1, d, D)}
    return shapes | {f"stages.sums.attention.{key}": shape for key, shape in heads.items()}


def _memory(
    D: int, n: int, g: int, base: int, W_1: torch.Tensor, b_1: torch.Tensor, W_2: torch.Tensor, b_2: torch.Tensor
) -> tuple[np.ndarray, torch.Tensor] | None:
    """Keys and digits; None unless all keys are full and distinct and only value rows are written, with digits."""
    value = slice(2 * D, 2 * D + n * g)
    asked, digits = W_1[:, : 2 * D] == -1, W_2[value]
    keyed = bool(((W_1[:, : 2 * D] == 0) | asked).all()) and bool((asked[:, :D] ^ asked[:, D:]).all())
    if not keyed or bool(W_1[:, 2 * D :].any()) or bool(b_2.any()) or not bool((b_1 == 1).all()):
        return None
    if bool(W_2[: value.start].any()) or bool(W_2[value.stop :].any()):
        return None
    if not bool(((digits >= 0) & (digits <= base) & (digits == digits.round())).all()):
        return None
    keys = asked[:, D:].numpy()  # the key's bit i is 1 where it contradicts r_i⁻
    if len(keys) == 0 or not _distinct(keys):
        return None
    return keys, digits.T.reshape(-1, n, g).contiguous()


def _distinct(keys: np.ndarray) -> bool:
    """Whether no two rows of bits are the same."""
    words = np.packbits(np.pad(keys, ((0, 0), (0, -keys.shape[1] % 64))), axis=1).view(np.uint64)
    ordered = words[np.lexsort(words.T)]
    return not bool((ordered[1:] == ordered[:-1]).all(axis=1).any())
