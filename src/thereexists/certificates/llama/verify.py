"""Re-check a stock Llama folder: its files, the proof in every dtype that is claimed, its card, and a trial.

The main path of ``thereexists verify DIR`` for such a folder. Nothing that builds or exports is imported; where
``transformers`` is installed, its own ``LlamaForCausalLM`` runs random strings at the end, for whoever does not believe
the proof.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from thereexists.certificates.check import Check
from thereexists.certificates.llama.card import begins_openly, claim_of
from thereexists.certificates.llama.format import CARD, Checkpoint, read_checkpoint, read_claim
from thereexists.certificates.llama.layouts import stock_of
from thereexists.certificates.llama.proof import Proof, prove
from thereexists.certificates.llama.rounding import DTYPES
from thereexists.certificates.llama.run import loaded, misread
from thereexists.core.errors import NotProved
from thereexists.core.json_files import MOST_BYTES
from thereexists.core.regular_files import read_regular
from thereexists.core.rounded_figures import rounded_down, rounded_up

_TRIED = 4  # random texts in every dtype


def checkpoint_checks(folder: Path) -> Iterator[Check]:
    """The checks, one after the other; a proof that fails ends them."""
    record = read_claim(folder)
    checkpoint = read_checkpoint(folder, record)
    shape = checkpoint.shape
    yield Check("files", True, "config, weights, tokenizer and record are whole, of their kind, and match their hashes")
    layers = f"{shape.layers} layer{'s' if shape.layers > 1 else ''}"
    sizes = f"{layers}, d_model {shape.d_model}, {shape.parameters:,} parameters"
    yield Check("class", True, f"an unmodified {stock_of(checkpoint.layout).architecture}: {sizes}")
    origin = checkpoint.claim.origin()
    if origin is not None:
        yield origin
    found, reasons = proofs(checkpoint)
    for name in record["dtypes"]:
        if name not in found:
            yield Check("proof", False, f"not proved in {name}: {reasons[name]}")
            return
        p = found[name]
        detail = (
            f"{name}: the right token leads by {rounded_down(p.lead, 4)}, an answer by {rounded_down(p.answer, 4)}, "
            f"bits err by {rounded_up(p.error, 2)}"
        )
        yield Check("proof", True, detail)
    content = read_regular(folder / CARD, MOST_BYTES)
    said = begins_openly(content, claim_of(checkpoint.claim, record["dtypes"]), speaks=True)
    words = "begins with what is proved, word by word, and says that the rest is not checked"
    yield Check("card", said, f"the card {words}" if said else "the card begins with something else")
    yield _trial(folder, checkpoint, record["dtypes"])


def proofs(checkpoint: Checkpoint) -> tuple[dict[str, Proof], dict[str, str]]:
    """In every dtype the proof, or why there is none."""
    found, reasons = {}, {}
    for name in DTYPES:
        try:
            found[name] = prove(checkpoint, name)
        except NotProved as error:
            reasons[name] = str(error)
    return found, reasons


def _trial(folder: Path, checkpoint: Checkpoint, dtypes: list[str]) -> Check:
    if find_spec("transformers") is None:
        return Check("trial", True, "not run, because transformers is not installed; the proof does not need it")
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    text = misread(folder, checkpoint.claim.vocabulary, rng)
    if text is not None:
        return Check("trial", False, f"the tokenizer that transformers makes of the folder misreads {text[:40]!r}")
    tokens = checkpoint.claim.drawn(rng, _TRIED)
    for name in dtypes:
        with torch.no_grad():
            logits = loaded(folder, name)(torch.from_numpy(tokens)).logits.float().numpy()
        if not checkpoint.claim.answers_right(tokens, logits):
            return Check("trial", False, f"a random text goes wrong in {name} (seed {seed})")
    return Check("trial", True, f"{_TRIED} random texts (seed {seed}) by transformers in {', '.join(dtypes)}")
