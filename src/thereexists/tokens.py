"""A witness on tokens: a network for a finite function or a data set, with its vocabularies and the pairs it stores.

    witness = te.memorise([["a", "dog"], ["a", "cat"]], [["pes"], ["kočka"]])
    witness([["a", "cat"]])  # [["kočka"]]

An input that is no row of a table gets None. An input that is not in a memorised data set gets None too, unless its
key, the signs of a random sum, happens to be that of a stored input: only the stored pairs are promised.

Inputs are padded to n positions; a padded position is masked out of the attention, so it influences nobody, and answers
like any other: an output may be longer than its input.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists import storage
from thereexists._version import __version__
from thereexists.errors import CannotBuild, InvalidInput
from thereexists.json_files import malformed
from thereexists.model import EmbeddedTransformer, Transformer
from thereexists.model.embedded import DTYPES
from thereexists.precision import as_dtype
from thereexists.recall import run_tokens
from thereexists.token_forms import SUMS, CodeForm, sums_of
from thereexists.verdict import Verdict
from thereexists.vocabulary import END, FIRST, NOTHING, Digits, Vocabulary, check_sequences, check_vocabulary

KINDS = ("table", "memorise")  # a table answers its rows and nothing else; a memorised set promises only its pairs
# What a record may say beside the weights and pairs: shown as its author's word.
INFO = frozenset(
    (
        "rows",
        "complete",
        "contexts",
        "units",
        "seed",
        "signs",
        "draws",
        "repeated",
        "conflicts",
        "on_conflict",
        "memorised_tokens",
        "parameters_per_token",
        "lower_bound_up_to_logs",
    )
)
# What ``describe`` counts on the network and the pairs: nothing that a file says beside them takes its place.
COUNTED = frozenset(
    (
        "kind",
        "n",
        "pairs",
        "vocabulary",
        "output_vocabulary",
        "blocks",
        "d_model",
        "widths",
        "parameters",
        "dtype",
        "safe",
    )
)


@dataclasses.dataclass(frozen=True)
class TokenWitness:
    """``witness(sequences)`` answers; ``witness.to("bfloat16")``; ``witness.save("w")`` and ``te.load("w")``.

    ``inputs`` and ``outputs`` (pairs, n) are the stored pairs as numbers (0 pads an input, 1 ends an output). ``sums``
    says what the attention adds up: slots, counts or codes; the weights, not this word, decide which dtypes are safe.
    ``fixed``: every input must have exactly n tokens. ``symmetric``: the stored inputs stand for all their orders.
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
    kind: str
    info: dict[str, Any]

    def __call__(self, sequences: Any, engine: str = "indexed") -> list[list[Any] | None]:
        """The stored output of every sequence, or None where nothing is stored for it."""
        checked = check_sequences(sequences, "The input")
        if not checked:
            raise InvalidInput("The input must hold at least one sequence; got none.")
        for row, sequence in enumerate(checked):
            if not sequence or len(sequence) > self.n or (self.fixed and len(sequence) != self.n):
                wanted = f"exactly {self.n}" if self.fixed else f"1 to {self.n}"
                raise InvalidInput(f"A sequence must have {wanted} tokens; sequence {row} has {len(sequence)}.")
        numbers = self.run(self.vocabulary.encode(checked, self.n, first=1, fill=0), engine)
        return [self._decode(row) for row in numbers]

    def run(self, ids: np.ndarray, engine: str = "indexed") -> np.ndarray:
        """Input numbers (batch, n) to output numbers (batch, n): 0 nothing stored, 1 past the end, 2 … tokens.

        ``dense`` runs the network as it is; ``indexed`` finds the one memory unit that can fire by its key and skips
        the others, which add exactly 0: bit for bit the same.
        """
        return self.digits.join(run_tokens(self.network, ids, engine))

    def _decode(self, row: np.ndarray) -> list[Any] | None:
        if (row == NOTHING).any() or (row >= FIRST + len(self.output_vocabulary)).any():
            return None
        return [self.output_vocabulary.tokens[i - FIRST] for i in row.tolist() if i != END]

    def exact(self, engine: str = "indexed") -> np.ndarray:
        """Which stored pairs come back exactly: (pairs,)."""
        return (self.run(self.inputs, engine) == self.outputs).all(axis=1)

    def verdicts(self) -> dict[str, Verdict]:
        """Safe or not, with the reason, for every dtype."""
        return token_verdicts(self.network, self.fixed)

    def to(self, dtype: torch.dtype | str) -> TokenWitness:
        """The witness in another dtype. One that is not safe for it is refused, with the reason."""
        wanted = as_dtype(dtype)
        name = str(wanted).removeprefix("torch.")
        proved = self.verdicts()
        if not proved[name].holds:
            raise CannotBuild(f"This witness is not safe in {name}: {proved[name].reasons[0]}.")
        network = copy.deepcopy(self.network).to(wanted)
        network.safe = tuple(other for other, found in proved.items() if found.holds)
        return dataclasses.replace(self, network=network)

    def describe(self) -> dict[str, Any]:
        shape = self.network.shape()
        safe = {name: verdict.holds for name, verdict in self.verdicts().items()}
        return {
            **{key: value for key, value in self.info.items() if key not in COUNTED},
            "kind": self.kind,
            "n": self.n,
            "pairs": len(self.inputs),
            "vocabulary": len(self.vocabulary),
            "output_vocabulary": len(self.output_vocabulary),
            "blocks": self.network.depth,
            "d_model": shape["d"],
            "widths": {k: s.feed_forward.W_1.shape[1] for k, s in self.network.stages.items() if s.feed_forward},
            "parameters": self.network.parameter_count,
            "dtype": str(self.network.dtype).removeprefix("torch."),
            "safe": [name for name, holds in safe.items() if holds],
        }

    def save(self, path: str | Path) -> None:
        """Write the directory ``path`` (model.safetensors, witness.json), whole or not at all."""
        record = {
            "package_version": __version__,
            "dtype": str(self.network.dtype).removeprefix("torch."),
            "class": self.network.shape() | {"positional": self.network.E is not None},
            "structure": self.network.structure(),
            "vocabulary": list(self.vocabulary.tokens),
            "output_vocabulary": list(self.output_vocabulary.tokens),
            "tokens": {
                "n": self.n,
                "base": self.digits.base,
                "digits": self.digits.count,
                "sums": self.sums,
                "fixed": self.fixed,
                "symmetric": self.symmetric,
                "kind": self.kind,
            },
            "info": self.info,
        }
        weights = {name: tensor.detach().contiguous() for name, tensor in self.network.state_dict().items()}
        weights["pairs.inputs"] = torch.from_numpy(self.inputs.astype(np.int32))
        weights["pairs.outputs"] = torch.from_numpy(self.outputs.astype(np.int32))
        storage.write(Path(path), record, weights)


