"""The main path of ``thereexists export w/ --to llama``: lower, prove, write, and run what was written.

A folder appears only if the dtype that was asked for is proved, by the verifier's own proof, from the weights as they
are (the card claims the other one too where that is proved), and if plain ``transformers`` gives the right answers on
the witness's samples, or on random texts where there is no witness.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists.automata.automaton import Automaton
from thereexists.certificates.automaton_proof import FIRST
from thereexists.certificates.automaton_proof import SYMBOLS as OURS
from thereexists.certificates.llama import format as stock
from thereexists.certificates.llama.addition import Addition
from thereexists.certificates.llama.automata import AutomatonClaim
from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.format import Checkpoint, config_of, generation_of
from thereexists.certificates.llama.rounding import DTYPES, REFUSED
from thereexists.certificates.llama.run import loaded
from thereexists.certificates.llama.tokens import BOS, SYMBOLS, tokenizer_config_of
from thereexists.certificates.llama.verify import proofs
from thereexists.core.dtypes import as_dtype, dtype_name
from thereexists.core.errors import CannotBuild
from thereexists.core.json_files import record_digest
from thereexists.core.storage import file_sha256
from thereexists.core.tensor_files import save_tensors
from thereexists.exports.llama.answers import addition_answers, automaton_answers
from thereexists.exports.llama.card import Words, addition_words, automaton_words, card
from thereexists.exports.llama.layout import EPS, THETA, Layout
from thereexists.exports.llama.lower import lowered
from thereexists.exports.llama.tokenizer import tokenizer_for

_TRIED = 64


@dataclass(frozen=True)
class Written:
    """A checkpoint that lies in a folder, as ``transformers`` has loaded it, and what the folder claims."""

    claim: Claim
    model: Any
    stated: dict[str, Any]

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        """The read-out (batch, n + 1, states + outputs + 1) of an automaton's witness, for its token numbers."""
        logits = self.logits(np.where(tokens == FIRST, BOS, tokens - OURS + SYMBOLS))
        return read_out(self.claim, logits)  # pyright: ignore[reportArgumentType]

    def logits(self, ids: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self.model(torch.from_numpy(ids)).logits.float().numpy()

    def record(self, said: dict[str, Any]) -> dict[str, Any]:
        """The claim with what the comparison found, and the digest of all of it."""
        record = {**said, **self.stated}
        return record | {"digest": record_digest(record)}


def write_llama(witness: Any, folder: Path) -> Written:
    """An automaton's witness; refused where there is no proof in its dtype."""
    stored = witness.lowerable()
    claim = AutomatonClaim(stored.maps, stored.n)
    return _written(claim, automaton_answers(claim), automaton_words(claim), dtype_name(stored.network.dtype), folder)


def write_addition(digits: int, dtype: str, folder: Path) -> tuple[Written, int]:
    """Addition as text, and on how many random texts, half of them full of carries, it was run and right."""
    claim = Addition.read({"kind": "addition", "digits": digits})
    written = _written(claim, addition_answers(claim), addition_words(claim), dtype, folder)
    tokens = claim.drawn(np.random.default_rng(), _TRIED)
    if not claim.answers_right(tokens, written.logits(tokens)):
        raise CannotBuild("The export does not add; nothing was written.")
    return written, _TRIED


def _written(claim: Claim, read_out: np.ndarray, words: Words, dtype: str, folder: Path) -> Written:
    """Write all files but the record."""
    if dtype not in DTYPES:
        why = REFUSED.get(dtype, "stock checkpoints are run in float32 and bfloat16")
        raise CannotBuild(f"No stock Llama checkpoint in {dtype}: {why}.")
    layout = Layout.of(claim)
    weights = {name: weight.to(as_dtype(dtype)) for name, weight in lowered(layout, read_out).items()}
    found, reasons = proofs(Checkpoint(layout.shape, THETA, EPS, weights, claim))
    if dtype not in found:
        raise CannotBuild(f"The checkpoint is not proved in {dtype}: {reasons[dtype]}")
    save_tensors(weights, folder / stock.WEIGHTS, metadata={"format": "pt"})
    tokenizer_for(claim.vocabulary).save(str(folder / stock.TOKENIZER))
    texts = {
        stock.CONFIG: _json(config_of(layout.shape, THETA, EPS, dtype)),
        stock.GENERATION: _json(generation_of(claim.new_tokens)),
        stock.TOKENIZER_CONFIG: _json(tokenizer_config_of(layout.shape.positions)),
        stock.CARD: card(words, claim, layout.shape, list(found)),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name in stock.FILES:
        (folder / name).chmod(0o644)
    stated = {
        "format_version": stock.VERSION,
        "claim": claim.describe(),
        "dtypes": list(found),
        "files": {name: file_sha256(folder / name) for name in stock.FILES},
    }
    return Written(claim, loaded(folder, dtype), stated)


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def read_out(claim: AutomatonClaim, logits: np.ndarray) -> np.ndarray:
    """One-hot state (none for the dead one), one-hot output, accepted: by the largest logit of each group."""
    machine, vocabulary = claim.machine, claim.vocabulary
    parts = [_one_hot(machine)[logits[..., vocabulary.states].argmax(-1)]]
    if machine.writes:
        parts.append(np.eye(len(machine.output_alphabet))[logits[..., vocabulary.outputs].argmax(-1)])
    parts.append((logits[..., vocabulary.verdicts].argmax(-1) == 0)[..., None].astype(np.float64))
    return np.concatenate(parts, axis=-1)


def _one_hot(machine: Automaton) -> np.ndarray:
    found = np.eye(machine.size)
    if machine.dead is not None:
        found[machine.dead] = 0.0
    return found
