"""A saved table or data set, read from its record and weights: the verifier's own reader, which builds nothing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists.certificates.certificate import is_count, is_list_of, is_size, is_text
from thereexists.certificates.float_run import dtype_verdicts, summed
from thereexists.core.dtypes import DTYPES, as_dtype
from thereexists.core.errors import InvalidInput
from thereexists.core.json_files import malformed
from thereexists.core.verdict import Verdict
from thereexists.evaluate.recall import numbers_of_one, run_tokens
from thereexists.functions.vocabulary import END, FIRST, Digits, Vocabulary, check_vocabulary
from thereexists.model import EmbeddedTransformer
from thereexists.model.token_forms import CodeForm

SUMS = ("slots", "counts", "codes")
PURPOSES = ("table", "memorise")  # a table answers its rows and nothing else; a memorised set promises only its pairs
LEAST_NUMBERS = 1 << 22  # that a sequence may take in a layer, whatever the file holds
MOST_TIMES = 4  # or so many for every number of the file
INFO: dict[str, dict[str, Callable[[Any], bool]]] = {  # what a record says besides: its author's word, which all show
    "table": {
        "complete": lambda part: isinstance(part, bool),
        **dict.fromkeys(("rows", "contexts", "units"), is_count),
    },
    "memorise": {
        **dict.fromkeys(("seed", "signs", "draws", "repeated", "memorised_tokens"), is_count),
        "conflicts": is_list_of(lambda part: True),
        "on_conflict": is_text,
        "parameters_per_token": lambda part: part is None or is_size(part),
        "lower_bound_up_to_logs": is_size,
    },
}


@dataclasses.dataclass(frozen=True, repr=False)
class StoredTokens:
    """A network on tokens, its vocabularies, and the pairs it is said to store.

    ``inputs`` and ``outputs`` (pairs, n) are the stored pairs as numbers (0 pads an input, 1 ends an output). ``sums``
    says what the attention adds up: slots, counts or codes; the weights, not this word, decide which dtypes are safe,
    and where they prove none of the three (``sums_of``) it is its author's word.
    ``fixed``: every input must have exactly n tokens; a table's always do. ``symmetric``: the stored inputs stand for
    all their orders; only a table's may. ``purpose``: a table or a data set to memorise.
    """

    network: EmbeddedTransformer
    vocabulary: Vocabulary
    output_vocabulary: Vocabulary
    n: int
    digits: Digits
    inputs: np.ndarray
    outputs: np.ndarray
    sums: str
    fixed: bool
    symmetric: bool
    purpose: str
    info: dict[str, Any]

    def run(self, ids: np.ndarray, engine: str = "indexed") -> np.ndarray:
        """Input numbers (batch, n) to output numbers (batch, n): 0 nothing stored, 1 past the end, 2 … tokens.

        ``dense`` runs the network as it is; ``indexed`` finds the one memory unit that can fire by its key and skips
        the others, which add exactly 0: bit for bit the same.
        """
        return self.digits.join(run_tokens(self.network, ids, engine))

    def exact(self, engine: str = "indexed") -> np.ndarray:
        """Which stored pairs come back exactly: (pairs,)."""
        return (self.run(self.inputs, engine) == self.outputs).all(axis=1)

    def verdicts(self) -> dict[str, Verdict]:
        """Safe or not, with the reason, for every dtype."""
        return token_verdicts(self.network, self.fixed)


def read_tokens(path: str | Path, record: dict[str, Any], weights: dict[str, torch.Tensor]) -> StoredTokens:
    """The witness as the file has it, its dtypes claimed and not yet proved: for those who check it."""
    with malformed(path, "is not a complete witness"):
        stored = _checked(record)
        inputs, outputs = (_numbers(weights.pop(f"pairs.{side}"), stored["n"]) for side in ("inputs", "outputs"))
        if inputs.shape != outputs.shape:
            raise InvalidInput(f"there are {len(inputs)} inputs and {len(outputs)} outputs")
        found = {tensor.dtype for tensor in weights.values()}
        network = EmbeddedTransformer.from_structure(record["structure"], weights)
        if network.embedding is None:
            raise InvalidInput("the network does not take tokens")
        if network.E is None or len(network.E) != stored["n"]:
            raise InvalidInput(f"the record says n = {stored['n']}, and the weights have another number of positions")
        _check_work(network)
        if sums_of(network) not in (None, stored["sums"]):
            raise InvalidInput(f"the record says that it sums {stored['sums']}; its weights sum {sums_of(network)}")
        stored_pairs = StoredTokens(
            network, check_vocabulary(record["vocabulary"], "'vocabulary'"),
            check_vocabulary(record["output_vocabulary"], "'output_vocabulary'"),
            stored["n"], Digits(stored["base"], stored["digits"]), inputs, outputs,
            stored["sums"], stored["fixed"], stored["symmetric"], stored["purpose"], record["info"],
        )  # fmt: skip
        vocabulary = (len(network.embedding), network.W_out.shape[0])
        if found != {as_dtype(record["dtype"])} or vocabulary != (
            len(stored_pairs.vocabulary) + 1,
            stored_pairs.digits.count,
        ):
            raise InvalidInput("dtype, vocabulary or digits do not fit the weights")
        if (inputs < 0).any() or (inputs > len(stored_pairs.vocabulary)).any():
            raise InvalidInput("a stored input holds a number that no token has")
        if (outputs < END).any() or (outputs >= FIRST + len(stored_pairs.output_vocabulary)).any():
            raise InvalidInput("a stored output holds a number that no token has")
        if ((inputs[:, 1:] > 0) & (inputs[:, :-1] == 0)).any():
            raise InvalidInput("a stored input has padding before a token, so it can never be asked for")
    return stored_pairs


def _check_work(network: EmbeddedTransformer) -> None:
    """A file of kilobytes must not ask for gigabytes. Whatever is built here gives every position a row of its own, so
    d_model ≥ n, and has one head: what a sequence takes (n² logits, n·r units, n·d rows) is less than twice what the
    arrays of the file hold, E among them with n·d numbers and W_1 with r·d.
    """
    needed, there = numbers_of_one(network), network.parameter_count
    most = max(LEAST_NUMBERS, MOST_TIMES * there)
    if needed > most:
        raise InvalidInput(
            f"a sequence would take {needed:,} numbers in one layer, and its {there:,} weights justify {most:,}"
        )


def _numbers(stored: torch.Tensor, n: int) -> np.ndarray:
    """Stored pairs as whole numbers (pairs, n), one pair at least."""
    if stored.dtype != torch.int32 or stored.ndim != 2 or stored.shape[1] != n or len(stored) == 0:
        raise InvalidInput(f"pairs must be whole numbers (pairs, {n}); got {stored.dtype} {tuple(stored.shape)}")
    return stored.numpy().astype(np.int64)


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    """The record's fields on tokens; refuses what a saved witness never holds."""
    stored = record["tokens"]
    if not isinstance(stored, dict) or not isinstance(record["info"], dict):
        raise InvalidInput("'tokens' and 'info' must be objects")
    for name in ("n", "base", "digits"):
        if type(stored[name]) is not int or stored[name] < 1:
            raise InvalidInput(f"'{name}' must be a positive whole number; got {stored[name]!r} instead")
    if stored["digits"] * math.log2(stored["base"]) > 62:
        raise InvalidInput(f"{stored['digits']} digits to the base {stored['base']} are not a number of 64 bits")
    for name in ("fixed", "symmetric"):
        if not isinstance(stored[name], bool):
            raise InvalidInput(f"'{name}' must be true or false; got {stored[name]!r} instead")
    if stored["sums"] not in SUMS or stored["purpose"] not in PURPOSES:
        raise InvalidInput(f"'sums' must be one of {', '.join(SUMS)}, 'purpose' one of {', '.join(PURPOSES)}")
    _check_info(record["info"], INFO[stored["purpose"]])
    # All that is said of a table is said of its V^n inputs of n tokens: there must be no others to ask for.
    if stored["purpose"] == "table" and not stored["fixed"]:
        raise InvalidInput("a table must be 'fixed', all its inputs of n tokens; this one takes shorter ones")
    if stored["purpose"] != "table" and stored["symmetric"]:
        raise InvalidInput("a memorised data set promises its pairs as they stand; only a table is 'symmetric'")
    return stored


