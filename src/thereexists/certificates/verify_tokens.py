"""Re-check a saved table or data set: every stored pair again, from the weights in the file.

All pairs are answered by key where the weights prove that this is what the network gives (``recall.py``), else by the
plain network, and a random sample, drawn anew each time, by the plain network, every
weight of it. Padding is tried too: what stands in a padded position must not change an answer.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from thereexists.certificates.check import Check
from thereexists.recall import index_of
from thereexists.tokens import TokenWitness, from_record

_SAMPLE = 64


def token_checks(path: Any, record: dict[str, Any], weights: dict[str, torch.Tensor]) -> Iterator[Check]:
    """The checks, one after the other."""
    witness = from_record(path, record, weights, None)
    claimed, actual = record.get("class"), witness.network.shape() | {"positional": witness.network.E is not None}
    small = claimed == actual and witness.network.depth <= 4
    yield Check("class", small, f"claimed {claimed}, found {actual}, {witness.network.depth} blocks")
    unsafe = [n for n in witness.network.safe if not witness.verdicts()[n].holds]
    yield Check("dtypes", not unsafe, f"not safe in {', '.join(unsafe)}" if unsafe else ", ".join(witness.network.safe))
    yield _check_pairs(witness)
    exact = witness.exact()
    how = "by key" if index_of(witness.network) is not None else "by the plain network"
    yield Check("recall", bool(exact.all()), f"{int(exact.sum()):,} of {len(exact):,} stored pairs {how}")
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(len(exact), min(_SAMPLE, len(exact)), replace=False))
    dense = witness.run(witness.inputs[rows], "dense")
    right = bool((dense == witness.outputs[rows]).all())
    yield Check("plain network", right, f"{len(rows)} random pairs (seed {seed}) by every weight")
    if witness.symmetric:
        shuffled = rng.permuted(witness.inputs[rows], axis=1)
        same = bool((witness.run(shuffled, "dense") == witness.outputs[rows]).all())
        yield Check("symmetry", same, f"{len(rows)} random orders of stored inputs")
    if not witness.fixed:
        yield Check("padding", _padding_is_inert(witness, rows, rng), f"other embeddings behind {len(rows)} inputs")


def _check_pairs(witness: TokenWitness) -> Check:
    """Stored pairs must be what they say: distinct inputs, numbers within the vocabularies."""
    x, y = witness.inputs, witness.outputs
    shaped = x.shape == y.shape and x.ndim == 2 and x.shape[1] == witness.n and len(x) > 0
    ranged = shaped and bool((x >= 0).all() and (x <= len(witness.vocabulary)).all() and (x[:, 0] > 0).all())
    ranged = ranged and bool((y >= 1).all() and (y < 2 + len(witness.output_vocabulary)).all())
    distinct = ranged and len(np.unique(x, axis=0)) == len(x)
    return Check("pairs", distinct, f"{len(x):,} pairs of {witness.n} positions" + ("" if distinct else ", not sound"))


def _padding_is_inert(witness: TokenWitness, rows: np.ndarray, rng: np.random.Generator) -> bool:
    """Random tokens written behind the end, masked as padding: the answers must be the same."""
    ids = witness.inputs[rows]
    noise = rng.integers(1, len(witness.vocabulary) + 1, ids.shape)
    filled = torch.from_numpy(np.where(ids == 0, noise, ids))
    with torch.no_grad():
        parts = [
            witness.network(filled[i : i + 4], torch.from_numpy(ids[i : i + 4] > 0)).double().numpy()
            for i in range(0, len(ids), 4)
        ]
    return bool((witness.digits.join(np.concatenate(parts)) == witness.outputs[rows]).all())
