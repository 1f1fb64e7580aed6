"""What a folder says of itself beside its bound: found again from the weights, or marked as its author's word."""

import dataclasses
import json
import re

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel

import thereexists as te
import thereexists.exports.hf_format  # registers the model
import thereexists.program as P
from tests.cli.in_process import ran
from tests.hostile import forge_certificate, forge_record, forge_weights
from thereexists.core.authors_word import WORDS
from thereexists.core.plain_text import d_of, in_full
from thereexists.core.rounded_figures import in_percent
from thereexists.functions.domains.stored import from_file
from thereexists.reports.explore.viewer import open_viewer
from thereexists.reports.witness.function import build_command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("honest")
    sort = te.targets.builtin("sort", n=2)
    te.build(sort, delta=1 / 4).save(folder / "faithful")
    te.certify(te.load(folder / "faithful")).save(folder / "faithful")
    te.build(sort, delta=1 / 4, construction="compact").save(folder / "compact")
    te.build(te.automata.regex("((b*a){3})*b*", "ab"), n=600, construction="counting").save(folder / "counting")
    te.build(te.automata.regex("(ab|ba)*", "ab"), n=5).save(folder / "automaton")
    te.build(P.sort(P.tokens(3))).save(folder / "program")
    te.build(P.symbols("ab", n=3).sort()).save(folder / "symbols")
    return folder


@pytest.fixture
def copied(folder, tmp_path):
    def one(name):
        for file in (folder / name).iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        return tmp_path

    return one


def failed(verdict):
    return [check.name for check in verdict.evidence if not check.passed]


def test_no_export_carries_dtypes_that_only_a_record_calls_safe(copied, tmp_path):
    """600 symbols cannot be counted in bfloat16, which the record says, and no hash is there that could tell."""
    w = copied("counting")
    forge_record(w, lambda r: r["structure"].update(safe=["float64", "float32", "bfloat16", "float16"]))
    assert te.load(w).safe() == ("float64", "float32")
    te.export(te.load(w), "hf", tmp_path / "hf")
    assert json.loads((tmp_path / "hf" / "config.json").read_text())["safe_dtypes"] == ["float64", "float32"]
    with pytest.raises(ValueError, match="bfloat16"):
        AutoModel.from_pretrained(tmp_path / "hf", dtype=torch.bfloat16)(input_ids=torch.tensor([[1, 2, 2]]))
    (line,) = (line for line in ran("show .", cwd=w).stdout.splitlines() if line.startswith("dtypes"))
    assert line.endswith(f"({WORDS})")
    assert "safe" in json.loads(ran("show . --json", cwd=w).stdout)["as_its_author_says"]
    assert not te.verify(w).holds


@pytest.mark.parametrize("lie", [{"theorem": 1}, {"theorem": "B"}, {"parameters": 9**20}, {"n": 3}, {"delta": 0.125}])
@pytest.mark.parametrize("kind", ["faithful", "compact"])
def test_a_plan_says_what_the_weights_say(kind, lie, copied):
    w = copied(kind)
    if kind == "compact":
        te.certify(te.load(w)).save(w)
    assert te.verify(w).holds
    honest = repr(te.load(w)), repr(te.load(w).plan), te.load(w).describe()
    forge_record(w, lambda r: r["plan"].update(lie))
    assert "plan" in failed(te.verify(w))
    assert (repr(te.load(w)), repr(te.load(w).plan), te.load(w).describe()) == honest


def test_sweeps_and_the_grid_are_its_authors_word(copied):
    w = copied("faithful")
    forge_record(w, lambda r: r["plan"].update(sweeps=2))
    said = ran("show .", cwd=w).stdout
    assert f"two sweeps ({WORDS})" in said
    assert f"delta = 1/4 ({WORDS})" in said


@pytest.mark.parametrize("kind", ["program", "symbols"])
def test_what_a_program_computes_is_its_authors_word(kind, copied):
    """With all weights 0 nothing sorts; only ``verify`` compares program and network."""
    w = copied(kind)
    forge_weights(w, lambda weights: [weight.zero_() for weight in weights.values()])
    assert te.verify(w).holds is False
    assert WORDS in repr(te.load(w)).split("sort")[0]
    (line,) = (line for line in ran("show .", cwd=w).stdout.splitlines() if line.startswith("program"))
    assert line.endswith(f"({WORDS})")
    assert {"operation", "box"} <= {*json.loads(ran("show . --json", cwd=w).stdout)["as_its_author_says"]}
    page = str(te.report(w))
    assert f"There exists a Transformer: sort(x) ({WORDS})" in page
    for said in re.findall(r"<pre>sort\(x\)</pre>.*|every entry in.{20}", page):
        assert WORDS[:5] in said
    assert open_viewer(w).about()["title"].endswith(f"({WORDS})")


