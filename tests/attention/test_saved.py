"""Patterns that survive save_pretrained and from_pretrained, and caches of fixed size."""

import json

import pytest
import torch

transformers = pytest.importorskip("transformers")

import thereexists as te  # noqa: E402
from thereexists import patterns as tp  # noqa: E402
from thereexists.core.errors import InvalidInput  # noqa: E402
from thereexists.patterns.parts import Rect  # noqa: E402
from thereexists.patterns.stored import record, restore  # noqa: E402

te.attention.register_with_transformers()  # another test may have imported us before transformers

N = 12
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 50,
    "max_position_embeddings": 32,
}
TOKENS = torch.arange(N)[None]
FEW_ROUNDINGS = 2.0**-18  # Llama's norms and rotations are in float32


def bert():
    torch.manual_seed(0)
    config = transformers.BertConfig(**SIZES)
    return transformers.AutoModel.from_config(config, attn_implementation="thereexists").eval()


def output(model):
    with torch.no_grad():
        return model(TOKENS)[0]


def given(how):
    return {
        "name": "star",
        "spec": {"name": "strided", "stride": 4, "config": "union"},
        "object": tp.strided(N, 3),
        "multihead": tp.strided(N, 3).multihead(2),
        "listed": tp.random(N, 3),
    }[how]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("how", ["name", "spec", "object", "multihead", "listed"])
def test_a_pattern_comes_back_with_the_model(how, tmp_path):
    model = bert()
    plain = output(model)
    te.attention.use_pattern(model, given(how))
    want = output(model)
    assert not torch.equal(want, plain)
    model.save_pretrained(tmp_path)
    loaded = transformers.AutoModel.from_pretrained(tmp_path).eval()  # without a word about the implementation
    assert loaded.config._attn_implementation == "thereexists"
    assert torch.equal(output(loaded), want)
    loaded.save_pretrained(tmp_path / "again")
    assert torch.equal(output(transformers.AutoModel.from_pretrained(tmp_path / "again").eval()), want)


def test_in_a_fresh_process(tmp_path, fresh):
    model = te.attention.use_pattern(bert(), tp.random(N, 3))
    torch.save(output(model), tmp_path / "want.pt")
    model.save_pretrained(tmp_path)
    code = """
import sys, torch, transformers
load = transformers.AutoModel.from_pretrained
try:
    load(sys.argv[1])
    sys.exit("without thereexists the model must not run without its pattern")
except ValueError as error:
    assert "thereexists" in str(error)
import thereexists.attention
assert torch.equal(load(sys.argv[1]).eval()(torch.arange(12)[None])[0], torch.load(sys.argv[1] + "/want.pt"))
"""
    assert fresh("-c", code, tmp_path).returncode == 0


def test_a_function_cannot_be_saved_and_the_loaded_model_says_so(tmp_path):
    model = te.attention.use_pattern(bert(), lambda n: tp.window(n, 1))
    want = output(model)
    model.save_pretrained(tmp_path)
    loaded = transformers.AutoModel.from_pretrained(tmp_path).eval()
    with pytest.raises(InvalidInput, match="made by a function"):
        output(loaded)
    te.attention.use_pattern(loaded, lambda n: tp.window(n, 1))
    assert torch.equal(output(loaded), want)


def test_another_implementation_is_told_about_the_pattern(tmp_path):
    te.attention.use_pattern(bert(), tp.window(N, 1)).save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match="holds a pattern"):
        transformers.AutoModel.from_pretrained(tmp_path, attn_implementation="eager")


@pytest.mark.parametrize("name", tp.REGISTRY)
def test_records_hold_the_whole_pattern(name):
    pattern = tp.build(name, 16).as_causal()
    again = restore(json.loads(json.dumps(record(pattern))), 16)
    assert [s.causal for s in again.steps] == [True] * again.cycle
    assert (again.mask() == pattern.mask()).all()


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (("format",), 2, "format 1"),
        (("n",), 10**9, "tokens and the model got"),
        (("steps",), [], "list of steps"),
        (("steps", 0), {"causal": False}, "list of parts"),
        (("steps", 0, "parts", 0), ["system", "x"], "one of Band"),
        (("steps", 0, "parts", 0), ["Band", "x", 1], "integers"),
        (("steps", 0, "parts", 0), ["Residue", 0], "whole number from 1"),
        (("steps", 0, "parts", 0), ["Offsets", [3, 1]], "ascend"),
        (("steps", 0, "parts", 0), ["Rect", {"range": [0, 10**12, 1]}, [0]], "integers"),
        (("steps", 0, "parts", 0), ["Rect", [1, 1], [0]], "ascend"),
        (("steps", 0, "parts", 0), ["Explicit", [0, 1], [0]], "for 1 tokens"),
        (("steps", 0, "parts", 0), ["Explicit", [0, *range(2, 7), 6, 6, 6], [1, 0, 2, 3, 4, 5]], "ascend"),
        (("heads",), [0], "integers"),
    ],
)
def test_damaged_records_are_refused(where, value, message):
    stored = record(tp.window(8, 1))
    *path, last = where
    at = stored
    for key in path:
        at = at[key]
    at[last] = value
    with pytest.raises(InvalidInput, match=message):
        restore(stored, 8)


