"""Input that once ended in a stack trace: each of it is one sentence and exit code 2 now, or it works."""

import json
import math
import resource
import shutil

import numpy as np
import pytest

import thereexists as te
from tests import hostile
from tests.command import thereexists
from thereexists import program as P
from thereexists.certificates import units
from thereexists.constructions.faithful.sharded import build_sharded
from thereexists.core.errors import BadWitnessFile, CannotBuild, InvalidInput
from thereexists.functions.targets import builtin
from thereexists.witness.plan import ErrorBudget


def refused(*arguments, cwd):
    """The sentence of a refusal on the command line."""
    said = thereexists(*arguments, cwd=cwd, code=2).stderr
    assert said.startswith("Error: ")
    return said


# --- predicted errors of every size ----------------------------------------------------------------------------------


def true_norm(budget):
    """With logarithms."""
    logs = [budget.p * math.log(x) for x in (budget.grid, budget.equal_columns, budget.ramps) if x > 0]
    return math.exp((max(logs) + math.log(sum(math.exp(x - max(logs)) for x in logs))) / budget.p)


@pytest.mark.parametrize("size", [1e-250, 1e-6, 1.0, 1e6, 1e250])
@pytest.mark.parametrize("p", [1.0, 2.0, 64.0, 1000.0])
def test_a_total_neither_underflows_nor_overflows(size, p):
    budget = ErrorBudget(p, size, size / 3, size / 7)
    assert math.isclose(budget.total, true_norm(budget), rel_tol=1e-12)
    assert budget.total >= size


@pytest.mark.parametrize(("construction", "equivariant"), [("faithful", False), ("faithful", True), ("compact", False)])
@pytest.mark.parametrize(("width", "p"), [(1e-100, 1.0), (1e-6, 64.0), (1e6, 64.0), (1e100, 1.0)])
def test_what_is_predicted_of_any_domain_is_above_what_is_measured(construction, equivariant, width, p):
    target = te.Target(np.abs, n=2, lipschitz=1.0, equivariant=equivariant, domain=(0.0, width))
    witness = te.build(target, delta=1 / 2, construction=construction, p=p)
    measured = witness.estimate_distance(p=p, samples=64)
    assert 0 < measured.estimate <= witness.plan.error.total
    assert witness.plan.error.total < math.inf or (width, p) == (1e100, 1.0)


def test_epsilon_is_kept_at_a_large_p_or_refused(tmp_path):
    """Ramps, and equal columns, are off by a constant on a small share: at p = 64 that is no small error."""
    asked = "plan token-sine --n 2 --domain 0 1e-6 --p 64 --json --epsilon"
    assert "epsilon = 5e-07 needs" in refused(*asked.split(), "5e-7", cwd=tmp_path)
    plan = json.loads(thereexists(*asked.split(), "1e-5", cwd=tmp_path).stdout)
    assert 5e-7 < plan["error"]["total"] <= 1e-5


def test_a_plan_at_a_large_p_predicts_something(tmp_path):
    for high in ("1e-6", "1e6"):
        for p in ("64", "1000"):
            arguments = f"plan sort --n 2 --delta 1/2 --domain 0 {high} --p {p} --json".split()
            error = json.loads(thereexists(*arguments, cwd=tmp_path).stdout)["error"]
            assert error["total"] >= error["grid"] > 0


def test_equal_columns_with_values_far_above_the_others_are_counted():
    def f(X):  # large where the tokens are close, which only equal columns are
        return np.where(np.abs(X - X[:, ::-1]) < 0.4, 1e30, 1e-30) * np.ones_like(X)

    target = te.Target(f, n=2, modulus=lambda r: 1e-30 if r < 0.3 else 1e30, equivariant=True)
    with pytest.raises(te.ThereExistsError, match="modulus"):  # the claim is false, and found out
        te.build(target, delta=1 / 2, p=64.0)
    from thereexists.constructions.faithful.budget import _over_equal_columns
    from thereexists.functions.grid import Grid

    part, largest = _over_equal_columns(target, Grid.for_target(target, 1 / 2), 1e-30, 64.0)
    assert largest == 1e30
    assert 0.9e30 < part < 1.1e30