def _check_info(info: dict[str, Any], right: dict[str, Callable[[Any], bool]]) -> None:
    """All that a witness of its purpose says, or nothing: a sentence may be made of several of them."""
    unknown = sorted(info.keys() - right.keys())
    if unknown:
        raise InvalidInput(f"'info' holds {unknown[0]!r}, which no saved witness does")
    missing = sorted(right.keys() - info.keys()) if info else []
    if missing:
        raise InvalidInput(f"'info' must hold {missing[0]!r} beside the others")
    wrong = [name for name, value in info.items() if not right[name](value)]
    if wrong:
        raise InvalidInput(f"{wrong[0]!r} in 'info' is {str(info[wrong[0]])[:40]!r}, which no saved witness says")


def sums_of(network: EmbeddedTransformer) -> str | None:
    """What the attention adds up: slots, counts or codes; None if the network is of no form that we can prove. What its
    stages are called says nothing.
    """
    if CodeForm.of(network) is not None:
        return "codes"
    return summed(network) if network.embedding is not None else None


def token_verdicts(network: EmbeddedTransformer, fixed: bool, names: Iterable[str] = DTYPES) -> dict[str, Verdict]:
    """In which dtypes every input gets the exact network's answer: proved from the weights, or undecided.

    Slots and counts are added up over all n positions: where an input may be shorter, nothing is proved of them. A
    network whose weights a dtype does not hold would be another one there, and another one again when it comes back.
    """
    form = CodeForm.of(network)
    if form is not None:
        found = {name: form.verdict(name) for name in names}
    elif fixed:
        found = dtype_verdicts(network, names)
    else:
        reason = "undecided: the weights are not those of a memory of codes, and inputs may be padded"
        found = {name: Verdict(None, (reason,)) for name in names}
    return {name: _not_held(network, name) or verdict for name, verdict in found.items()}


def _not_held(network: EmbeddedTransformer, name: str) -> Verdict | None:
    """A weight that rounding to a dtype would change."""
    for place, weight in network.named_parameters():
        there = weight.detach().to(as_dtype(name)).to(weight.dtype)
        if not torch.equal(there, weight):
            first = float(weight.detach()[there != weight][0])
            return Verdict(False, (f"{place} holds {first!r}, which {name} cannot represent",))
    return None
