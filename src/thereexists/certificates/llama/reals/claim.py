"""What a stock checkpoint over the reals claims: at every token, the program's number up to a stated bound."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from thereexists.certificates.llama.reals.layers import SILU, WEIGHT
from thereexists.certificates.llama.reals.network import Network
from thereexists.certificates.llama.reals.operations import network_of
from thereexists.certificates.llama.rounding import ASSUMPTIONS, DTYPES, REFUSED
from thereexists.certificates.program_limits import check_program
from thereexists.certificates.program_numpy import check_features
from thereexists.core.errors import CannotBuild, InvalidInput, NotProved

KIND = "program over reals"
FIELDS = frozenset(("kind", "program", "bounds"))
MOST_TOKENS, MOST_OPERATIONS, MOST_FEATURES = 1 << 10, 1 << 10, 1 << 12


def _power(number: float) -> str:
    return f"2^{round(math.log2(number))}"


_ROUNDING, _, _ROTARY, *_ = ASSUMPTIONS
REAL_ASSUMPTIONS = (
    _ROUNDING,
    "RMSNorm is computed in float32, squares and their sums rounded to the nearest, its reciprocal root within 2^-21, "
    "and cast to the dtype to the nearest",
    _ROTARY,
    "a logit is within three roundings of the dtype; softmax gives 0 to a key that is masked or 128 below the largest; "
    f"where one key is left, or all logits are 0, weights are within {_power(WEIGHT['float32'])} of the right ones, "
    f"relatively, in float32 and within {_power(WEIGHT['bfloat16'])} in bfloat16",
    f"silu(x) is x for x >= 128, 0 for x <= -128, and between them within {_power(SILU)} |x| of x/(1 + exp(-x)), then "
    "rounded",
)


@dataclass(frozen=True)
class RealClaim:
    """``program`` as it is saved, and the bound in every dtype that is claimed."""

    program: dict[str, Any]
    bounds: dict[str, float] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return self.program["n"]

    @property
    def tokens(self) -> dict[str, Any]:
        """The settings of the input: d, low, high."""
        return next(node["settings"] for node in self.program["nodes"] if node["operation"] == "tokens")

    @property
    def outputs(self) -> int:
        return self.program["nodes"][-1]["d"]

    @property
    def network(self) -> Network:
        """What the weights are compared with; ``NotProved`` where the program cannot be run."""
        if isinstance(self._wired, str):
            raise NotProved(self._wired)
        return self._wired

    @cached_property
    def _wired(self) -> Network | str:
        """The network, or why there is none: either is worked out once, and not in every dtype."""
        try:
            return network_of(self.program)
        except NotProved as error:
            return str(error)

    def bounded(self, bounds: dict[str, float]) -> RealClaim:
        return dataclasses.replace(self, bounds=bounds)

    def sentence(self) -> str:
        low, high, d = self.tokens["low"], self.tokens["high"], self.tokens["d"]
        bounds = " and ".join(f"{bound!r} in {name}" for name, bound in self.bounds.items())
        numbers = "a number" if d == 1 else f"{d} numbers"
        return (
            f"For every input of 1 to {self.n:,} tokens without padding, each of them {numbers} from {low!r} to "
            f"{high!r}, rounded to the dtype: every answer, at every token, differs by at most {bounds} from what the "
            "program in `thereexists_export.json` gives there in exact arithmetic, its functions being themselves, "
            "wherever that is a number. Tokens that follow change nothing of that."
        )

    def paragraph(self) -> str:
        """What the card says is proved, word by word: it begins with it."""
        others = [f"- not claimed in {name}: no proof of a useful bound" for name in DTYPES if name not in self.bounds]
        others += [f"- not claimed in {name}: {reason}" for name, reason in REFUSED.items()]
        assumed = [f"- {assumption};" for assumption in REAL_ASSUMPTIONS]
        return "\n".join(
            (
                self.sentence(),
                "",
                "Loaded with `from_pretrained(..., dtype=...)`. `model.to(torch.bfloat16)` rounds the rotary table, "
                "and is outside the claim. It is assumed that",
                "",
                *assumed,
                *others,
                "",
                "`thereexists verify FOLDER` reads config and weights and proves this again.",
                "",
            )
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": KIND, "program": self.program, "bounds": self.bounds}

    @classmethod
    def read(cls, stored: Any) -> RealClaim:
        """The claim of a record that anyone may have written."""
        if not isinstance(stored, dict) or stored.keys() != FIELDS or stored["kind"] != KIND:
            raise InvalidInput(f"the claim of a program over reals has {', '.join(sorted(FIELDS))}")
        bounds = stored["bounds"]
        if not isinstance(bounds, dict) or list(bounds) != [name for name in DTYPES if name in bounds] or not bounds:
            raise InvalidInput(f"the bounds of a claim are in some of {', '.join(DTYPES)}")
        if not all(type(bound) is float and 0 < bound < float("inf") for bound in bounds.values()):
            raise InvalidInput("a bound is a positive number")
        return cls(checked(stored["program"]), bounds)


def real_claim(program: dict[str, Any]) -> RealClaim:
    """Of a program, before anything is proved of it; refused where a checkpoint cannot run it."""
    try:
        claim = RealClaim(checked(program))
        claim.network  # noqa: B018
    except (NotProved, InvalidInput) as error:
        raise CannotBuild(f"This program has no stock Llama checkpoint: {error}") from error
    return claim


def checked(program: Any) -> dict[str, Any]:
    """A program of a size that is looked at, whose parts fit each other."""
    check_program(program)
    if program.keys() != {"n", "nodes"} or program["n"] > MOST_TOKENS or len(program["nodes"]) > MOST_OPERATIONS:
        raise InvalidInput(f"a program has n, up to {MOST_TOKENS:,}, and up to {MOST_OPERATIONS:,} operations")
    if sum(node["d"] for node in program["nodes"]) > MOST_FEATURES:
        raise InvalidInput(f"the operations of a program have up to {MOST_FEATURES:,} features together")
    if sum(node["operation"] == "tokens" for node in program["nodes"]) != 1:
        raise InvalidInput("a program has one input")
    check_features(program)
    inputs = next(node["settings"] for node in program["nodes"] if node["operation"] == "tokens")
    if not inputs["low"] < inputs["high"]:
        raise InvalidInput("the ends of the input are in order, low < high")
    return program
