"""The float64 run, proved for every machine: runs in shuffled orders stay inside, and what breaks the proof is seen."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import thereexists as te
from tests.certificates.orders import run_in_another_order, shuffled, with_rows_shuffled
from tests.hostile import certified, forge_certificate, forge_weights
from tests.supported import bumped
from thereexists.certificates.enclose import Encloser
from thereexists.certificates.float_edges import edge_points
from thereexists.certificates.float_proof import FloatRunner, _fits, _lowest_bit
from thereexists.certificates.float_reach import float_output_bound
from thereexists.certificates.verify_bound import _check_float_proof, _is_size
from thereexists.evaluate import run_batch
from thereexists.functions.targets import BUILTINS, builtin
from thereexists.model import Attention, FeedForward, Stage, Transformer


def balls_of(witness, count, evaluator=Encloser, seed=0):
    """Random inputs off the ramps, and the ball on the core of each: of the network, or of its float64 run."""
    target, grid = witness.target, witness.grid
    X = target.low + (target.high - target.low) * np.random.default_rng(seed).random((count, grid.n, grid.d))
    X = X[~grid.on_ramp(X)]
    number = (grid.index(X).reshape(len(X), -1) * grid.N ** np.arange(grid.n * grid.d - 1, -1, -1)).sum(1)
    return X, evaluator(witness.network, grid)(number)


CASES = {
    "Theorem 2": lambda: te.build(builtin("sort", n=2), delta=1 / 4),
    "Theorem 1": lambda: te.build(builtin("token-sine", n=2), delta=1 / 4),
    "three tokens": lambda: te.build(builtin("deep-sets", n=3), delta=1 / 4),
    "two features": lambda: te.build(builtin("convolution", n=2, d=2), delta=1 / 2),
    "a box around 0": lambda: te.build(builtin("soft-rank", n=2, domain=(-1.0, 2.3)), delta=1 / 3),
    "a pattern": lambda: te.build(builtin("sort", n=3), delta=1 / 2, pattern=te.patterns.star(n=3)),
    "guarded": lambda: te.build(bumped("distance-to-mean", n=2, domain=(-0.3, 0.7)), delta=1 / 4),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES)
def test_every_order_on_every_engine_stays_inside(case):
    witness = CASES[case]()
    X, F = balls_of(witness, 300, FloatRunner)
    rng = np.random.default_rng(1)
    runs = [witness(X, engine) for engine in ("reference", "fused", "skip")]
    runs += [run_in_another_order(witness.network, X, rng) for _ in range(3)]
    runs.append(np.concatenate([witness(x[None]) for x in X[:50]] + [runs[0][50:]]))  # other batch sizes
    for Y in runs:
        assert (np.abs(Y - F.mid) <= F.rad).all()
    if case in ("Theorem 2", "two features", "a pattern"):
        assert (F.rad == 0).all()  # exact, to the last bit, on every machine


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BUILTINS)
def test_it_is_proved_of_every_target(name):
    witness = te.build(builtin(name, n=2), delta=1 / 4)
    drift = te.certify(witness, opinions=1).float_error
    assert drift["kind"] == "proved"
    assert drift["cubes"] == witness.grid.cells
    assert drift["max"] < 1e-7


def test_order_free_sums_are_exact_and_no_others():
    rng = np.random.default_rng(0)
    for _ in range(300):
        k = int(rng.integers(-30, 20))
        terms = rng.integers(-(2**50), 2**50, size=4) * 2.0**k
        size, lattice = np.abs(terms).sum(), _lowest_bit(terms).min()
        sums = {float(shuffled(list(terms), rng)) for _ in range(8)}
        assert not _fits(size, lattice) or len(sums) == 1
    assert _lowest_bit(np.array([0.0, 1.0, 0.75, 3.0 * 2.0**40])).tolist()[1:] == [0, -2, 40]
    assert not _fits(np.array(2.0**53 + 2), np.array(0))


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("floats") / "w"
    witness = te.build(builtin("token-sine", n=2), delta=1 / 4)
    witness.save(folder)
    made = te.certify(witness, opinions=1)
    assert 0 < made.float_error["max"] < 1e-9
    made.save(folder)
    return folder


def changed(name, index, how):
    def change(weights):
        weights[f"stages.{name}"][index] = how(weights[f"stages.{name}"][index])

    return lambda folder: forge_weights(folder, change)


def one_ulp(x):
    return torch.nextafter(x, torch.full_like(x, torch.inf))


def past_the_bits(folder):
    """A value layer that computes the same over the reals, up to 1e-16, with numbers of thirty bits more."""
    factor = 2.0**30 + 1

    def change(weights):
        for name, scale in (("W_1", factor), ("b_1", factor)):
            weights[f"stages.value.feed_forward.{name}"][3, :2] *= scale
        weights["stages.value.feed_forward.W_2"][3, :, :2] /= factor

    forge_weights(folder, change)


def halved(record):
    return record["float_error"]["max"] / 2


FAULTS = {
    "a weight one ulp off the lattice": changed("quantise.feed_forward.b_1", (2, 0), one_ulp),
    "a shift one ulp off": changed("context.attention.W_O", (2, 0, 0, 0), one_ulp),
    "a magnitude past 2^53": past_the_bits,
    "a logit gap too small to underflow": (
        lambda f: forge_weights(f, lambda w: [w[f"stages.context.attention.{p}"].mul_(0.1) for p in ("W_Q", "b_Q")])
    ),
    "a smaller difference": lambda f: forge_certificate(f, lambda r: r["float_error"].update(max=halved(r))),
    "a larger one": lambda f: forge_certificate(f, lambda r: r["float_error"].update(max=1e-9)),
    "fewer cubes": lambda f: forge_certificate(f, lambda r: r["float_error"].update(cubes=15)),
    "another dtype": lambda f: forge_certificate(f, lambda r: r["float_error"].update(dtype="float32")),
    "no such kind": certified(float_error={"kind": "sworn", "dtype": "float64", "cubes": 16, "max": 1.0}),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_what_breaks_the_proof_is_noticed(fault, original, tmp_path):
    shutil.copytree(original, tmp_path / "w")
    assert fault != "a smaller difference" or te.verify(original, opinions=1).holds
    FAULTS[fault](tmp_path / "w")
    verdict = te.verify(tmp_path / "w", opinions=1)
    failed = {check.name for check in verdict.evidence if check.passed is False}
    assert verdict.holds is False
    assert "float proof" in failed or fault in ("another dtype", "no such kind")


def test_exact_is_a_claim_of_its_own_and_no_error_is_negative():
    """What was found to be 1e-290 is no 0, and a part of an error is not below 0; within 1e-21 of |f| or not."""
    assert not _is_size(0, 1e-290)
    assert not _is_size(-1e-22, 0.0)
    assert _is_size(0, 0.0)
    assert _is_size(1e-290, 1e-290)
    found = SimpleNamespace(float_run=(1e-290, 64), target_bound=1.0)
    claimed = {"kind": "proved", "cubes": 64}
    assert _check_float_proof(claimed | {"max": 1e-290}, found, 64).passed
    assert not _check_float_proof(claimed | {"max": 0}, found, 64).passed


def test_a_network_that_does_not_qualify_is_measured():
    witness = te.build(builtin("sort", n=2), delta=1 / 2, rho="sparsemax", pattern=te.patterns.star(n=2))
    assert te.certify(witness, opinions=1).float_error["kind"] == "measured"


def test_a_compact_run_is_the_real_one_rounded_once():
    for name in ("soft-rank", "convolution"):
        witness = te.build(builtin(name, n=2), delta=1 / 4, construction="compact")
        drift = te.certify(witness, opinions=1).float_error
        assert drift["kind"] == "proved"
        assert drift["cubes"] == witness.grid.cells
        X, G = balls_of(witness, 300)
        assert (np.abs(witness(X) - G.mid) + G.rad <= drift["max"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("construction", ["faithful", "compact"])
@pytest.mark.parametrize("name", BUILTINS)
def test_three_tokens_ten_thousand_inputs_and_shuffled_orders(name, construction):
    """The run is proved on every core, those of equal tokens included, and no run leaves its bound."""
    witness = te.build(builtin(name, n=3), delta=1 / 8, construction=construction)
    certificate, rng = te.certify(witness, opinions=1), np.random.default_rng(1)
    drift, found = certificate.float_error, certificate.float_run
    assert (drift["kind"], drift["cubes"], found["status"]) == ("proved", 512, "proved")
    assert found["dtypes"]["float64"]["bound"] <= certificate.bound * (1 + 1e-3)
    X, G = balls_of(witness, 10_000)
    edges = edge_points(witness.target, witness.grid, rng, 10_000)
    for engine in ("reference", "fused"):
        assert (np.abs(witness(X, engine) - G.mid) <= drift["max"] + G.rad).all()
        assert (np.abs(witness(edges, engine)) <= found["dtypes"]["float64"]["output"]).all()
    if construction == "faithful":
        Y = run_in_another_order(witness.network, X, rng)
        assert (np.abs(Y - G.mid) <= drift["max"] + G.rad).all()
        return
    for dtype, said in found["dtypes"].items():
        other = with_rows_shuffled(witness.to(dtype).network, rng)
        for network in (witness.to(dtype).network, other):
            Y, Z = (run_batch(network, points.astype(dtype)).astype(np.float64) for points in (X, edges))
            assert (np.abs(Y - G.mid) <= said["cores"] + G.rad).all()
            assert (np.abs(Z) <= said["output"]).all()


def test_nothing_is_proved_of_a_statistical_one(tmp_path):
    target = te.Target(lambda X: 0.5 * np.sort(X, axis=1), n=2, bound=0.5, name="half-sorted")
    witness = te.build(target, delta=1 / 2)
    witness.save(tmp_path / "w")
    te.certify(witness, opinions=1, samples=100).save(tmp_path / "w")
    forge_certificate(tmp_path / "w", lambda r: r["float_error"].update(kind="proved"))
    verdict = te.verify(tmp_path / "w", target, opinions=1)
    assert any(check.name == "float proof" and check.passed is False for check in verdict.evidence)


@pytest.mark.parametrize("alive", [0.0, 1e-200])
def test_a_head_that_overflows_proves_nothing_of_the_run(alive):
    """W_K (b − a x) x passes the largest float64 around one point: ∞ − ∞ in a softmax whose output is weighed by 0."""
    honest = te.build(te.targets.builtin("sort", n=1, domain=(0.0, 1e10)), delta=1 / 8)
    x, b = 1e10 * 0.53125 + 12345678.0, 9e149
    k = np.finfo(np.float64).max / (b / 2 * x) * (1 + 1e-15)

    def head(*values):
        return torch.tensor(values, dtype=torch.float64).reshape(1, 2, 1, 1)

    b_Q = torch.tensor([[[b], [0.0]]], dtype=torch.float64)
    dead = Attention(head(-b / (2 * x), 0.0), b_Q, head(k, 0.0), head(0.0, 0.0), head(alive, 0.0))
    network = Transformer({"first": Stage(dead), **honest.network.stages}, "softmax", honest.network.E)
    assert np.isnan(network.run(np.array([[[x]]]))).all()
    assert float_output_bound(honest.network, honest.target)[0] < 1e12
    assert float_output_bound(network, honest.target) == [np.inf]
    numbers = np.arange(honest.grid.cells)
    assert np.isfinite(FloatRunner(honest.network, honest.grid)(numbers).rad).all()
    assert np.isinf(FloatRunner(network, honest.grid)(numbers).rad).any()


def test_a_unit_that_writes_nothing_may_overflow():
    """Three layers take z > 1/2 to 2^900, a fourth has an idle unit 2^300 z, a fifth takes it away again."""
    honest = te.build(builtin("sort", n=2), delta=1 / 4)
    parts = [w.detach() for w in honest.network.stages["value"].feed_forward.parameters_list()]
    r, large = parts[0].shape[1], 2.0**300

    def layer(*units):
        W_1, b_1, W_2 = (torch.zeros(1, *shape).double() for shape in ((r, 1), (r,), (1, r)))
        for i, (reads, bias, writes) in enumerate(units):
            W_1[0, i, 0], b_1[0, i], W_2[0, 0, i] = reads, bias, writes
        return [W_1, b_1, W_2, torch.zeros(1, 1).double()]

    planted = [layer((1, -0.5, large)), layer((1, -1, large)), layer((1, -1, large))]
    planted += [layer((-1, 0, 1), (large, 0, 0)), layer((1, 0, -1))]
    stacked = [torch.cat([p[:-6], *[q[i] for q in planted], p[-1:]]) for i, p in enumerate(parts)]
    stages = {**honest.network.stages, "value": Stage(None, FeedForward(*stacked))}
    network = Transformer(stages, "softmax", honest.network.E)
    X = np.array([[[0.9], [0.1]]])
    with torch.no_grad():
        assert network(torch.from_numpy(X)).isnan().all()
    assert np.isnan(run_batch(network, X)).all()
    assert np.isinf(FloatRunner(network, honest.grid)(np.arange(honest.grid.cells)).rad).any()
