"""Every program of examples/programs/: equal to its numpy reference within its bound, on 10,000 random inputs."""

import numpy as np
import pytest

from tests.program.cases import inputs
from tests.program.claims import in_dtype
from tests.program.examples import EXAMPLES, example
from thereexists import program as P
from thereexists.core.errors import InvalidInput

CAUSAL = {
    "moving_average",
    "exponential_smoothing",
    "cumulative_maximum",
    "convolution",
    "fraction_of_previous",
    "layer_norm",
}
NEEDED = {
    *("moving_average", "exponential_smoothing", "median_filter", "dft_power", "layer_norm", "softmax_attention"),
    *("nearest_neighbour_smoothing", "histogram", "rank", "reverse", "cumulative_maximum", "convolution"),
    *("argmax_broadcast", "linear_interpolation", "parity"),
}
USELESS = 0.1  # no claim is tested by this: a bound in float32 above it would say nothing


def excess(compiled, reference, dtype, count):
    """How much the bound is exceeded; the reference runs on the same numbers, in a precision that is beyond doubt."""
    X = in_dtype(inputs(compiled.source, count, 3), dtype, compiled.source)
    wanted = reference(X.astype(np.longdouble) if dtype == "float64" else X)
    return float(np.abs(compiled(X, dtype) - wanted).max()) - compiled.bound(dtype).total


def test_the_promised_examples_are_there():
    assert set(EXAMPLES) >= NEEDED


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_equals_numpy_on_a_thousand_inputs(name):
    module = example(name)
    compiled = P.compile(module.program)
    assert compiled.bound("float32").total < USELESS
    assert excess(compiled, module.reference, "float32", 1_000) <= 0.0
    assert excess(compiled, module.reference, "float64", 200) <= 0.0


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_equals_numpy_on_ten_thousand_inputs(name, dtype):
    module = example(name)
    assert excess(P.compile(module.program), module.reference, dtype, 10_000) <= 0.0


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_compiles_to_a_causal_network_or_says_what_is_hidden(name):
    module = example(name)
    if name in CAUSAL:
        compiled = P.compile(module.program, causal=True)
        assert excess(compiled, module.reference, "float32", 100) <= 0.0
    else:
        with pytest.raises(InvalidInput, match=r"needs token .* which a causal mask hides"):
            P.compile(module.program, causal=True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", EXAMPLES)
def test_another_reference_is_caught(name):
    """The comparison sees a reference that is off by a tenth part of the range."""
    module = example(name)
    compiled = P.compile(module.program)
    wrong = lambda X: module.reference(X) * 1.25 + 0.125  # noqa: E731
    assert excess(compiled, wrong, "float32", 100) > 0.0