def test_a_largest_value_is_not_lowered_by_a_hair(tmp_path):
    """The error at a point of the domain is 3/16 and |f| is 1 at another: less is false, by however little."""
    points = [[0, 0], [1, 1], [0.0625, 0.1875], [0.09375, 0.21875], [0.53125, 0.65625]]
    target = dataclasses.replace(te.targets.builtin("sort", n=2), domain=te.domains.Points(points))
    witness = te.build(target, delta=1 / 4, construction="compact")
    witness.save(tmp_path)
    te.certify(witness).save(tmp_path)
    assert np.abs(witness(np.zeros((1, 2, 1)))).max() == 0.1875
    for change, check in (
        (lambda c: c["uniform"].update(most=c["uniform"]["most"] * (1 - 1e-12)), "single inputs"),
        (lambda c: c.update(target_bound=c["target_bound"] * (1 - 1e-12)), "target bound"),
        (lambda c: c.update(target_bound=1 - 2.0**-50), "target bound"),
    ):
        honest = (tmp_path / "certificate.json").read_bytes()
        forge_certificate(tmp_path, change)
        assert failed(te.verify(tmp_path)) == [check]
        (tmp_path / "certificate.json").write_bytes(honest)
    assert te.verify(tmp_path).holds


def test_the_float_run_is_not_lowered_by_a_hair(copied):
    w = copied("faithful")
    te.certify(te.load(w)).save(w)
    honest = (w / "certificate.json").read_bytes()
    run = json.loads(honest)["float_run"]["dtypes"]["float64"]
    less = 1 - 2.0**-40
    for change, check in (
        (lambda c: c["float_error"].update(max=c["float_error"]["max"] * less), "float proof"),
        (lambda c: c["float_run"]["dtypes"]["float64"].update(cores=run["cores"] * less), "float bound"),
        (lambda c: c["float_run"]["dtypes"]["float64"].update(output=[run["output"][0] * less]), "float bound"),
        (lambda c: c["float_run"]["dtypes"]["float64"].update(bound=run["bound"] * less), "float bound"),
    ):
        forge_certificate(w, change)
        assert failed(te.verify(w)) == [check]
        (w / "certificate.json").write_bytes(honest)
    assert te.verify(w).holds


@pytest.mark.parametrize("kind", ["counting", "automaton", "program", "symbols"])
def test_a_loaded_certificate_is_its_authors_word(kind, copied):
    loaded = te.load(copied(kind))
    assert f"{WORDS}: " in repr(loaded)
    assert repr(loaded.certificate).split(": ")[1] == WORDS
    own = te.certify(loaded)
    assert WORDS not in repr(own)
    assert own == loaded.certificate


def test_loaded_figures_are_their_authors_word(tmp_path):
    own = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
    own = dataclasses.replace(own, distance=own.estimate_distance(samples=64))
    own.save(tmp_path)
    loaded = te.load(tmp_path)
    for stated, found in ((loaded.distance, own.distance), (loaded.plan.error, own.plan.error)):
        assert stated == found
        assert repr(stated).endswith(f"({WORDS})")
        assert WORDS not in repr(found)


def test_parts_of_a_bound_are_not_understated(copied):
    w = copied("faithful")
    forge_certificate(w, lambda c: c["parts"].update(network=1e-320))
    assert failed(te.verify(w)) == ["parts"]


def test_what_a_function_is_called_is_its_authors_word(tmp_path):
    """Reverse, which a record calls sort: one of our names, and in a folder nobody has compared the two."""
    witness = te.build(te.targets.builtin("reverse", n=2), delta=1 / 4)
    witness.save(tmp_path)
    assert WORDS not in repr(witness)
    forge_record(tmp_path, lambda r: (r["target"].update(name="sort"), r["target"]["origin"].update(reference="sort")))
    assert f"{WORDS}: sort on [0, 1], delta = 0.25" in repr(te.load(tmp_path))
    assert "target" in json.loads(ran("show . --json", cwd=tmp_path).stdout)["as_its_author_says"]
    assert ran("report . --out r.html", cwd=tmp_path).code == 0
    page = (tmp_path / "r.html").read_text()
    for told in ("There exists a Transformer: sort", "builtin sort", "δ = 1/4, 16 cubes", "feature by feature"):
        at = page.find(told)
        assert at > 0, told
        assert WORDS in page[at : at + len(told) + 40], told