def test_a_share_of_nothing_is_nothing_and_a_share_of_little_is_not():
    over_share = units.over_share
    tiny = te.Target(np.abs, n=3, domain=(0.0, 1e-120))
    assert over_share(0.0, tiny, 0.5, 1.0) == over_share(1.0, tiny, 0.0, 1.0) == 0.0
    assert over_share(1e-10, tiny, 0.5, 1.0) > 0
    assert math.isclose(over_share(2.0, tiny, 1.0, 360.0), 2.0 * 10.0**-1, rel_tol=1e-12)
    assert over_share(1.0, te.Target(np.abs, n=3, domain=(0.0, 1e120)), 1.0, 1.0) == math.inf
    assert units.norm([0.0, 0.0], 64.0) == 0.0


@pytest.mark.parametrize("error", [{"p": 0}, {"p": 0.5}, {"grid": -1.0}, {"p": 64, "grid": 1e300, "ramps": 1e300}])
def test_a_stated_error_is_read_or_refused(error, small, tmp_path):
    shutil.copytree(small / "faithful", tmp_path / "w")
    hostile.forge_record(tmp_path / "w", lambda r: r["plan"]["error"].update(error))
    if error.get("p") == 64:
        assert te.load(tmp_path / "w").describe()["error"]["total"] >= 1e300
    else:
        with pytest.raises(BadWitnessFile, match="plan"):
            te.load(tmp_path / "w")


# --- domains and sizes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("construction", ["faithful", "compact"])
@pytest.mark.parametrize(
    "domain", [(0, 1e-323), (0, 1e-320), (0, 1e-200), (0, 1e200), (0, 1e308), (-1.7e308, 1.7e308), (1e300, 1.1e300)]
)
def test_a_domain_beyond_float64_is_refused(construction, domain):
    with pytest.raises(InvalidInput, match="Rescale"):
        te.build(te.Target(lambda X: 0 * X, n=2, lipschitz=1.0, domain=domain), delta=1 / 2, construction=construction)


def test_a_grid_of_a_record_beyond_float64_is_refused(small, tmp_path):
    shutil.copytree(small / "faithful", tmp_path / "w")
    hostile.forge_record(tmp_path / "w", lambda r: r["grid"].update(step=[1e-320]))
    with pytest.raises(BadWitnessFile, match="grid"):
        te.load(tmp_path / "w")