def from_record(
    path: str | Path, record: dict[str, Any], weights: dict[str, torch.Tensor], dtype: torch.dtype | str | None
) -> TokenWitness:
    """A saved token witness; refuses one whose dtype is not proved safe for it, whatever the record says."""
    return as_stored(path, record, weights).to(dtype or record["dtype"])


def as_stored(path: str | Path, record: dict[str, Any], weights: dict[str, torch.Tensor]) -> TokenWitness:
    """The witness as the file has it, its dtypes claimed and not yet proved: for those who check it."""
    with malformed(path, "is not a complete witness"):
        stored = _checked(record)
        inputs, outputs = (_numbers(weights.pop(f"pairs.{side}"), stored["n"]) for side in ("inputs", "outputs"))
        if inputs.shape != outputs.shape:
            raise InvalidInput(f"there are {len(inputs)} inputs and {len(outputs)} outputs")
        found = {tensor.dtype for tensor in weights.values()}
        network = Transformer.from_structure(record["structure"], weights)
        if not isinstance(network, EmbeddedTransformer) or network.embedding is None:
            raise InvalidInput("the network does not take tokens")
        if network.E is None or len(network.E) != stored["n"]:
            raise InvalidInput(f"the record says n = {stored['n']}, and the weights have another number of positions")
        if sums_of(network) not in (None, stored["sums"]):
            raise InvalidInput(f"the record says that it sums {stored['sums']}; its weights sum {sums_of(network)}")
        witness = TokenWitness(
            network, check_vocabulary(record["vocabulary"], "'vocabulary'"),
            check_vocabulary(record["output_vocabulary"], "'output_vocabulary'"),
            stored["n"], Digits(stored["base"], stored["digits"]), inputs, outputs,
            stored["sums"], stored["fixed"], stored["symmetric"], stored["kind"], record["info"],
        )  # fmt: skip
        vocabulary = (len(network.embedding), network.W_out.shape[0])
        if found != {as_dtype(record["dtype"])} or vocabulary != (len(witness.vocabulary) + 1, witness.digits.count):
            raise InvalidInput("dtype, vocabulary or digits do not fit the weights")
        if (inputs < 0).any() or (inputs > len(witness.vocabulary)).any():
            raise InvalidInput("a stored input holds a number that no token has")
        if ((inputs[:, 1:] > 0) & (inputs[:, :-1] == 0)).any():
            raise InvalidInput("a stored input has padding before a token: nobody can ask for it")
    return witness


