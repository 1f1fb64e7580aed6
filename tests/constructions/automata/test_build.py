"""The theorem is the test: state, output and acceptance at every prefix, exactly, in every dtype."""

import itertools
import math

import numpy as np
import pytest
import torch

import thereexists as te
from tests.automata.machines import SMALL, adder, drawn, strings
from thereexists.constructions.automata.codes import codes, moduli_for, shift
from thereexists.core.dtypes import DTYPES
from thereexists.core.errors import CannotBuild, InvalidInput


def right(witness, words):
    machine = witness.automaton
    for word, states, accepted in zip(words, witness.states(words), witness.accepts(words), strict=True):
        assert np.array_equal(states, machine.states(word))
        assert accepted == machine.accepts(word)
    if machine.writes:
        assert witness.outputs(words) == [machine.transduce(word) for word in words]


EVERY = [(name, maps) for name in SMALL for maps in ("states", "monoid")]
EVERY.remove(("drawn", "monoid"))  # its strings act in hundreds of ways


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "maps"), EVERY)
def test_right_at_every_prefix_in_every_dtype(name, maps):
    witness = te.build(SMALL[name], n=21, maps=maps)
    words = strings(SMALL[name], 40, 21, seed=1)
    for dtype in DTYPES:
        right(witness.to(dtype), words)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9])
def test_all_strings_of_all_lengths(n):
    witness = te.build(SMALL["swaps"], n=n)
    right(witness, ["".join(s) for length in range(n + 1) for s in itertools.product("ab", repeat=length)])
    assert witness.network.depth == max(1, math.ceil(math.log2(n)))


def test_the_plain_network_gives_the_same_as_the_fused_one():
    witness = te.build(SMALL["drawn"], n=50)
    tokens, wanted = witness.samples().parts[0]
    for dtype in DTYPES:
        network = witness.to(dtype).network
        with torch.no_grad():
            assert np.array_equal(network(torch.from_numpy(tokens[:8])).double().numpy(), wanted[:8])


def test_saturating_units_forgive_errors():
    """Attention weights off by 1/8, as of a kernel with another exp: the plain units add the errors up."""
    machine, n = SMALL["drawn"], 64
    tokens = torch.from_numpy(te.build(machine, n=n).samples().parts[0][0][:4])

    def disturbed(witness):
        network = witness.to("float64").network
        Z = network.embed(tokens)
        generator = torch.Generator().manual_seed(0)
        for _, _, layer in network.layers():
            Z = type(layer)(layer.rho, layer.attention, None)(Z)
            own, fetched = witness.maps.own, slice(witness.maps.own, witness.maps.own + witness.maps.fetched)
            Z[..., fetched] *= 1 - 0.12 * torch.rand(Z[..., fetched].shape, generator=generator, dtype=Z.dtype)
            Z = type(layer)(layer.rho, None, layer.feed_forward)(Z)
            assert own > 0
        return torch.nn.functional.linear(Z, network.W_out)

    with torch.no_grad():
        exact = te.build(machine, n=n).to("float64").network(tokens)
        saturating = te.build(machine, n=n, saturating=True)
        assert torch.equal(saturating.to("float64").network(tokens), exact)
        assert float((disturbed(saturating) - exact).abs().max()) < 0.5
        assert float((disturbed(te.build(machine, n=n)) - exact).abs().max()) > 0.5
    assert saturating.certificate.claim()


def test_the_rows_are_chosen_by_size():
    assert te.plan(SMALL["mod7"], n=8, construction="doubling").maps == "monoid"
    assert te.plan(SMALL["mod7"], n=8, maps="states").width > te.plan(SMALL["mod7"], n=8, construction="doubling").width
    assert te.plan(SMALL["drawn"], n=8).maps == "states"
    for name, machine in SMALL.items():
        planned = te.plan(machine, n=30, construction="doubling")
        built = te.build(machine, n=30, construction="doubling")
        assert planned == built.plan, name
        assert planned.parameters == built.network.parameter_count
        assert set(planned.dtypes) == set(built.network.safe) == set(DTYPES)


