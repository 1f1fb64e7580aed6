"""Models with windows, chunks, packed sequences, sinks and caps of their own equal their eager attention."""

import itertools

import pytest
import torch

transformers = pytest.importorskip("transformers")

from transformers import masking_utils  # noqa: E402

import thereexists as te  # noqa: E402
from tests.attention.windowed_models import DECODERS, MODELS, bound, windowed  # noqa: E402
from thereexists import patterns as tp  # noqa: E402
from thereexists.attention import interface, own_masks  # noqa: E402
from thereexists.core.errors import InvalidInput  # noqa: E402

TOKENS = torch.randint(3, 50, (2, 11), generator=torch.Generator().manual_seed(1))
LEFT = torch.ones_like(TOKENS).index_put((torch.tensor([0]), torch.arange(3)), torch.tensor(0))
PACKED = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 0], [0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8]])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", MODELS)
def test_forward_training_and_generation_equal_eager(kind):
    """Logits, the gradient of every weight (sinks included), and the tokens after a prompt with left padding."""
    ours, eager = models = windowed(kind)
    logits = [model(TOKENS, attention_mask=LEFT).logits[LEFT.bool()] for model in models]
    assert (logits[0] - logits[1]).abs().max() <= bound(logits[1])
    grads = [
        torch.autograd.grad(x.square().mean(), list(m.parameters()), allow_unused=True)
        for x, m in zip(logits, models, strict=True)
    ]
    for a, b in zip(*grads, strict=True):
        assert (a is None) == (b is None)
        assert a is None or (a - b).abs().max() <= bound(logits[1]) * max(1.0, float(b.abs().max()))
    if kind in DECODERS:
        how = {"max_new_tokens": 6, "do_sample": False, "disable_compile": True}
        mine, theirs = (model.generate(TOKENS, attention_mask=LEFT, **how) for model in (ours, eager))
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("length", [5, 8, 11, 14])
def test_keys_that_the_mask_does_not_mention_are_hidden(length):
    """As transformers has it: a mask of ones for fewer tokens than there are keys hides the rest."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16}
    config = transformers.MistralConfig(**sizes, num_hidden_layers=2, vocab_size=50, sliding_window=None)
    logits = []
    model = transformers.MistralForCausalLM(config).eval()
    for name in ("eager", "thereexists"):
        model.set_attn_implementation(name)
        mask = torch.ones(2, length, dtype=torch.long)
        with torch.no_grad():
            past = model(TOKENS[:, :6], use_cache=True).past_key_values
            logits += [model(TOKENS, attention_mask=mask).logits]
            logits += [model(TOKENS[:, 6:], attention_mask=mask, past_key_values=past).logits]
    assert (logits[2] - logits[0]).abs().max() <= bound(logits[0])
    assert (logits[3] - logits[1]).abs().max() <= bound(logits[1])


@pytest.mark.parametrize(
    ("ids", "documents"), [([0, 0, 0, 0], False), ([0, 0, 1, 1], True), ([1, 1, 0, 0], None), ([0, 1, 1, 0], None)]
)
@pytest.mark.parametrize("kind", [torch.long, torch.uint8])
def test_one_document_is_no_mask_of_its_own(ids, documents, kind):
    """A compiled model hands over documents whether there are several or not; where numbers fall nothing is read."""
    ids = torch.tensor([ids, ids], dtype=kind)
    packed = masking_utils.packed_sequence_mask_function(ids)
    own = own_masks.read(masking_utils.and_masks(masking_utils.causal_mask_function, packed))
    assert (own is None) == (documents is None)
    if own is not None:
        assert own.causal
        assert (own.documents is not None) == documents


@pytest.mark.slow
@pytest.mark.parametrize("kind", DECODERS)
def test_every_way_to_run_a_decoder(kind):
    """Packed positions, beams, a static cache, no cache, a prompt in two parts, a prompt longer than the window."""
    ours, eager = windowed(kind)
    how = {"max_new_tokens": 8, "do_sample": False, "disable_compile": True, "attention_mask": LEFT}
    for more in (
        {"num_beams": 2},
        {"cache_implementation": "static"},
        {"use_cache": False},
        {"num_beams": 3, "use_cache": False},
    ):
        assert torch.equal(ours.generate(TOKENS, **how, **more), eager.generate(TOKENS, **how, **more)), more
    with torch.no_grad():
        a, b = (model(TOKENS, position_ids=PACKED, use_cache=False).logits for model in (ours, eager))
        assert (a - b).abs().max() <= bound(b)
        for cut in (2, 6):
            parts = []
            for model in (ours, eager):
                cache = model(TOKENS[:, :cut]).past_key_values
                parts.append(model(TOKENS[:, cut:], past_key_values=cache).logits)
            assert (parts[0] - parts[1]).abs().max() <= bound(parts[1])


def overlays():
    """Each mask that transformers ships, and several at once."""
    skipped, ids = torch.tensor([0, 3]), torch.tensor([[0, 0, 1, 1, 1, 2, 2, 2, 2], [0, 0, 0, 0, 0, 0, 0, 0, 0]])
    leaves = {
        "window": masking_utils.sliding_window_overlay(4),
        "chunks": masking_utils.chunked_overlay(3, skipped),
        "packed": masking_utils.packed_sequence_mask_function(ids),
        "around": masking_utils.sliding_window_bidirectional_overlay(2),
    }
    for size in range(len(leaves) + 1):
        for names in itertools.combinations(leaves, size):
            for base in (masking_utils.causal_mask_function, masking_utils.bidirectional_mask_function):
                yield names, masking_utils.and_masks(base, *(leaves[name] for name in names))


def test_what_is_read_is_the_mask():
    n = 9
    for names, function in overlays():
        own = own_masks.read(function)
        assert own is not None
        want = masking_utils.sdpa_mask(2, n, n, mask_function=function, allow_is_causal_skip=False)[:, 0]
        for members, step in own.groups(2, 0, n):
            for b in [0, 1] if members is None else members:
                assert torch.equal(torch.from_numpy(step.mask()), want[b]), (names, b)


def test_a_cache_that_has_dropped_its_first_keys():
    for start, chunk in ((2, None), (5, 3), (6, 3)):
        function = (
            masking_utils.sliding_window_overlay(4)
            if chunk is None
            else masking_utils.chunked_overlay(3, torch.tensor([1]))
        )
        function = masking_utils.and_masks(function, masking_utils.causal_mask_function)
        mask = interface.mask_of_the_pattern(1, 2, 6, start + 4, start, function)
        want = masking_utils.sdpa_mask(1, 2, 6, start + 4, start, function, allow_is_causal_skip=False)[0, 0]
        ((_, step),) = mask.own.groups(1, start, 6)
        assert torch.equal(torch.from_numpy(step.mask())[-2:], want)


@pytest.mark.parametrize("understood", [True, False])
def test_a_cache_that_gives_other_keys_than_it_announced(understood, monkeypatch):
    """transformers keeps all keys of a window of one token, and its mask is for the last; we saw the first instead."""
    ours, _ = windowed("mistral")
    ours.config.sliding_window = 1
    if not understood:
        monkeypatch.setattr(interface, "read", lambda function: None)
    with torch.no_grad():
        want = ours(TOKENS, use_cache=False).logits[:, 8:]
        cache = ours(TOKENS[:, :8], use_cache=True).past_key_values
        with pytest.raises(InvalidInput, match=r"to 9 with a mask for 1 and 1.*use_cache=False"):
            ours(TOKENS[:, 8:9], past_key_values=cache)
        fixed = transformers.StaticCache(ours.config, 16)  # this one keeps the last
        ours(TOKENS[:, :8], past_key_values=fixed)
        found = torch.cat([ours(TOKENS[:, [i]], past_key_values=fixed).logits for i in range(8, 11)], 1)
    assert (found - want).abs().max() <= bound(want)


def test_a_function_that_means_something_else_is_not_believed(monkeypatch):
    """The same name and number, and one key more; what is not understood is evaluated pair by pair."""

    def sliding_window_overlay(sliding_window):
        def inner_mask(batch_idx, head_idx, q_idx, kv_idx):
            return kv_idx >= q_idx - sliding_window

        inner_mask.__module__ = "transformers.masking_utils"
        inner_mask.__qualname__ = "sliding_window_overlay.<locals>.inner_mask"
        return inner_mask

    assert (
        own_masks.read(masking_utils.and_masks(sliding_window_overlay(4), masking_utils.causal_mask_function)) is None
    )
    ours, eager = windowed("mistral")
    monkeypatch.setattr(masking_utils, "sliding_window_overlay", sliding_window_overlay)
    with torch.no_grad():
        a, b = (model(TOKENS, attention_mask=LEFT).logits[LEFT.bool()] for model in (ours, eager))
    assert (a - b).abs().max() <= bound(b)


def test_blocks_that_see_each_other_are_evaluated():
    """Images among text: a mask that is no interval, and Gemma's sink-free windows beside it."""
    either = masking_utils.or_masks(masking_utils.causal_mask_function, lambda b, h, q, k: (q < 3) & (k < 3))
    assert own_masks.read(either) is None
    mask = interface.mask_of_the_pattern(2, 5, 5, 0, 0, either, LEFT[:, :5].bool())
    assert mask.pairs is not None
    assert not bool(mask.pairs[0, 0, :, :3].any())
    assert bool(mask.pairs[1, 0, 0, 2])


