"""Re-check a stock folder over the reals: its files, the bound in every dtype that is claimed, its card, and a trial.

The main path of ``thereexists verify DIR`` for such a folder. Nothing that builds or exports is imported.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists.certificates.check import Check
from thereexists.certificates.llama.card import begins_openly
from thereexists.certificates.llama.format import CARD, REAL_FILES, Checkpoint, read_claim, read_network
from thereexists.certificates.llama.layouts import stock_of
from thereexists.certificates.llama.reals.claim import RealClaim
from thereexists.certificates.llama.reals.proof import RealProof, prove_reals
from thereexists.certificates.llama.rounding import DTYPES
from thereexists.certificates.llama.run import loaded
from thereexists.certificates.program_numpy import run_reals, steps
from thereexists.core.errors import InvalidInput, NotProved
from thereexists.core.json_files import MOST_BYTES, malformed
from thereexists.core.regular_files import read_regular
from thereexists.core.rounded_figures import rounded_up

LARGEST = 2.0**60  # of a weight; that nothing on the way is too large is part of the proof
_TRIED, _MOST_STEPS = 16, 1 << 25


def real_checks(folder: Path) -> Iterator[Check]:
    """The checks, one after the other; a proof that fails ends them."""
    record = read_claim(folder, REAL_FILES)
    with malformed(folder, "is not a complete checkpoint"):
        claim = RealClaim.read(record["claim"])
        if list(claim.bounds) != record["dtypes"]:
            raise InvalidInput("the record claims one thing by its dtypes, and another by its bounds")
        checkpoint = read_network(folder, record, claim, speaks=False, largest=LARGEST)
    shape = checkpoint.shape
    yield Check("files", True, "config, weights and record are whole, of their kind, and match their hashes")
    sizes = f"{shape.layers} layer{'s' if shape.layers > 1 else ''}, d_model {shape.d_model}"
    name = stock_of(checkpoint.layout).architecture
    yield Check("class", True, f"an unmodified {name}: {sizes}, {shape.parameters:,} parameters")
    found, reasons = real_proofs(checkpoint)
    for name, bound in claim.bounds.items():
        if name not in found:
            yield Check("proof", False, f"not proved in {name}: {reasons[name]}")
            return
        proved = found[name].bound
        if not proved <= bound:
            yield Check("proof", False, f"{name}: off by at most {rounded_up(proved, 4)}, proved; {bound!r} is claimed")
            return
        yield Check("proof", True, f"{name}: off by at most {rounded_up(proved, 4)} at every token of every input")
    content = read_regular(folder / CARD, MOST_BYTES)
    said = begins_openly(content, claim.paragraph(), speaks=False)
    words = "begins with what is proved, word by word, and says that the rest is not checked"
    yield Check("card", said, f"the card {words}" if said else "the card begins with something else")
    yield _trial(folder, checkpoint)


def real_proofs(checkpoint: Checkpoint) -> tuple[dict[str, RealProof], dict[str, str]]:
    """In every dtype the proof, or why there is none."""
    found, reasons = {}, {}
    for name in DTYPES:
        try:
            found[name] = prove_reals(checkpoint, name)
        except NotProved as error:
            reasons[name] = str(error)
    return found, reasons


def _trial(folder: Path, checkpoint: Checkpoint) -> Check:
    if find_spec("transformers") is None:
        return Check("trial", True, "not run, for transformers is not installed; the proof does not need it")
    seed = secrets.randbits(32)
    claim, rng = checkpoint.claim, np.random.default_rng(seed)
    X = drawn(claim, rng, max(1, min(_TRIED, _MOST_STEPS // steps(claim.program))))
    for name, bound in claim.bounds.items():
        off = far_off(claim, loaded(folder, name), X)
        if not off <= bound:
            return Check("trial", False, f"a random input is off by {off:.3g} in {name} (seed {seed})")
    number = f"{len(X)} random inputs" if len(X) > 1 else "a random input"
    return Check("trial", True, f"{number} (seed {seed}) by transformers in {', '.join(claim.bounds)}")


def drawn(claim: RealClaim, rng: np.random.Generator, count: int) -> np.ndarray:
    """Random inputs (count, n, d), with ends and ties among them."""
    low, high, d = (claim.tokens[name] for name in ("low", "high", "d"))
    unit = rng.random((count, claim.n, d))
    unit[::4] = rng.integers(0, 3, unit[::4].shape) / 2
    return low + (high - low) * unit


def far_off(claim: RealClaim, model: Any, X: np.ndarray) -> float:
    """The largest difference of a model's answers from the program's, less what float64 does to those."""
    E = model.model.embed_tokens.weight[: claim.n].detach().expand(len(X), -1, -1).clone()
    E[..., claim.network.inputs] = torch.from_numpy(X).to(E.dtype)
    with torch.no_grad():
        found = model(inputs_embeds=E).logits[..., : claim.outputs].double().numpy()
    wanted = run_reals(claim.program, X)
    if np.isnan(found).any():
        return float("inf")
    largest = max(float(real.size.max()) for real in claim.network.reals)
    return float(np.abs(found - wanted).max()) - largest * 2.0**-40