def test_position_codes():
    for least in (1, 2, 5, 100, 24575, 3 << 20):
        moduli = moduli_for(least)
        assert math.prod(moduli) > least
        assert math.lcm(*moduli) == math.prod(moduli)
    assert sum(moduli_for(24575)) <= 45
    moduli = moduli_for(100)
    at = np.arange(7, 60)
    assert np.array_equal(codes(moduli, at) @ shift(moduli, 6).T, codes(moduli, at - 6))
    agree = codes(moduli, np.arange(100)) @ codes(moduli, np.arange(100)).T
    assert (agree + np.eye(100) <= len(moduli) + np.eye(100) * 1).all()
    assert (agree - len(moduli) * np.eye(100) <= len(moduli) - 1).all()


def test_inputs_of_every_form():
    witness = te.build(SMALL["swaps"], n=4)
    assert witness("abba") is np.True_ or witness("abba")
    assert witness(["abba", "aa", ""]).tolist() == [True, False, True]
    assert witness([list("ab"), ("a", "b")]).tolist() == [True, True]
    assert witness(np.array(["abba", "aa"])).tolist() == [True, False]
    pairs = te.build(adder(), n=4)
    assert pairs(["11", "01"]) == [0, 0]
    assert pairs([["11", "01"], ["10"]]) == [[0, 0], [1]]
    for wrong, named in (("abx", "'x'"), ("ababa", "at most 4 symbols"), ([], "at least one"), (3, "string")):
        with pytest.raises(InvalidInput, match=named):
            witness(wrong)
    with pytest.raises(InvalidInput, match="writes nothing"):
        witness.outputs("ab")


def test_a_machine_that_is_not_minimal_and_one_saved_in_bfloat16(tmp_path):
    """Two dead states, a state that nothing reaches, and a start that nothing enters: built as they are."""
    table = np.array([[1, 2], [1, 3], [2, 2], [3, 3], [0, 1]])
    given = te.automata.Automaton(
        ("a", "b"), table, 0, np.array([True, True, False, False, True]), np.full((5, 2), -1), (), tuple("stuvw"), 5
    )
    witness = te.build(given, n=7, dtype="bfloat16")
    right(witness, ["".join(s) for length in range(6) for s in itertools.product("ab", repeat=length)])
    witness.save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds
    assert te.load(tmp_path / "w").network.dtype == torch.bfloat16
    assert te.certify(tmp_path / "w").weights_sha256 == witness.certificate.weights_sha256
    assert te.load(tmp_path / "w", "float64")("aa")


def test_builds_that_are_refused():
    with pytest.raises(InvalidInput, match="'n', the most symbols"):
        te.build(SMALL["swaps"])
    with pytest.raises(InvalidInput, match="'n', the most symbols"):
        te.build(SMALL["swaps"], n=0)
    with pytest.raises(InvalidInput, match="one of auto, states, monoid"):
        te.build(SMALL["swaps"], n=4, maps="other")
    with pytest.raises(InvalidInput, match="'dtype' must be one of"):
        te.build(SMALL["swaps"], n=4, dtype="int8")
    with pytest.raises(InvalidInput, match="is not an option of Shallowest"):
        te.build(SMALL["swaps"], n=4, delta=1 / 2)
    with pytest.raises(CannotBuild, match=r"live states take .* units in .* Fewer states"):
        te.build(drawn(60, 3, 0), n=1 << 16)
    with pytest.raises(CannotBuild, match=r"rows are built. Fewer states"):
        te.plan(drawn(200, 3, 0), n=4)
    with pytest.raises(CannotBuild, match="in more than"):
        te.build(drawn(8, 3, 0), n=4, maps="monoid")


def test_a_trace_shows_the_doubling_tree():
    witness = te.build(SMALL["thirds"], n=16)
    traced = witness.trace("110100111")
    assert traced.output == witness("110100111")
    assert traced.states == witness.states("110100111").tolist()
    for t, block in enumerate(traced.blocks):
        for held in block:
            assert held.first == max(1, held.position - 2**t + 1)
            assert held.fetched == (None if t == 0 else max(0, held.position - 2 ** (t - 1)))
            segment = traced.word[held.first - 1 : held.last]
            for q, r in enumerate(held.map):
                found = q
                for symbol in segment:
                    found = int(witness.automaton.table[found, witness.automaton.number[symbol]])
                assert found == r
    with pytest.raises(InvalidInput, match="one string"):
        witness.trace(["1", "0"])
