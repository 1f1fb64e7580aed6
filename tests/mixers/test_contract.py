"""Every claim of every registered mixer: parameters, FLOPs, symmetry, length, causality, padding."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import conv1d
from torch.utils.flop_counter import FlopCounterMode

from tests.mixers.cases import CASES, IDS, mixer, rounding, sequences, small
from thereexists.core.errors import InvalidInput
from thereexists.mixers import MIXERS, MixerModel, mixer_kind, model_flops_per_token, model_parameters, register_mixer
from thereexists.mixers.average import Average
from thereexists.mixers.registry import Mixer

every_case = pytest.mark.parametrize(("name", "choice"), CASES, ids=IDS)


# ---- parameters and FLOPs -----------------------------------------------------------------------------------------


@every_case
def test_parameters_by_counting(name, choice):
    config = small(name, choice)
    for layer in range(3):
        counted = sum(p.numel() for p in mixer(config, layer).parameters())
        assert counted == MIXERS[name].layer_parameters(config, layer)
    assert MIXERS[name].parameters(config) == sum(MIXERS[name].layer_parameters(config, l) for l in range(3))


@every_case
@pytest.mark.parametrize("norm_first", [False, True])
def test_model_parameters_by_counting(name, choice, norm_first):
    config = small(name, choice, norm_first=norm_first)
    with torch.device("meta"):
        assert sum(p.numel() for p in MixerModel(config).parameters()) == model_parameters(config)


def counted_flops(run):
    """What torch counts: the matrix products, with attention taken apart into its two."""
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        run()
    return counter.get_total_flops()


def uncounted_flops(config, layer, n, batch):
    """What the claim includes and torch does not count: sums of averages; our convolution, counted on conv1d."""
    module = mixer(config, layer)
    if isinstance(module, Average):
        return batch * n * config.hidden_size
    if hasattr(module, "left"):
        d, k = config.hidden_size, config.kernel_size
        a, kernel = torch.randn(batch, d, n + k - 1), torch.randn(d, 1, k)
        return counted_flops(lambda: conv1d(a, kernel, groups=d))
    return 0


@pytest.mark.sampled(8)
@every_case
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n", [1, 12])
def test_flops_by_the_counter_of_torch(name, choice, causal, n):
    config, x = small(name, choice, is_decoder=causal), sequences(n=n)
    for layer in (0, 2):
        module = mixer(config, layer)
        counted = counted_flops(lambda module=module: module(x)) + uncounted_flops(config, layer, n, len(x))
        assert counted == pytest.approx(MIXERS[name].layer_flops(config, layer, n) * len(x) * n, abs=0.5)


@every_case
def test_model_flops_by_the_counter_of_torch(name, choice):
    config = small(name, choice)
    model, ids = MixerModel(config).eval(), torch.randint(5, 50, (2, 12))
    counted = counted_flops(lambda: model(ids)) + sum(uncounted_flops(config, layer, 12, 2) for layer in range(3))
    assert counted == pytest.approx(model_flops_per_token(config, 12) * 24, abs=0.5)


# ---- symmetry -----------------------------------------------------------------------------------------------------


def asymmetry(module, x, order):
    """max |mixer(XP) − mixer(X)P|."""
    with torch.no_grad():
        return float((module(x[:, order]) - module(x)[:, order]).abs().max())


def tolerance(x, dtype=torch.float64):
    """Of one mixer on sequences x: two projections of width d, and sums over n."""
    return rounding(4 * x.shape[2], 2 * x.shape[1], scale=float(x.abs().max()) * x.shape[2], dtype=dtype)


@pytest.mark.parametrize("name", [name for name, kind in MIXERS.items() if kind.permutation_equivariant])
@given(order=st.permutations(range(12)), seed=st.integers(0, 99))
def test_equivariant_mixers_are(name, order, seed):
    x = sequences(seed=seed)
    assert asymmetry(mixer(small(name), seed=seed), x, list(order)) <= tolerance(x)


def witness_of_asymmetry(module, x):
    """The first transposition of neighbours that the mixer does not commute with."""
    for i in range(x.shape[1] - 1):
        order = list(range(x.shape[1]))
        order[i], order[i + 1] = i + 1, i
        if asymmetry(module, x, order) > 1e3 * tolerance(x):
            return order
    return None


@pytest.mark.parametrize(
    ("name", "choice"),
    [case for case in CASES if not MIXERS[case[0]].permutation_equivariant],
    ids=[i for i, case in zip(IDS, CASES, strict=True) if not MIXERS[case[0]].permutation_equivariant],
)
def test_the_other_mixers_are_not(name, choice):
    assert witness_of_asymmetry(mixer(small(name, choice)), sequences()) is not None


@pytest.mark.parametrize("name", [name for name, kind in MIXERS.items() if kind.permutation_equivariant])
def test_no_causal_mixer_is_equivariant(name):
    assert witness_of_asymmetry(mixer(small(name, is_decoder=True)), sequences()) is not None


# ---- length -------------------------------------------------------------------------------------------------------


@every_case
def test_length(name, choice):
    module, longer = mixer(small(name, choice)), sequences(n=21)  # max_position_embeddings is 20
    assert module(sequences(n=7)).shape == (3, 7, 16)
    if MIXERS[name].fixed_length:
        with pytest.raises(InvalidInput, match="at most 20 tokens; got a sequence of 21"):
            module(longer)
    else:
        assert module(longer).shape == longer.shape


def test_a_shorter_sequence_is_one_padded_with_zeros():
    module, x = mixer(small("bproj")), sequences(n=20)
    x[:, 7:] = 0
    assert torch.allclose(module(x)[:, :7], module(x[:, :7]), rtol=0, atol=tolerance(x))


# ---- who influences whom ------------------------------------------------------------------------------------------


def influence(module, x, targets, sources, real=None):
    """max |∂ mixer(x)[targets] / ∂ x[sources]| over a random direction: exactly 0 where nothing flows."""
    x = x.clone().requires_grad_()
    y = module(x, real)
    direction = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(3))
    (gradient,) = torch.autograd.grad((y * direction * targets[..., None]).sum(), x)
    return float((gradient * sources[..., None]).abs().max())


@pytest.mark.sampled(3)
@every_case
def test_a_causal_mixer_never_looks_ahead(name, choice):
    config, x = small(name, choice, is_decoder=True), sequences()
    place = torch.arange(12).expand(3, 12)
    for layer in range(3):
        for t in (0, 4, 10):
            assert influence(mixer(config, layer), x, place == t, place > t) == 0
            assert influence(mixer(config, layer), x, place == t, place <= t) > 0


@every_case
def test_a_mixer_that_is_not_causal_looks_ahead(name, choice):
    place = torch.arange(12).expand(3, 12)
    assert influence(mixer(small(name, choice)), sequences(), place == 4, place > 4) > 0


def padding(kind):
    real = torch.ones(3, 12, dtype=torch.bool)
    if kind == "right":
        real[0, 5:] = real[2, 11:] = False
    elif kind == "left":
        real[0, :4] = False
    else:
        real[:, [2, 3, 7]] = False
    return real


def padding_leaks(module, real):
    """How much padded tokens change real ones, by derivative and by putting something else there."""
    x = sequences()
    other = torch.where(real[..., None], x, 100 * sequences(seed=5))
    with torch.no_grad():
        moved = ((module(x, real) - module(other, real)) * real[..., None]).abs().max()
    return max(influence(module, x, real, ~real, real), float(moved))


@pytest.mark.sampled(12)
@every_case
@pytest.mark.parametrize("kind", ["right", "left", "middle"])
@pytest.mark.parametrize("causal", [False, True])
def test_padding_never_influences_real_tokens(name, choice, kind, causal):
    real = padding(kind)
    for layer in (0, 1):
        module = mixer(small(name, choice, is_decoder=causal), layer)
        assert padding_leaks(module, real) == 0
        assert torch.isfinite(module(sequences(), real)).all()


def test_the_padding_check_notices_a_mixer_that_ignores_padding():
    class Careless(Average):
        def forward(self, x, real=None):
            return super().forward(x)

    config = small("average")
    assert padding_leaks(Careless(config).double(), padding("right")) > 0


@pytest.mark.parametrize("name", ["attention", "average", "bproj", "sepconv"])
@pytest.mark.parametrize("causal", [False, True])
def test_padding_on_the_right_changes_nothing(name, causal):
    module, x = mixer(small(name, is_decoder=causal)), sequences(batch=1)
    real = torch.arange(12)[None] < 7
    assert torch.allclose(module(x, real)[:, :7], module(x[:, :7]), rtol=0, atol=tolerance(x))


def test_average_divides_by_the_number_of_real_tokens():
    module, x, real = mixer(small("average")), sequences(), padding("middle")
    expected = module.output(torch.stack([row[keep].mean(0) for row, keep in zip(x, real, strict=True)]))
    assert torch.allclose(module(x, real)[:, 0], expected, rtol=0, atol=tolerance(x))


def test_average_is_the_formula():
    module, x = mixer(small("average")), sequences()
    formula = module.output(torch.full((12, 12), 1 / 12, dtype=torch.float64) @ x)  # W_O X (11ᵀ/n)
    assert torch.allclose(module(x), formula, rtol=0, atol=tolerance(x))


# ---- the registry -------------------------------------------------------------------------------------------------


def test_the_registry_refuses_a_second_one_of_the_same_name():
    with pytest.raises(InvalidInput, match="'average' is registered already"):
        register_mixer(dataclasses.replace(MIXERS["average"], formula="X"))


def test_an_unknown_mixer():
    with pytest.raises(InvalidInput, match=r"no mixer named 'fourier'\. Known: attention, average, bproj"):
        mixer_kind("fourier")


@every_case
def test_every_entry_keeps_the_contract(name, choice):
    kind, config = MIXERS[name], small(name, choice)
    assert isinstance(kind.build(config, 0), Mixer)
    assert kind.name == name
    assert kind.formula
    assert kind.cost