@pytest.mark.parametrize("padded", [False, True])
def test_a_cache_of_fixed_size_gives_the_same_logits(padded):
    """Prefill and two more tokens, with room for 20, against one pass over everything."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SIZES, num_key_value_heads=1)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="thereexists").double().eval()
    te.attention.use_pattern(model, lambda n: tp.strided(n, 4).union())
    mask = torch.ones(1, N, dtype=torch.long)
    mask[0, : 3 if padded else 0] = 0
    cache = transformers.StaticCache(config, max_cache_len=20)
    got = []
    with torch.no_grad():
        want = model(TOKENS, attention_mask=mask, use_cache=False).logits
        for start, stop in ((0, N - 2), (N - 2, N - 1), (N - 1, N)):
            out = model(TOKENS[:, start:stop], attention_mask=mask[:, :stop], past_key_values=cache)
            got.append(out.logits)
    real = mask[0].bool()
    assert (torch.cat(got, 1) - want)[:, real].abs().max() <= FEW_ROUNDINGS


def test_generation_with_a_cache_of_fixed_size():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SIZES, num_key_value_heads=1)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="thereexists").double().eval()
    te.attention.use_pattern(model, lambda n: tp.strided(n, 4).union())
    options = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    fixed = model.generate(TOKENS, cache_implementation="static", **options)
    assert torch.equal(fixed, model.generate(TOKENS, use_cache=False, **options))


@pytest.mark.parametrize("first", [0, 1])
def test_a_union_of_causal_steps_and_others_is_recorded(first):
    one = tp.strided(N, 3)
    steps = [one.steps[0], one.steps[1]]
    steps[first] = steps[first].as_causal()
    union = tp.Pattern("mixed", tuple(steps)).union()
    again = restore(json.loads(json.dumps(record(union))), N)
    assert (again.mask() == union.mask()).all()
    te.attention.use_pattern(bert(), union)


@pytest.mark.parametrize(
    "part",
    [
        ["CausalPart", ["CausalPart", ["Residue", 3]]],
        ["CausalPart", ["Band", -1, 1]],
        ["CausalInterval", ["Residue", 3]],
        ["CausalPart", 3],
        ["CausalPart", [["Residue"], 3]],
        ["CausalPart", []],
    ],
)
def test_a_causal_part_of_what_cannot_be_one_is_refused(part):
    stored = record(tp.window(8, 1))
    stored["steps"][0]["parts"][0] = part
    with pytest.raises(InvalidInput):
        restore(stored, 8)


@pytest.mark.parametrize(
    "tokens", [range(9, 0, -2), range(0, 10, 50), range(0, 11, 3), range(9, 10, 99), range(5, 5, 70)]
)
def test_every_range_of_tokens_comes_back(tokens):
    pattern = tp.Pattern("ranges", (tp.Step(10, (Rect(tokens, range(10)), Rect(range(10), range(0, 10, 11)))),))
    again = restore(json.loads(json.dumps(record(pattern))), 10)
    assert (again.mask() == pattern.mask()).all()
    assert pattern.mask()[0, list(tokens)].all()


class Odd:
    """A function with an ``__eq__`` and no hash; all of them are equal."""

    def __init__(self, width):
        self.width = width

    def __eq__(self, other):
        return True

    def __call__(self, n):
        return tp.window(n, self.width)


def test_functions_are_told_apart_by_what_they_are():
    model = bert()
    found = [
        output(te.attention.use_pattern(model, give)) for give in (Odd(1), Odd(3), tp.window(N, 1), tp.window(N, 3))
    ]
    assert torch.equal(found[0], found[2])
    assert torch.equal(found[1], found[3])
    assert not torch.equal(found[0], found[1])


@pytest.mark.parametrize("kind", ["bert", "llama"])
@pytest.mark.parametrize("given", [lambda n: tp.window(n, 1).step(0), lambda n: None], ids=["step", "None"])
def test_a_function_that_returns_no_pattern_is_refused(kind, given):
    config = {"bert": transformers.BertConfig, "llama": transformers.LlamaConfig}[kind](**SIZES)
    model = transformers.AutoModel.from_config(config, attn_implementation="thereexists").eval()
    te.attention.use_pattern(model, given)
    with pytest.raises(InvalidInput, match="must return a pattern"):
        output(model)