RING = """
import thereexists as te

ring = te.domains.Implicit(lambda x: 0.1 - ((x - 0.5) ** 2).sum(axis=1), 0, 1, lipschitz=2.0, whole=True)
"""


def test_where_a_domain_comes_from_is_its_authors_word(tmp_path):
    """Of file.py:name, ``verify`` compares the file's hash and the name: the path may be any sentence."""
    (tmp_path / "my.py").write_text(RING)
    sort = te.targets.builtin("sort", n=2)
    witness = te.build(dataclasses.replace(sort, domain=from_file(f"{tmp_path / 'my.py'}:ring")), delta=1 / 4)
    witness.save(w := tmp_path / "w")
    te.certify(witness, opinions=1).save(w)
    for forge in (forge_record, forge_certificate):
        forge(w, lambda r: r["target"]["domain"]["origin"].update(reference="all of R^2, proved: x - x:ring"))
    (line,) = (line for line in ran("show w", cwd=tmp_path).stdout.splitlines() if line.startswith("domain"))
    assert "the set where ring ≤ 0" in line
    assert line.endswith(f"({WORDS})")
    assert "region" in json.loads(ran("show w --json", cwd=tmp_path).stdout)["as_its_author_says"]
    verified = ran("verify w --domain my.py:ring", cwd=tmp_path)
    assert verified.code == 0, verified
    assert "all of R" not in verified.stdout
    assert f"x - x:ring ({WORDS})" in ran("run w --input '0.2 0.5'", cwd=tmp_path).stderr


def test_states_before_minimising_are_nowhere_a_fact(copied):
    w = copied("automaton")
    assert "before minimising" in repr(te.build(te.automata.regex("(ab|ba)*", "ab"), n=5))
    assert "before minimising" not in repr(te.load(w)) + repr(te.load(w).automaton)


def test_a_stage_without_its_feed_forward_half_is_traced(copied):
    """The record takes it away, and its weights are nobody's then; other commands run such a folder, too."""
    w = copied("compact")
    forge_record(w, lambda r: r["structure"]["stages"]["gather"].update(feed_forward=False))
    done = ran("trace . --input '0.1 0.9'", cwd=w)
    assert (done.code, done.stderr) == (0, "")


def test_confidences_are_not_rounded_up():
    assert in_percent(0.9996) == "99.96%"
    assert in_percent(0.99) == "99%"
    assert in_percent(1 - 2.0**-40) == "99.99999999990905%"
    witness = te.build(te.Target(lambda X: X, n=1, bound=1.0), delta=1 / 2)
    assert "99.96% confidence" in repr(te.certify(witness, confidence=0.9996))


def test_a_program_over_symbols_without_a_row_is_refused_in_words(copied):
    def forge(record):
        nodes = record["program"]["nodes"]
        next(node for node in nodes if node["operation"] == "constant")["settings"]["array"].pop()

    s = P.symbols("ab", n=3)
    te.build(P.choose([1, 0, 1], s, "x")).save(w := copied("symbols") / "chosen")
    forge_record(w, forge)
    with pytest.raises(te.ThereExistsError, match="its arrays do not have n rows"):
        te.load(w)
    assert te.verify(w).holds is False


@pytest.mark.parametrize("distance", [{"a": 1}, 0.5, "x", [1.0], {**dict.fromkeys("pq", 1.0), "low": None}])
def test_what_cannot_be_loaded_is_not_said_to_hold(distance, copied):
    w = copied("faithful")
    forge_record(w, lambda r: r.update(distance=distance))
    with pytest.raises(te.ThereExistsError, match="measured distance"):
        te.load(w)
    assert te.verify(w).holds is False


def test_the_command_for_a_box_of_several_ranges_builds_it_again(tmp_path):
    target = te.targets.builtin("sort", 1, 2, ([0.0, -2.0], [1.0, 5.0]))
    te.build(target, delta=1 / 2).save(tmp_path / "w")
    command, remarks = build_command(te.load(tmp_path / "w"))
    assert not remarks
    done = ran(command.removeprefix("thereexists "), "--out", "again", cwd=tmp_path)
    assert done.code == 0
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("w", "again")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0].keys() | weights[1].keys())


def test_the_length_of_a_data_set_is_its_authors_word(tmp_path):
    te.memorise([["a"], ["a", "b"]], [["x"], ["y"]]).save(tmp_path / "w")
    forge_record(tmp_path / "w", lambda r: r["tokens"].update(fixed=True))
    page = str(te.report(tmp_path / "w"))
    assert f"exactly 2 tokens ({WORDS})" in page
    assert te.verify(tmp_path / "w").holds is False


