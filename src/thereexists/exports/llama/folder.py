"""The main path of ``thereexists export w/ --to llama``: lower, prove, write, and run what was written.

A folder appears only if the dtype that was asked for is proved, by the verifier's own proof, from the weights as they
are (the card claims the other one too where that is proved), and if plain ``transformers`` gives the right answers on
the witness's samples, or on random texts where there is no witness.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists.certificates.llama import format as stock
from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.format import Checkpoint, config_of, generation_of
from thereexists.certificates.llama.layouts import stock_of
from thereexists.certificates.llama.run import loaded
from thereexists.certificates.llama.tokens import tokenizer_config_of
from thereexists.certificates.llama.verify import proofs
from thereexists.core.dtypes import as_dtype
from thereexists.core.errors import CannotBuild
from thereexists.core.json_files import record_digest
from thereexists.core.modes import as_the_umask_says
from thereexists.core.regular_files import file_sha256
from thereexists.core.tensor_files import save_tensors
from thereexists.exports.llama.card import card
from thereexists.exports.llama.forms import form_of
from thereexists.exports.llama.layout import EPS, THETA, Layout, as_json, refuse
from thereexists.exports.llama.lower import lowered
from thereexists.exports.llama.tokenizer import tokenizer_for

_TRIED = 64


@dataclass(frozen=True)
class Written:
    """A checkpoint that lies in a folder, as ``transformers`` has loaded it, and what the folder claims."""

    claim: Claim
    model: Any
    stated: dict[str, Any]

    def logits(self, ids: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self.model(torch.from_numpy(ids)).logits.float().numpy()

    def compared(self, witness: Any) -> tuple[int, str]:
        """On how many strings or texts it was run, and was right; refused where it was not."""
        if witness is not None and (compare := form_of(self.claim).compare) is not None:
            return compare(self.claim, self.logits, witness)
        tokens = self.claim.drawn(np.random.default_rng(), _TRIED)
        if not self.claim.answers_right(tokens, self.logits(tokens)):
            raise CannotBuild("The export does not answer as it should; nothing was written.")
        return _TRIED, "texts"

    def record(self, said: dict[str, Any]) -> dict[str, Any]:
        """The claim with what the comparison found, and the digest of all of it."""
        record = {**said, **self.stated}
        return record | {"digest": record_digest(record)}


def write_symbols(claim: Claim, dtype: str, folder: Path, beside: str = "", named: str = "llama") -> Written:
    """Write all files but the record; refused where there is no proof in the dtype. ``beside``: more for the card;

    ``named``: the layout, one of ``certificates/llama/layouts.py``.
    """
    stocked = stock_of(named)
    refuse(dtype)
    layout, form = Layout.of(claim), form_of(claim)
    weights = {name: weight.to(as_dtype(dtype)) for name, weight in lowered(layout, form.read_out(claim)).items()}
    found, reasons = proofs(Checkpoint(layout.shape, THETA, EPS, weights, claim))
    if dtype not in found:
        raise CannotBuild(f"The checkpoint is not proved in {dtype}: {reasons[dtype]}")
    if (origin := claim.origin()) is not None and origin.passed is False:  # the card says it
        raise CannotBuild(f"The record is wrong about where the machine comes from: {origin.detail.rstrip('.')}.")
    save_tensors(stocked.written(weights), folder / stock.WEIGHTS, metadata={"format": "pt"})
    tokenizer_for(claim.vocabulary).save(str(folder / stock.TOKENIZER))
    texts = {
        stock.CONFIG: as_json(config_of(layout.shape, THETA, EPS, dtype, named)),
        stock.GENERATION: as_json(generation_of(claim.new_tokens)),
        stock.TOKENIZER_CONFIG: as_json(tokenizer_config_of(layout.shape.positions)),
        stock.CARD: card(form.words(claim), claim, layout.shape, list(found), stocked.architecture, beside),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name in stock.FILES:
        as_the_umask_says(folder / name)
    stated = {
        "format_version": stock.VERSION,
        "claim": claim.describe(),
        "dtypes": list(found),
        "files": {name: file_sha256(folder / name) for name in stock.FILES},
    }
    return Written(claim, loaded(folder, dtype), stated)
