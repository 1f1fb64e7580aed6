"""Verdicts about multihead patterns, whose blocks use all steps at once, against the definition for small n."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.patterns import brute
from thereexists.cli import app
from thereexists.patterns import check, from_mask

CONFIG = {
    "model_type": "gpt_oss",
    "num_hidden_layers": 2,
    "sliding_window": 5,
    "attention_chunk_size": 8,
    "layer_types": ["sliding_attention", "chunked_attention"],
    "max_position_embeddings": 12,
}


def test_the_printed_verdict_of_a_causal_model(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    for config, word in (("multihead", "full"), ("sequential", "not full"), ("union", "full")):
        done = CliRunner().invoke(app, ["pattern", "check", str(tmp_path / "config.json"), "--config", config])
        assert f"layers the causal receptive field {{0..k}} is {word}" in done.stdout.replace("\n", " ")


def masks_of(rng, causal, loops):
    n, p = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    masks = rng.random((p, n, n)) < rng.uniform(0.2, 0.8)
    masks &= np.tri(n, dtype=bool) if causal else True
    if loops:
        masks |= np.eye(n, dtype=bool)
    elif causal:
        masks[:, 0, 0] = True
    lonely = ~masks.any(2)
    masks[lonely, 0] = True  # every token attends to somebody
    return masks


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loops", [True, False], ids=["loops", "without"])
@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both-ways"])
def test_full_within_layers_is_what_the_definition_says(causal, loops):
    rng = np.random.default_rng(3)
    for _ in range(50):
        masks, layers = masks_of(rng, causal, loops), int(rng.integers(1, 5))
        causal_now = not np.triu(masks.any(0), 1).any()
        for multihead in (True, False):
            pattern = replace(from_mask(masks), layers=layers)
            pattern = pattern.multihead(6) if multihead else pattern
            verdict = check(pattern)
            wanted = brute.depth(masks.any(0, keepdims=True) if multihead else masks, causal_now)
            assert verdict.full_within_layers is (wanted is not None and wanted <= layers)
            if causal_now and verdict.causal.holds is False and multihead:
                assert wanted is None
            if not causal_now:
                assert verdict.field_depth == wanted