def test_a_pattern_and_a_mask_of_the_models_own_are_not_combined():
    ours, _ = windowed("mistral")
    te.attention.use_pattern(ours, lambda n: tp.window(n, 2))
    with pytest.raises(InvalidInput, match=r"MistralForCausalLM.*mask of its own.*not combined"):
        ours(TOKENS)


def test_a_mask_of_pairs_is_refused_for_what_it_is():
    """Not for the window, which the model hands over beside it; and a pattern would be refused here too."""
    ours, _ = windowed("mistral")
    pairs = torch.ones(len(TOKENS), 1, TOKENS.shape[1], TOKENS.shape[1]).tril().bool()
    with pytest.raises(InvalidInput, match=r"takes padding as a mask \(batch, n\); MistralForCausalLM.*eager") as said:
        ours(TOKENS, attention_mask=pairs)
    assert "sliding_window" not in str(said.value)
    assert "thereexists_pattern" not in str(said.value)


def test_a_window_without_a_mask_is_refused():
    ours, _ = windowed("mistral")
    module, x = ours.model.layers[0].self_attn, torch.zeros(1, 2, 4, 8)
    with pytest.raises(InvalidInput, match="no 'sliding_window'"):
        interface.attention_forward(module, x, x, x, None, sliding_window=4)


