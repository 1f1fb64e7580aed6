"""The grids: what they contain, and that a tiny setting of every one runs from beginning to end on a CPU."""

import json
import subprocess
import sys
import time

import psutil
import pytest

from tests.experiments.runs import grid, how
from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.experiments import runner
from thereexists.experiments.__main__ import main
from thereexists.experiments.grid import EXPERIMENTS, load, unfold
from thereexists.experiments.runner import How, run_all
from thereexists.experiments.training import Interrupted

RUNS = {  # every mixer, every pattern, every configuration once
    "table-a": ["attention", "average", "bproj", "sepconv", "hybrid-1"],
    "copying": ["dense-layers1", "strided-multihead-layers2", "fixed-sequential-layers2", "random-layers1"],
    "sparsity-nli": ["dense", "strided-11", "star"],
    "lm": ["dense", "strided-union", "star", "random"],
    "mt": ["dense", "fixed-union", "star"],
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "table-a" else pytest.mark.slow) for name in EXPERIMENTS]
)
def test_a_tiny_setting_of_every_experiment_runs(name, data, cache, tmp_path):
    results = tmp_path / "results.jsonl"
    runs = [run for run in grid(name, data) if run.name in RUNS[name]]
    outcome = run_all(runs, how(tmp_path, cache, results=results), say=lambda line: None)
    assert outcome.failed == {}
    assert len(outcome.records) == len(runs) == len(RUNS[name])
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert lines == outcome.records
    for record in lines:
        last = record["stages"][load(name)["stages"][-1]]
        assert last["metrics"]
        assert last["tokens_seen"] > 0
        assert str(data) not in json.dumps(record)  # no path of this machine
    folders = {p.parent for p in (tmp_path / "runs").rglob("run.json")}
    assert len(folders) == len(runs)
    assert not list((tmp_path / "runs").rglob("*.safetensors"))  # records are kept, weights are not


def test_more_runs_than_anybody_has_time_for_are_refused_before_any_is_made(data):
    """Twelve axes of ten values."""
    axes = [{"label": f"a{k}", "field": "kernel_size", "values": list(range(1, 21, 2))} for k in range(12)]
    with pytest.raises(InvalidInput, match="1,000,000,000,000 runs; an experiment has at most 100,000"):
        unfold(load("table-a") | {"axes": axes, "runs": load("table-a")["runs"][:1]}, "mini", 1, data)


def test_the_grids_are_those_of_the_papers(data):
    mini = unfold(load("table-a"), "mini", 3, data)
    assert len(mini) == 3 * 7
    assert [run.seed for run in mini] == sorted(run.seed for run in mini)  # a whole table before the next seed
    base = unfold(load("table-a"), "base", 3, data)
    mixers, hybrids = {"attention", "average", "bproj", "sepconv"}, {"hybrid-1", "hybrid-3", "hybrid-6"}
    assert [run.name for run in base if not run.extra] == 3 * ["attention", "sepconv", "bproj", "average"]
    assert {run.name for run in base} == mixers | hybrids
    assert {run.name for run in base if run.extra} == hybrids
    assert {tuple(run.stages[0].data["corpus"]) for run in base} == {
        tuple(str(data / f"wikipedia/wiki_train_{half}.txt") for half in (1, 2))
    }
    assert min(run.stages[0].budget.tokens for run in base) >= 110_000_000
    tokens = {(run.size, run.stages[0].budget.tokens) for run in mini}
    assert len(tokens) == 1  # the same tokens for every mixer
    copying = unfold(load("copying"), "mini", 1, data)
    cells = {(run.labels["run"], run.labels["layers"]) for run in copying if run.labels["run"] != "dense"}
    assert len(cells) == 8 * 4
    for name in ("lm", "mt"):
        patterns = {run.stages[0].model.get("pattern", "dense") for run in unfold(load(name), "mini", 1, data)}
        assert patterns == {"dense", "strided", "fixed", "star", "random"}
    sparse = unfold(load("sparsity-nli"), "mini", 1, data)
    assert len({run.stages[0].model.get("pattern") for run in sparse} - {None}) >= 3


@pytest.mark.parametrize("size", ["tiny", "mini", "base"])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_run_of_every_size_has_a_model(name, size, data):
    """Configurations are checked when they are made: an impossible one must not be found after an hour."""
    from thereexists.experiments.models import build_config

    for run in unfold(load(name), size, 1, data):
        config = build_config(run.stages[0], vocab_size=64)
        assert config.max_position_embeddings == run.stages[0].length


