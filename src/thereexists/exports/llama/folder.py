"""The main path of ``thereexists export w/ --to llama``: lower, prove, write, and run what was written.

A folder appears only if the dtype that was asked for is proved, by the verifier's own proof, from the weights as they
are (the card claims the other one too where that is proved), and if plain ``transformers`` gives the witness's answers
on its samples.
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
from thereexists.certificates.llama.format import Checkpoint, config_of, generation_of
from thereexists.certificates.llama.rounding import DTYPES, REFUSED
from thereexists.certificates.llama.run import loaded
from thereexists.certificates.llama.tokens import BOS, SYMBOLS, tokenizer_config_of, vocabulary_of
from thereexists.certificates.llama.verify import proofs
from thereexists.core.dtypes import as_dtype, dtype_name
from thereexists.core.errors import CannotBuild
from thereexists.core.json_files import record_digest
from thereexists.core.storage import file_sha256
from thereexists.core.tensor_files import save_tensors
from thereexists.exports.llama.card import card
from thereexists.exports.llama.layout import EPS, THETA, Layout
from thereexists.exports.llama.lower import lowered
from thereexists.exports.llama.tokenizer import tokenizer_for


@dataclass(frozen=True)
class Written:
    """A checkpoint that lies in a folder: called, it runs it; ``record`` is what the folder claims."""

    checkpoint: Checkpoint
    model: Any
    claim: dict[str, Any]

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        """The witness's read-out (batch, n + 1, states + outputs + 1) for its token numbers."""
        ids = np.where(tokens == FIRST, BOS, tokens - OURS + SYMBOLS)
        with torch.no_grad():
            logits = self.model(torch.from_numpy(ids)).logits.float().numpy()
        return read_out(self.checkpoint.maps.automaton, logits)

    def record(self, said: dict[str, Any]) -> dict[str, Any]:
        """The claim with what the comparison found, and the digest of all of it."""
        record = {**said, **self.claim}
        return record | {"digest": record_digest(record)}


def write_llama(witness: Any, folder: Path) -> Written:
    """Write all files but the record; refused where there is no proof in the dtype of the witness."""
    stored = witness.lowerable()
    dtype = dtype_name(stored.network.dtype)
    if dtype not in DTYPES:
        why = REFUSED.get(dtype, "stock checkpoints are run in float32 and bfloat16")
        raise CannotBuild(f"No stock Llama checkpoint in {dtype}: {why}.")
    layout = Layout.of(stored.maps, stored.n)
    embedding = stored.network.embedding[FIRST:, : stored.maps.own].detach().double().numpy()
    weights = {name: weight.to(as_dtype(dtype)) for name, weight in lowered(layout, embedding).items()}
    checkpoint = Checkpoint(layout.shape, THETA, EPS, weights, stored.maps, stored.n)
    found, reasons = proofs(checkpoint)
    if dtype not in found:
        raise CannotBuild(f"The checkpoint is not proved in {dtype}: {reasons[dtype]}")
    vocabulary = vocabulary_of(stored.automaton)
    save_tensors(weights, folder / stock.WEIGHTS, metadata={"format": "pt"})
    tokenizer_for(vocabulary).save(str(folder / stock.TOKENIZER))
    texts = {
        stock.CONFIG: _json(config_of(layout.shape, THETA, EPS, dtype)),
        stock.GENERATION: _json(generation_of()),
        stock.TOKENIZER_CONFIG: _json(tokenizer_config_of(stored.n + 2)),
        stock.CARD: card(checkpoint, list(found)),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name in stock.FILES:
        (folder / name).chmod(0o644)
    claim = {
        "format_version": stock.VERSION,
        "n": stored.n,
        "automaton": stored.automaton.describe(),
        "maps": stored.maps.describe(),
        "dtypes": list(found),
        "files": {name: file_sha256(folder / name) for name in stock.FILES},
    }
    return Written(checkpoint, loaded(folder, dtype), claim)


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def read_out(machine: Automaton, logits: np.ndarray) -> np.ndarray:
    """One-hot state (none for the dead one), one-hot output, accepted: by the largest logit of each group."""
    vocabulary = vocabulary_of(machine)
    one_hot = np.eye(machine.size)
    if machine.dead is not None:
        one_hot[machine.dead] = 0.0
    parts = [one_hot[logits[..., vocabulary.states].argmax(-1)]]
    if machine.writes:
        parts.append(np.eye(len(machine.output_alphabet))[logits[..., vocabulary.outputs].argmax(-1)])
    parts.append((logits[..., vocabulary.verdicts].argmax(-1) == 0)[..., None].astype(np.float64))
    return np.concatenate(parts, axis=-1)