@pytest.fixture
def little_memory():
    """2 GiB above what the process has: a batch of sequences of a million numbers takes 30."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("how", [["--delta", "1/2"], ["--epsilon", "0.1"]])
@pytest.mark.parametrize("construction", ["faithful", "compact"])
@pytest.mark.parametrize("target", ["sort", "distance-to-mean"])
@pytest.mark.parametrize("n", [2000, 10**5, 10**6, 10**20])
def test_sizes_are_refused_before_any_work(target, construction, how, n, tmp_path, little_memory):
    if target == "distance-to-mean" and construction == "compact" and n == 2000:
        pytest.skip("2001 counts: this can be built")
    said = refused("plan", target, "--n", n, "--construction", construction, *how, cwd=tmp_path)
    assert str(n) in said
    assert len(said) < 400


def test_features_are_refused_before_any_work(tmp_path, little_memory):
    for d in (2000, 10**6, 10**9):
        for construction in ("faithful", "compact"):
            refused(
                *f"plan distance-to-mean --n 2 --d {d} --delta 1/2 --construction {construction}".split(), cwd=tmp_path
            )


def test_shards_of_hopeless_sizes_are_refused_before_any_work(tmp_path, little_memory):
    with pytest.raises(CannotBuild, match="tokens"):
        build_sharded(builtin("sort", n=10**6), tmp_path / "w", 1 / 2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("how", [{"delta": "1e-400"}, {"delta": "1e-5000"}, {"epsilon": 1e-300}])
@pytest.mark.parametrize("construction", ["faithful", "compact"])
def test_grids_finer_than_float64_are_refused(how, construction):
    with pytest.raises(te.ThereExistsError, match=r"2\^-52|finer grid"):
        te.build(builtin("sort", n=2), construction=construction, **how)


# --- tokens ----------------------------------------------------------------------------------------------------------


def test_integers_of_any_length_are_tokens_of_a_table(tmp_path):
    long = "7" * 5000
    (tmp_path / "t.csv").write_text(f"x1,x2,y1,y2\n1,2,{long},1\n2,1,3,4\n")
    thereexists(*["build", "t.csv", "--construction", "compact", "--out", "w"], cwd=tmp_path)
    assert te.load(tmp_path / "w")([["1", "2"]]) == [[long, "1"]]
    with pytest.raises(InvalidInput, match="100 digits"):
        te.memorise([[10**5000]], [["a"]])
    with pytest.raises(InvalidInput, match="100 digits"):
        te.memorise([["a"]], [[-(10**99)]])
    witness = te.memorise([[10**99]], [[-(10**98)]])
    witness.save(tmp_path / "m")
    assert te.load(tmp_path / "m")([[10**99]]) == [[-(10**98)]]


def test_a_cell_beyond_what_csv_holds_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text(f"x1,y1\na,b\n{'a' * 140_000},b\n")
    assert "line 3" in refused(*["build", "t.csv", "--construction", "compact", "--out", "w"], cwd=tmp_path)
    te.memorise([["a", "b"]], [["x"]]).save(tmp_path / "m")
    assert "line 3" in refused(*["run", "m", "--input", "t.csv"], cwd=tmp_path)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    root = tmp_path_factory.mktemp("small")
    te.build(builtin("sort", n=2), delta=1 / 2).save(root / "faithful")
    te.build(builtin("sort", n=2), delta=1 / 2, construction="compact").save(root / "compact")
    build_sharded(builtin("sort", n=2), root / "shards", 1 / 2, shard_bytes=1500)
    return root


# --- certificates, exports, folders ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampling", [{"opinions": 0}, {"opinions": -1}, {"opinions": True}, {"seed": -1}, {"samples": 0}]
)
def test_sampling_that_is_none_is_refused(sampling, small):
    witness = te.load(small / "compact")
    with pytest.raises(InvalidInput, match=next(iter(sampling))):
        te.certify(witness, **sampling)


def test_verify_asks_for_one_opinion_at_least(tmp_path):
    with pytest.raises(InvalidInput, match="opinions"):
        te.verify(tmp_path, opinions=0)


def test_an_export_to_a_place_that_cannot_be_written_is_refused(tmp_path):
    te.build(builtin("sort", n=2), delta=1 / 2, construction="compact").save(tmp_path / "c")
    assert "written" in refused(*["export", "c", "--to", "torch", "--out", "/proc/1/x"], cwd=tmp_path)


@pytest.mark.parametrize("names", [[1, "a", None], ["../a", 2], [None, None], [[], {}]])
def test_an_index_of_shards_with_names_of_any_kind_is_refused(names, small, tmp_path):
    shutil.copytree(small / "shards", tmp_path / "w")
    index = tmp_path / "w" / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    content["weight_map"].update({f"strange{i}": name for i, name in enumerate(names)})
    index.write_text(json.dumps(content))
    for command in (["show", "w"], ["run", "w", "--input", "0.1 0.2"]):
        refused(*command, cwd=tmp_path)


@pytest.mark.parametrize("weight", [math.inf, -math.inf, math.nan, 1e308])
def test_a_trace_shows_numbers_that_are_not_finite(weight, small, tmp_path):
    shutil.copytree(small / "faithful", tmp_path / "w")

    def change(weights):
        weights["stages.value.feed_forward.b_2"][-1] = weight

    hostile.forge_weights(tmp_path / "w", change)
    for more in ([], ["--json"]):
        thereexists("trace", "w", "--input", "0.1 0.2", *more, cwd=tmp_path)


# --- programs --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    root = tmp_path_factory.mktemp("programs")
    te.build(P.soft_largest(P.tokens(n=3, shorter=True), sharpness=5.0)).save(root / "shorter")
    te.build(0.5 * P.tokens(n=2) + 0.25, dtypes=("float64", "float32")).save(root / "plain")
    return root


@pytest.mark.parametrize("kind", ["shorter", "plain"])
def test_no_sequence_at_all_is_refused(kind, programs, tmp_path):
    witness = te.load(programs / kind)
    for shape in ((0, witness.n, 1), (0, 1, 1)):
        np.save(tmp_path / "zero.npy", np.zeros(shape))
        refused("run", programs / kind, "--input", "zero.npy", cwd=tmp_path)
    with pytest.raises(InvalidInput, match="at least one sequence"):
        witness(np.zeros((0, witness.n, 1)))


def bounds(**changed):
    return lambda r: r.update(bounds={name: part for name, part in (r["bounds"] | changed).items() if part is not None})


FORGED = {  # of a program's certificate
    "no bounds": lambda r: r.update(bounds={}),
    "no bound": bounds(float64={"rounding": 1e-9}),
    "no rounding": bounds(float64={"bound": 1e-9}),
    "a word for a bound": bounds(float64={"bound": "little", "rounding": 0.0}),
    "a negative bound": bounds(float64={"bound": -1.0, "rounding": 0.0}),
    "another number": bounds(float64={"bound": 1.0, "rounding": 0.0, "more": 0.0}),
    "an unknown dtype": bounds(float8={"bound": 1.0, "rounding": 0.0}),
    "no box": lambda r: r.update(box=[]),
    "half a box": lambda r: r.update(box=[[0.0]]),
    "a box upside down": lambda r: r.update(box=[[1.0, 0.0]]),
    "a negative part": lambda r: r["parts"].update(weights=-1.0),
    "a reason that is a number": lambda r: r.update(reasons={"float16": 1}),
    "no reasons": lambda r: r.pop("reasons"),
    "a list of parts": lambda r: r.update(parts=[]),
}
COMMANDS = {
    "show": ["show", "w"],
    "show --json": ["show", "w", "--json"],
    "run --json": ["run", "w", "--input", "0.1 0.2", "--json"],
    "export": ["export", "w", "--to", "torch", "--out", "o", "--dtype", "float64"],
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_certificate_of_other_types_is_refused_when_it_is_read(forged, programs, tmp_path):
    shutil.copytree(programs / "plain", tmp_path / "w")
    hostile.forge_certificate(tmp_path / "w", FORGED[forged])
    with pytest.raises(BadWitnessFile, match="certificate"):
        te.load(tmp_path / "w")
    for command in COMMANDS.values() if forged == "no bounds" else ():
        assert "certificate" in refused(*command, cwd=tmp_path)
    assert te.verify(tmp_path / "w").holds is False


def test_a_certificate_of_another_dtype_says_nothing_about_this_one(programs, tmp_path):
    shutil.copytree(programs / "plain", tmp_path / "w")
    hostile.forge_certificate(tmp_path / "w", bounds(float64=None))
    done = thereexists(*COMMANDS["run --json"], cwd=tmp_path)
    assert json.loads(done.stdout)["bound"] is None
    thereexists(*COMMANDS["show"], cwd=tmp_path)
    assert "float64" in refused(*COMMANDS["export"], cwd=tmp_path)


def test_two_boxes_for_one_feature_change_no_export(programs, tmp_path):
    shutil.copytree(programs / "plain", tmp_path / "w")
    hostile.forge_certificate(tmp_path / "w", lambda r: r.update(box=[[0.0, 1.0], [0.0, 1.0]]))
    thereexists(*COMMANDS["export"], cwd=tmp_path)
    assert te.verify(tmp_path / "w").holds is False


@pytest.mark.parametrize("safe", [[], ["float8"], ["float64", "float64"], "float64", [[]], {}])
def test_a_network_that_is_safe_in_nothing_is_refused(safe, programs, tmp_path):
    shutil.copytree(programs / "plain", tmp_path / "w")
    hostile.forge_record(tmp_path / "w", lambda r: r["structure"].update(safe=safe))
    refused("certify", "w", cwd=tmp_path)
    refused("show", "w", cwd=tmp_path)


# --- what a stock checkpoint is asked of ------------------------------------------------------------------------------


def test_an_answer_that_no_vocabulary_has_is_refused(tmp_path):
    """A word less than the stored outputs speak of: of any verb, and of verify, which says that it does not hold."""
    te.memorise([["a", "b"], ["b", "a"]], [["x"], ["y"]]).save(tmp_path / "w")
    hostile.forge_record(tmp_path / "w", lambda record: record["output_vocabulary"].pop())
    for verb in (["plan", "w", "--to", "llama"], ["export", "w", "--to", "llama", "--out", "e"], ["show", "w"]):
        assert "a stored output holds a number" in refused(*verb, cwd=tmp_path)
    assert te.verify(tmp_path / "w").holds is False


@pytest.mark.parametrize("setting", [{"knots": [0.0, 1e-300], "values": [0.0, 2.0**39]}, {"coefficients": [1e300]}])
def test_numbers_beyond_float64_have_no_stock_checkpoint(tmp_path, setting):
    te.build(1.0 * P.tokens(n=2), dtypes=("float64",)).save(tmp_path / "w")
    last = {"operation": "linear" if "coefficients" in setting else "interp", "d": 1, "settings": setting}

    def one_more(record):
        nodes = record["program"]["nodes"]
        nodes.append({**last, "arguments": [len(nodes) - 1]})

    hostile.forge_record(tmp_path / "w", one_more)
    for verb in (["plan", "w", "--to", "llama"], ["export", "w", "--to", "llama", "--out", "e"]):
        assert "has no stock Llama checkpoint" in refused(*verb, cwd=tmp_path)