def test_done_runs_are_skipped_and_a_stopped_table_continues(data, cache, tmp_path, monkeypatch):
    runs = grid("copying", data, only="d*")
    assert len(runs) == 2
    plain = runner.run_one

    def stopped_in_the_second(run, how):
        if run.name == runs[1].name:
            raise Interrupted("Stopped at step 1; the same command with --resume continues there.")
        return plain(run, how)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "run_one", stopped_in_the_second)
        with pytest.raises(Interrupted):
            run_all(runs, how(tmp_path, cache), say=lambda line: None)
    outcome = run_all(runs, how(tmp_path, cache, resume=True), say=lambda line: None)
    assert outcome.skipped == [runs[0].key]
    assert len(outcome.records) == 2


def test_one_bad_run_does_not_end_the_table(data, cache, tmp_path):
    good, bad = grid("copying", data, only="d*")[0], grid("copying", data, only="star-layers1", length=9)[0]
    outcome = run_all([bad, good], how(tmp_path, cache), say=lambda line: None)
    assert list(outcome.failed) == [bad.key]
    assert "even length" in outcome.failed[bad.key]
    assert len(outcome.records) == 1


def test_when_the_seconds_are_over_nothing_new_begins(data, cache, tmp_path):
    runs = grid("copying", data, only="d*")
    outcome = run_all(runs, how(tmp_path, cache, budget_seconds=-1.0), say=lambda line: None)
    assert outcome.not_started == [run.key for run in runs]
    assert outcome.records == []


@pytest.mark.slow  # two more processes import everything
def test_several_processes_give_the_same_figures(data, cache, tmp_path):
    runs = grid("copying", data, only="[df]*-layers1")[:2]
    alone = run_all(runs, How(tmp_path / "a", cache, device="cpu"), say=lambda line: None)
    many = run_all(runs, How(tmp_path / "b", cache, device="cpu", parallel=2), say=lambda line: None)
    assert many.failed == {}
    figures = [{r["run"]: r["stages"]["copy"]["metrics"] for r in outcome.records} for outcome in (alone, many)]
    assert figures[0] == figures[1]


def test_bad_requests_are_one_sentence(data, tmp_path, capsys):
    for wrong, message in (
        (["run", "nonsense"], "no experiment 'nonsense'"),
        (["run", "lm", "--data", str(tmp_path)], "--data must name the folder"),
        (["run", "copying", "--size", "huge"], "no size 'huge'"),
        (["run", "copying", "--only", "zebra"], "matches 'zebra'"),
        (["run", "copying", "--seeds", "0"], "at least one seed"),
    ):
        assert main(wrong) == 2
        assert message in capsys.readouterr().err
    (tmp_path / "mine.toml").write_text("stages = [")
    with pytest.raises(InvalidInput, match="not valid TOML"):
        load(str(tmp_path / "mine.toml"))
    (tmp_path / "mine.toml").write_text("stages = []")
    with pytest.raises(InvalidInput, match="'stages' must be a list"):
        load(str(tmp_path / "mine.toml"))


FILE = """stages = ["copy"]
[sizes.tiny.copy]
steps = 3
length = 8
[[runs]]
name = "dense"
model = { mixer = "attention" }
"""
ODD = {
    "axes = 5\n" + FILE: "its 'axes' must be a list; got 5",
    "axes = ['x']\n" + FILE: "its 'axes.0' must be an object; got 'x'",
    FILE + "[axes]\nlabel = 'a'\n": "its 'axes' must be a list",
    FILE + "[[axes]]\nlabel = 'l'\nfield = 'x'\n": "it has no 'axes.0.values'",
    FILE + "[[axes]]\nlabel = 'run'\nfield = 'x'\nvalues = [1]\n": "another one than 'run'",
    FILE + "[[axes]]\nlabel = 'l'\nfield = 'x'\nvalues = [1]\nby_size = 4\n": "'axes.0.by_size' must be an object",
    FILE.replace("steps = 3", f"steps = {'9' * 500}"): "'sizes.tiny.copy.steps' must be a whole number",
    FILE.replace("steps = 3", "steps = 3.5"): "'sizes.tiny.copy.steps' must be a whole number",
    FILE.replace("steps = 3", "steps = 'x'"): "'sizes.tiny.copy.steps' must be a whole number",
    FILE.replace("steps = 3", "budget = 7"): "'sizes.tiny.copy.budget' must be left out",
    FILE.replace("steps = 3", "steps = 3\nseed = 1"): "'sizes.tiny.copy.seed' must be left out",
    FILE.replace("steps = 3", "steps = 3\nlr = 1e300"): "'sizes.tiny.copy.lr' must be a number",
    FILE.replace("steps = 3", "steps = 3\nlr = 'x'"): "'sizes.tiny.copy.lr' must be a number",
    FILE.replace("steps = 3", "steps = 3\noptions = 5"): "'sizes.tiny.copy.options' must be an object",
    FILE.replace("steps = 3", "steps = 3\noptions = { symbols = 'x' }"): "option 'symbols' must be a whole number",
    FILE.replace("steps = 3", "steps = 3\noptions = { foo = 1 }"): "no option 'foo'",
    FILE.replace('{ mixer = "attention" }', "'x'"): "'runs.0.model' must be",
    FILE + "[data.copy]\ncorpus = 5\n": "its 'data.copy.corpus' must be a text",
    FILE + "[[runs]]\nname = 'dense'\nmodel = {}\n": "Two runs of the experiment 'e' have the name 'dense'",
    FILE.replace('["copy"]', "[['copy']]"): "its 'stages.0' must be a text",
    "model = 5\n" + FILE: "its 'model' must be an object; got 5",
}