def test_groups_of_sequences_in_a_batch_train():
    """Left padding moves the chunks of one sequence: two steps in one call, with gradients through both."""
    ours, eager = windowed("llama4")
    for model in (ours, eager):
        model(TOKENS, attention_mask=LEFT).logits[LEFT.bool()].square().mean().backward()
    a, b = (model.model.layers[0].self_attn.q_proj.weight.grad for model in (ours, eager))
    assert (a - b).abs().max() <= 2.0**-18 * float(b.abs().max())


@pytest.mark.parametrize("more", [{}, {"softcap": 2.0}])
def test_dropout_over_pairs_keeps_or_drops_each_weight(more):
    """Values that are unit vectors show the weights: 0, or twice those without dropout; a row of padding is 0."""
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 2, 5, 8), torch.randn(2, 1, 8, 8), torch.eye(8).expand(2, 1, 8, 8)
    pad = torch.rand(2, 8) > 0.3
    pad[1] = False
    sure, half = (interface._over_pairs(q, k, v, None, pad, {"scale": 0.5, "dropout_p": p, **more}) for p in (0.0, 0.5))
    dropped = half == 0
    assert dropped[0][sure[0] > 0].float().mean() == pytest.approx(0.5, abs=0.25)
    assert (half - torch.where(dropped, 0.0, 2 * sure)).abs().max() <= 2.0**-20
    assert not sure[1].any()
