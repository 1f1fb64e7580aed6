"""Masks and batches: the shares BERT states, nothing special masked, nothing depending on how many processes run."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from thereexists.core.errors import InvalidInput
from thereexists.experiments.sampling import IGNORED, Place, Shuffle, mask_tokens, seed_of
from thereexists.experiments.settings import Budget, Settings, count, from_record, learning_rate
from thereexists.experiments.tokenizer import MASK, SEP, SPECIAL

CPU = torch.device("cpu")
VOCABULARY = 1000


def test_masking_has_berts_shares():
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(len(SPECIAL), VOCABULARY, (2000, 50), generator=generator)
    tokens[:, ::10] = SEP
    inputs, positions, labels = mask_tokens(tokens, 8, VOCABULARY, generator)
    assert (labels == tokens.gather(1, positions)).all()
    assert (labels >= len(SPECIAL)).all()  # nothing special is predicted
    assert all(len(set(row.tolist())) == 8 for row in positions[:50])
    untouched = torch.ones_like(tokens, dtype=torch.bool).scatter(1, positions, False)
    assert (inputs == tokens)[untouched].all()
    there = inputs.gather(1, positions)
    # Hoeffding: N = 16,000 draws, so a share is off by more than 0.02 with probability below 2 exp(-2 N 0.02²) < 6e-6
    # (a random token is the original one in 1 of 995 cases, inside that margin).
    assert 2 * math.exp(-2 * there.numel() * 0.02**2) < 6e-6
    assert abs((there == MASK).float().mean() - 0.8) < 0.02
    assert abs((there == labels).float().mean() - 0.1) < 0.02


def test_positions_are_drawn_uniformly():
    generator = torch.Generator().manual_seed(1)
    tokens = torch.full((20_000, 10), 7)
    _, positions, _ = mask_tokens(tokens, 3, 9, generator)
    shares = torch.bincount(positions.flatten(), minlength=10) / 20_000
    assert (shares - 0.3).abs().max() < 0.02  # Hoeffding as above, N = 20,000, ten events


def test_a_sequence_of_special_tokens_has_nothing_to_predict():
    tokens = torch.full((2, 6), SEP)
    inputs, _, labels = mask_tokens(tokens, 2, VOCABULARY, torch.Generator())
    assert (inputs == tokens).all()
    assert (labels == IGNORED).all()


@given(st.integers(1, 40), st.integers(1, 8), st.sampled_from([1, 2, 4]), st.integers(0, 5))
def test_every_example_once_an_epoch_and_the_same_for_any_number_of_processes(count, batches, world, seed):
    batch = 4 * batches
    if count * 4 < batch:
        with pytest.raises(InvalidInput, match="fewer than a batch"):
            Shuffle(count * 4, batch, seed, Place(CPU))
        return
    alone = Shuffle(count * 4, batch, seed, Place(CPU))
    shared = [Shuffle(count * 4, batch, seed, Place(CPU, rank, world)) for rank in range(world)]
    seen = []
    for step in range(alone.steps_per_epoch):
        together = torch.cat([part.indices(step) for part in shared])
        assert together.tolist() == alone.indices(step).tolist()
        seen += together.tolist()
    assert len(seen) == len(set(seen))
    first_again = Shuffle(count * 4, batch, seed, Place(CPU)).indices(alone.steps_per_epoch + 0)
    assert first_again.tolist() == alone.indices(alone.steps_per_epoch).tolist()  # no state is needed to jump ahead


def test_a_batch_must_divide_among_the_processes():
    with pytest.raises(InvalidInput, match="multiple of the 3"):
        Place(CPU, 0, 3).share(16)


def test_seeds_of_neighbours_differ():
    seeds = {seed_of(a, b, c) for a in range(10) for b in range(4) for c in range(200)}
    assert len(seeds) == 10 * 4 * 200
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_learning_rate_rises_then_falls_to_nothing():
    settings = Settings("lm", Budget(steps=10), lr=2.0, warmup=0.25)
    assert learning_rate(settings, 0.0) == 0
    assert learning_rate(settings, 0.125) == 1.0
    assert learning_rate(settings, 0.25) == 2.0
    assert learning_rate(settings, 0.625) == 1.0
    assert learning_rate(settings, 1.0) == 0


@pytest.mark.parametrize(("text", "value"), [("300", 300), ("20k", 20_000), ("40M", 40_000_000), ("2.5k", 2500)])
def test_counts_as_people_write_them(text, value):
    assert count(text) == value


@pytest.mark.parametrize("text", ["", "many", "-3", "0", "3x"])
def test_what_is_no_count_is_refused(text):
    with pytest.raises(InvalidInput, match="40M"):
        count(text)


def test_budgets_and_settings_refuse_nonsense():
    for wrong in ({}, {"steps": 3, "tokens": 4}, {"seconds": 0}, {"epochs": -1}):
        with pytest.raises(InvalidInput, match="budget"):
            Budget(**wrong)
    with pytest.raises(InvalidInput, match="no epochs"):
        Budget(epochs=2).in_steps(10, None)
    assert Budget(tokens=1000).in_steps(100, None) == 10
    for wrong in ({"precision": "fp8"}, {"lr": 0}, {"length": 1}, {"warmup": 1.0}, {"batch": 0}):
        with pytest.raises(InvalidInput):
            Settings("lm", Budget(steps=1), **wrong)
    with pytest.raises(InvalidInput, match="'task' must be one of"):
        Settings("cook", Budget(steps=1))


def test_settings_survive_their_record():
    settings = Settings("copy", Budget(tokens=99), {"mixer": "sparse"}, options={"symbols": 3}, seed=4)
    assert from_record(settings.record()) == settings
    assert settings.differing(settings.record()) is None
    assert settings.with_(lr=0.5).differing(settings.record()) == "lr"
    with pytest.raises(InvalidInput, match="no setting 'speed'"):
        from_record(settings.record() | {"speed": 3})