@pytest.mark.parametrize("text", ODD)
def test_an_odd_file_is_refused_where_it_is_odd(text, tmp_path):
    (tmp_path / "e.toml").write_text(text)
    with pytest.raises(InvalidInput, match=ODD[text]):
        unfold(load(str(tmp_path / "e.toml")), "tiny", 1, None)
    (tmp_path / "e.toml").write_text(FILE)
    assert len(unfold(load(str(tmp_path / "e.toml")), "tiny", 1, None)) == 1


def test_the_driver_needs_neither_the_command_line_packages_nor_the_plots(fresh):
    code = (
        "import sys; import thereexists.experiments.__main__, thereexists.experiments.runner, "
        "thereexists.experiments.training, thereexists.experiments.tasks.mt; "
        "sys.exit(any(m in sys.modules for m in ('typer', 'matplotlib', 'sacrebleu', 'numba', 'scipy', 'tensorboard')))"
    )
    assert fresh("-c", code).returncode == 0


def test_a_record_of_other_settings_is_not_taken_for_a_result(data, cache, tmp_path):
    only, quiet = "dense-layers1", {"say": lambda line: None}
    run_all(grid("copying", data, only=only, steps=1), how(tmp_path, cache), **quiet)
    again = run_all(grid("copying", data, only=only, steps=1), how(tmp_path, cache, resume=True), **quiet)
    assert again.skipped == ["copying/tiny/dense-layers1-seed0"]
    with pytest.raises(ThereExistsError, match="another 'budget'"):
        run_all(grid("copying", data, only=only, steps=2), how(tmp_path, cache, resume=True), **quiet)


@pytest.mark.slow
def test_workers_end_with_the_process_that_started_them(tmp_path):
    command = [sys.executable, "-m", "thereexists.experiments", "run", "copying", "--size", "tiny", "--parallel", "2"]
    parent = subprocess.Popen([*command, "--out", str(tmp_path / "runs"), "--device", "cpu", "--data", str(tmp_path)])
    workers: list[psutil.Process] = []
    for _ in range(240):
        children = psutil.Process(parent.pid).children(recursive=True)
        workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        if len(workers) >= 2 and all(worker.cpu_times().user > 1 for worker in workers):  # past their start
            break
        time.sleep(0.5)
    assert len(workers) >= 2
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 30
    while any(map(_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.5)
    left = [worker for worker in workers if _alive(worker)]
    for worker in left:
        worker.kill()
    assert left == []


def _alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE  # nobody may be there to reap it


@pytest.mark.slow  # a cluster takes its time to start
def test_a_ray_cluster_runs_the_same_experiment(data, cache, tmp_path):
    pytest.importorskip("ray")
    command = [
        sys.executable,
        "-m",
        "thereexists",
        "experiment",
        "copying",
        "--only",
        "dense-layers[12]",
        "--steps",
        "2",
    ]
    command += ["--data", str(data), "--device", "cpu", "--json", "--out"]
    outs = {"here": [], "ray": ["--pool", "ray", "--parallel", "2"]}
    found = {}
    for name, more in outs.items():
        run = subprocess.run([*command, str(tmp_path / name), *more], capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stderr
        found[name] = json.loads(run.stdout)
    assert found["ray"]["done"] == found["here"]["done"] == 2
    strip = [{k: v for k, v in row.items() if "second" not in k} for row in found["here"]["rows"]]
    assert [{k: v for k, v in row.items() if "second" not in k} for row in found["ray"]["rows"]] == strip