def _numbers(stored: torch.Tensor, n: int) -> np.ndarray:
    """Stored pairs as whole numbers (pairs, n), one pair at least."""
    if stored.dtype != torch.int32 or stored.ndim != 2 or stored.shape[1] != n or len(stored) == 0:
        raise InvalidInput(f"pairs are whole numbers (pairs, {n}); got {stored.dtype} {tuple(stored.shape)}")
    return stored.numpy().astype(np.int64)


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    """The record's fields on tokens; refuses what a saved witness never holds."""
    stored = record["tokens"]
    if not isinstance(stored, dict) or not isinstance(record["info"], dict):
        raise InvalidInput("'tokens' and 'info' must be objects")
    unknown = sorted(set(record["info"]) - INFO)
    if unknown:
        raise InvalidInput(f"'info' holds {unknown[0]!r}, which no saved witness does")
    for name in ("n", "base", "digits"):
        if type(stored[name]) is not int or stored[name] < 1:
            raise InvalidInput(f"'{name}' must be a positive whole number; got {stored[name]!r} instead")
    if stored["digits"] * math.log2(stored["base"]) > 62:
        raise InvalidInput(f"{stored['digits']} digits to the base {stored['base']} are no number of 64 bits")
    for name in ("fixed", "symmetric"):
        if not isinstance(stored[name], bool):
            raise InvalidInput(f"'{name}' must be true or false; got {stored[name]!r} instead")
    if stored["sums"] not in SUMS or stored["kind"] not in KINDS:
        raise InvalidInput(f"'sums' must be one of {', '.join(SUMS)}, 'kind' one of {', '.join(KINDS)}")
    return stored


def token_verdicts(network: EmbeddedTransformer, fixed: bool, names: Iterable[str] = DTYPES) -> dict[str, Verdict]:
    """In which dtypes every input gets the exact network's answer: proved from the weights, or undecided.

    Slots and counts are added up over all n positions: where an input may be shorter, nothing is proved of them.
    """
    from thereexists.certificates.float_run import dtype_verdicts  # the proof reads this package's dtypes

    form = CodeForm.of(network)
    if form is not None:
        return {name: form.verdict(name) for name in names}
    if not fixed:
        reason = "undecided: the weights are not those of a memory of codes, and inputs may be padded"
        return {name: Verdict(None, (reason,)) for name in names}
    return dtype_verdicts(network, names)
