"""A random forger of look-ups, reversal and recall: whatever single change passes the proof is right on every text."""

import itertools

import numpy as np
import pytest
import torch

from tests.certificates.llama.short_claims import BACKWARDS, FOLLOWS, RECALLED, WHOLE
from thereexists.certificates.llama.format import Checkpoint, read_checkpoint, read_claim
from thereexists.certificates.llama.rounding import DTYPES
from thereexists.certificates.llama.run import loaded
from thereexists.certificates.llama.tokens import BOS, PAD, SYMBOLS
from thereexists.certificates.llama.verify import proofs
from thereexists.exports import export_claim

pytest.importorskip("transformers")
CHANGES = 120


def filled(texts):
    most = max(map(len, texts))
    return np.array([[*text, *[PAD] * (most - len(text))] for text in texts])


def texts_of(claim):
    """Every text of the claim, whole."""
    if claim is WHOLE:
        return [text[:-1] for text in claim.texts]
    if claim is FOLLOWS:
        S = len(claim.symbols)
        return [[BOS, *(SYMBOLS + s for s in word)] for word in itertools.product(range(S), repeat=7)]
    if claim is BACKWARDS:
        L = len(claim.letters)
        words = [word for m in range(1, claim.n + 1) for word in itertools.product(range(L), repeat=m)]
        asked = [[BOS, *(SYMBOLS + a for a in word), SYMBOLS + L] for word in words]
        return [text + [SYMBOLS + L + 1 + a for a in word[::-1]] for text, word in zip(asked, words, strict=True)]
    found, K, V = [], len(claim.keys), len(claim.values)
    for keys in itertools.permutations(range(K), 3):
        for values in itertools.product(range(V), repeat=2):
            pairs = [token for k, v in zip(keys[:2], values, strict=True) for token in (SYMBOLS + k, SYMBOLS + K + v)]
            answers = [[claim.first_answer + values[0]], [claim.first_answer + values[1]], []]
            found += [[BOS, *pairs, SYMBOLS + k, *answer] for k, answer in zip(keys, answers, strict=True)]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("claim", [WHOLE, FOLLOWS, BACKWARDS, RECALLED], ids=lambda claim: type(claim).__name__)
def test_single_weights_are_caught_or_change_nothing(tmp_path, claim):
    export_claim(claim, tmp_path / "stock")
    checkpoint = read_checkpoint(tmp_path / "stock", read_claim(tmp_path / "stock"))
    models, rng = {dtype: loaded(tmp_path / "stock", dtype) for dtype in DTYPES}, np.random.default_rng(0)
    tokens, passed = filled(texts_of(claim)), 0
    names = sorted(checkpoint.weights)
    for _ in range(CHANGES):
        name = names[rng.integers(len(names))]
        changed = checkpoint.weights[name].clone()
        at = tuple(rng.integers(0, size) for size in changed.shape)
        if rng.random() < 0.7 and changed.count_nonzero():  # a weight that counts
            places = changed.nonzero()
            at = tuple(places[rng.integers(len(places))].tolist())
        small, factor = rng.choice([0.0, 1.0, -1.0, 2.0, 512.0]), rng.choice([1.01, 1.05, 1.25, 0.5, -1.0])
        changed[at] = float(small) if rng.random() < 0.3 else changed[at] * float(factor)
        found, _ = proofs(Checkpoint(**{**vars(checkpoint), "weights": {**checkpoint.weights, name: changed}}))
        for dtype in found:
            passed += 1
            weight = models[dtype].get_parameter(name)
            kept = weight.data.clone()
            weight.data.copy_(changed)
            with torch.no_grad():
                logits = models[dtype](torch.from_numpy(tokens)).logits.float().numpy()
            assert claim.answers_right(tokens, logits), (name, at, dtype)
            weight.data.copy_(kept)
    assert 0 < passed < 2 * CHANGES