@pytest.mark.parametrize("word", ["slots", "counts", "codes"])
def test_what_stages_are_called_does_not_say_what_is_summed(word, tmp_path):
    """A table by slots under the names of a memory of codes, with an idle block in the fourth place."""
    te.build(te.Table([[0, 1], [1, 0], [0, 0]], [[0, 1], [0, 1], [0, 0]])).save(tmp_path / "w")
    names = {"slots": "codes", "gather": "sums", "recall": "recall"}
    idle = {"W_1": (1, 1, 0), "b_1": (1, 1), "W_2": (1, 0, 1), "b_2": (1, 0)}

    def rename(w):
        d = w["W_out"].shape[1]
        for key in [key for key in w if key.startswith("stages.")]:
            stage, part = key.removeprefix("stages.").split(".", 1)
            w[f"stages.{names[stage]}.{part}"] = w.pop(key).clone()
        for part, shape in idle.items():
            w[f"stages.select.feed_forward.{part}"] = torch.zeros([size or d for size in shape], dtype=torch.float64)

    def restate(r):
        stages = r["structure"]["stages"]
        more = {"depth": 1, "attention": False, "pattern": False, "feed_forward": True, "phi": False}
        r["structure"]["stages"] = {names[name]: stages[name] for name in stages} | {"select": more}
        r["tokens"]["sums"] = word

    forge_weights(tmp_path / "w", rename, restate)
    verdict = te.verify(tmp_path / "w")
    assert verdict.holds is (word == "slots")
    assert word == "slots" or f"says that it sums {word}; its weights sum slots" in verdict.reasons[0]


def test_sums_that_are_neither_slots_nor_counts_are_its_authors_word(tmp_path):
    te.build(te.Table([[0, 1], [1, 0], [0, 0]], [[0, 1], [0, 1], [0, 0]])).save(tmp_path / "w")

    def share_a_slot(w):
        name = "stages.slots.feed_forward.W_2"
        w[name][0, :, 1] += w[name][0, :, 0]

    for word in ("slots", "counts"):
        forge_weights(tmp_path / "w", share_a_slot, lambda r, word=word: r["tokens"].update(sums=word))
        page = str(te.report(tmp_path / "w"))
        assert f"(a {'symmetric ' if word == 'counts' else ''}table) ({WORDS})" in page


def test_the_plan_of_a_file_is_its_authors_word(copied, tmp_path):
    w = copied("faithful")
    forge_record(w, lambda r: r["plan"].update(memory_bytes=777_001))
    forge_record(w, lambda r: r["plan"]["error"].update(grid=7e-9, ramps=0.0, equal_columns=0.0, total=7e-9))
    assert te.verify(w).holds
    (line,) = (line for line in repr(te.load(w).plan).splitlines() if "predicted" in line)
    assert line.endswith(f"({WORDS})")
    assert WORDS not in repr(te.plan(te.targets.builtin("sort", n=2), delta=1 / 4))
    te.build(P.sort(P.tokens(3))).save(tmp_path / "p")
    (line,) = (line for line in repr(te.load(tmp_path / "p").plan).splitlines() if "sup norm" in line)
    assert line.endswith(f"({WORDS})")
    assert WORDS not in repr(te.plan(P.sort(P.tokens(3))))


def test_numbers_that_a_claim_depends_on_have_all_their_digits():
    """d_1 and d_1.0000049 over [0, 1e60] are 0.07 % apart."""
    assert d_of(1.0000049) == "d_1.0000049"
    assert d_of(2) == "d_2"
    assert in_full(0.29167610128) == "0.29167610128"
    assert "0.29999996" in te.domains.Ball([0.5], 0.29999996).words()
    witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 4)
    assert "d_1.0000049 ≤" in repr(te.certify(witness, p=1.0000049, opinions=1))


@pytest.mark.parametrize("symmetric", ["no", 1, None, np.True_])
def test_symmetric_is_yes_or_no(symmetric):
    with pytest.raises(te.ThereExistsError, match="'symmetric' must be True or False"):
        te.Table([[1, 2], [1, 1]], [[1, 1], [2, 2]], symmetric=symmetric)


@pytest.mark.parametrize("p", [-1, 0, float("inf"), float("nan"), 1e308])
def test_a_distance_is_one(p):
    witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
    with pytest.raises(te.ThereExistsError, match="'p' must be"):
        witness.estimate_distance(p=p)
