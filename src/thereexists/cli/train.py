"""``thereexists train``, ``experiment`` and ``results``: the papers' experiments, from one run to the whole table."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import typer

from thereexists.cli import _complete
from thereexists.cli._output import AsJson, console, print_json, say
from thereexists.core.errors import InvalidInput

app = typer.Typer(help="Train one model for one task.", no_args_is_help=True)
tables_app = typer.Typer()

Out = Annotated[
    Path | None, typer.Option(help="Folder for the model, tokenizer and result.json; default: runs/TASK-MODEL.")
]
Mixer = Annotated[
    str | None,
    typer.Option(
        help="attention, average, bproj, sepconv, hybrid or sparse.",
        autocompletion=_complete.names(_complete.MIXERS),
    ),
]
Size = Annotated[
    str,
    typer.Option(help="tiny (2×128), mini (4×256) or base (12×768).", autocompletion=_complete.names(_complete.SIZES)),
]
Pattern = Annotated[
    str | None,
    typer.Option(
        help="A sparse pattern, see `thereexists pattern list`.",
        autocompletion=_complete.names(_complete.PATTERNS),
    ),
]
PatternConfig = Annotated[str, typer.Option("--config", help="union, multihead or sequential.")]
Option = Annotated[list[str] | None, typer.Option("--option", help="Of the pattern, as stride=16; repeatable.")]
Layers = Annotated[int | None, typer.Option(help="Layers, instead of the size's own.")]
Hybrid = Annotated[int, typer.Option(help="Of mixer hybrid: how many blocks from the input are SepConv.")]
Corpus = Annotated[Path, typer.Option(help="Text (.txt, .xz, .gz), articles separated by blank lines.")]
Valid = Annotated[Path | None, typer.Option(help="Held-out text; default: the last 1 % of the corpus.")]
Vocabulary = Annotated[int, typer.Option(help="Entries of the tokenizer trained on the corpus.")]
Tokens = Annotated[str | None, typer.Option(help="Budget in tokens, such as 40M. Without a budget: a default.")]
Steps = Annotated[int | None, typer.Option(help="Budget in steps.")]
Seconds = Annotated[float | None, typer.Option(help="Budget in seconds; depends on the machine.")]
Epochs = Annotated[float | None, typer.Option(help="Budget in passes over the data.")]
Length = Annotated[int, typer.Option(help="Tokens in a sequence.")]
Batch = Annotated[int, typer.Option(help="Sequences in a step, on all devices together.")]
Rate = Annotated[float, typer.Option("--lr", help="Peak learning rate.")]
Precision = Annotated[str, typer.Option(help="bf16 or fp32; a CPU computes in fp32.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random; recorded.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue a run that was stopped.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda; default: what there is.")]
Compile = Annotated[bool, typer.Option("--compile", help="Compile the model first (a minute or so).")]
Checkpoint = Annotated[float, typer.Option(help="Seconds between checkpoints; 0: only when stopped.")]


@app.command()
def mlm(
    corpus: Corpus,
    out: Out = None,
    mixer: Mixer = None,
    size: Size = "mini",
    pattern: Pattern = None,
    config: PatternConfig = "union",
    option: Option = None,
    layers: Layers = None,
    hybrid_blocks: Hybrid = 0,
    valid: Valid = None,
    vocabulary: Vocabulary = 16_384,
    tokens: Tokens = None,
    steps: Steps = None,
    seconds: Seconds = None,
    epochs: Epochs = None,
    length: Length = 128,
    batch: Batch = 128,
    lr: Rate = 1e-3,
    precision: Precision = "bf16",
    seed: Seed = 0,
    resume: Resume = False,
    device: Device = None,
    compile: Compile = False,
    checkpoint_seconds: Checkpoint = 60.0,
    json: AsJson = False,
) -> None:
    """Masked language modelling, as BERT; accuracy on held-out text.

    thereexists train mlm --mixer sepconv --size tiny --corpus wiki.txt.xz --tokens 2M --out runs/a
    """
    model = _model(size, mixer, pattern, config, option, layers, hybrid_blocks) | _NO_DROPOUT
    _train("mlm", out, locals() | {"model": model}, {"corpus": corpus, "valid": valid}, {"vocabulary": vocabulary})


@app.command()
def nli(
    data: Annotated[Path, typer.Option(help="Folder with train and dev files: MNLI (.jsonl) or SST-2 (.tsv).")],
    out: Out = None,
    start: Annotated[Path | None, typer.Option("--from", help="A run of `train mlm` to begin with.")] = None,
    mixer: Mixer = None,
    size: Size = "mini",
    pattern: Pattern = None,
    config: PatternConfig = "union",
    option: Option = None,
    tokens: Tokens = None,
    steps: Steps = None,
    seconds: Seconds = None,
    epochs: Epochs = None,
    length: Length = 128,
    batch: Batch = 128,
    lr: Rate = 3e-4,
    precision: Precision = "bf16",
    seed: Seed = 0,
    resume: Resume = False,
    device: Device = None,
    compile: Compile = False,
    checkpoint_seconds: Checkpoint = 60.0,
    json: AsJson = False,
) -> None:
    """Sentence(-pair) classification from a pre-trained run; accuracy on the dev set.

    thereexists train nli --from runs/a --data mnli/ --epochs 3 --out runs/a-nli
    """
    if start is None:
        model = _model(size, mixer, pattern, config, option, None, 0)
    else:  # the model is the run's; what is named must agree with it
        named = {"mixer": mixer or ("sparse" if pattern else None), "pattern": pattern}
        model = {name: value for name, value in named.items() if value is not None}
    out = out or (Path(f"{start}-nli") if start is not None else None)
    _train("nli", out, locals() | {"model": model}, {"data": data}, {})


@app.command()
def copy(
    out: Out = None,
    pattern: Pattern = None,
    config: PatternConfig = "union",
    option: Option = None,
    layers: Annotated[int, typer.Option(min=1, help="Layers.")] = 4,
    mixer: Mixer = None,
    size: Size = "mini",
    symbols: Annotated[int, typer.Option(help="Size of the alphabet.")] = 127,
    tokens: Tokens = None,
    steps: Steps = None,
    seconds: Seconds = None,
    length: Length = 128,
    batch: Batch = 128,
    lr: Rate = 1e-3,
    precision: Precision = "bf16",
    seed: Seed = 0,
    resume: Resume = False,
    device: Device = None,
    compile: Compile = False,
    checkpoint_seconds: Checkpoint = 60.0,
    json: AsJson = False,
) -> None:
    """Synthetic copying through a pattern; accuracy, and the most that the pattern allows at this depth.

    thereexists train copy --pattern strided --config union --layers 4 --steps 500 --length 32
    """
    model = _model(size, mixer, pattern, config, option, layers, 0) | _NO_DROPOUT
    _train("copy", out, locals() | {"model": model, "epochs": None}, {}, {"symbols": symbols})


@app.command()
def lm(
    corpus: Corpus,
    out: Out = None,
    pattern: Pattern = None,
    config: PatternConfig = "union",
    option: Option = None,
    mixer: Mixer = None,
    size: Size = "mini",
    layers: Layers = None,
    hybrid_blocks: Hybrid = 0,
    valid: Valid = None,
    vocabulary: Vocabulary = 16_384,
    tokens: Tokens = None,
    steps: Steps = None,
    seconds: Seconds = None,
    epochs: Epochs = None,
    length: Length = 256,
    batch: Batch = 64,
    lr: Rate = 1e-3,
    precision: Precision = "bf16",
    seed: Seed = 0,
    resume: Resume = False,
    device: Device = None,
    compile: Compile = False,
    checkpoint_seconds: Checkpoint = 60.0,
    json: AsJson = False,
) -> None:
    """Causal language modelling; perplexity on held-out text.

    thereexists train lm --pattern star --size tiny --corpus wiki.txt.xz --tokens 2M --out runs/lm-star
    """
    model = _model(size, mixer, pattern, config, option, layers, hybrid_blocks) | _NO_DROPOUT
    _train("lm", out, locals() | {"model": model}, {"corpus": corpus, "valid": valid}, {"vocabulary": vocabulary})


@app.command()
def mt(
    data: Annotated[list[Path], typer.Option(help="Folders with train.en, train.cs and test files; repeatable.")],
    out: Out = None,
    pattern: Pattern = None,
    config: PatternConfig = "union",
    option: Option = None,
    mixer: Mixer = None,
    size: Size = "mini",
    layers: Layers = None,
    source: Annotated[str, typer.Option(help="Ending of the source files.")] = "en",
    target: Annotated[str, typer.Option(help="Ending of the target files.")] = "cs",
    vocabulary: Annotated[int, typer.Option(help="Entries of the tokenizer of both languages.")] = 8192,
    tokens: Tokens = None,
    steps: Steps = None,
    seconds: Seconds = None,
    epochs: Epochs = None,
    length: Length = 64,
    batch: Batch = 256,
    lr: Rate = 1e-3,
    precision: Precision = "bf16",
    seed: Seed = 0,
    resume: Resume = False,
    device: Device = None,
    compile: Compile = False,
    checkpoint_seconds: Checkpoint = 60.0,
    json: AsJson = False,
) -> None:
    """Translation by an encoder–decoder; BLEU (sacrebleu) on every test set in the folders.

    thereexists train mt --pattern fixed --data multi30k_en_cs/ --epochs 10 --out runs/mt-fixed
    """
    model = _model(size, mixer, pattern, config, option, layers, 0) | {"norm_first": True}
    options = {"vocabulary": vocabulary, "source": source, "target": target}
    _train("mt", out, locals() | {"model": model}, {"data": [str(folder) for folder in data]}, options)


@tables_app.command()
def experiment(
    name: Annotated[
        str,
        typer.Argument(
            help="table-a, copying, sparsity-nli, lm, mt, or a .toml file.",
            autocompletion=_complete.names(_complete.EXPERIMENTS),
        ),
    ],
    size: Annotated[str, typer.Option(help="tiny, mini or base; table-a also small.")] = "tiny",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of every cell, with seeds 0, 1, …")] = 1,
    data: Annotated[
        Path, typer.Option(help="Folder with wikipedia/, mnli/ and so on.", envvar="THEREEXISTS_DATA")
    ] = Path("data"),
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("runs"),
    only: Annotated[str | None, typer.Option(help="Globs on the names of the runs, such as 'dense,star*'.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Done runs are kept, a stopped one goes on.")] = False,
    parallel: Annotated[int, typer.Option(min=1, help="Runs at once on one device.")] = 1,
    budget_seconds: Annotated[float | None, typer.Option(help="Begin no new run after that.")] = None,
    tokens: Annotated[str | None, typer.Option(help="Tokens of the first stage, such as 40M.")] = None,
    steps: Annotated[int | None, typer.Option(help="Steps in every stage, to see that all works.")] = None,
    device: Device = None,
    checkpoint_seconds: Checkpoint = 60.0,
    pool: Annotated[str, typer.Option(help="local, or ray: runs spread over the GPUs of a cluster.")] = "local",
    address: Annotated[str | None, typer.Option(help="Of a running Ray cluster, or auto; else a local one.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say the device hours it will take; do nothing.")] = False,
    on: Annotated[str | None, typer.Option(help="With --dry-run: another device than here, such as h200.")] = None,
    json: AsJson = False,
) -> None:
    """Run a whole experiment of the papers: every model of the table, every seed, one record each.

    thereexists experiment table-a --size mini --seeds 3 --data data/ --out runs/ --parallel 4

    thereexists experiment table-a --size base --seeds 3 --dry-run --on h200

    thereexists experiment table-a --pool ray --address auto --out /shared/runs
    """
    from thereexists.experiments.grid import load, unfold
    from thereexists.experiments.results import rows
    from thereexists.experiments.runner import How, run_all
    from thereexists.experiments.settings import Budget, count
    from thereexists.experiments.tokens import default_cache

    if steps is not None and tokens is not None:
        raise InvalidInput("Give --steps or --tokens, not both; each is a budget of its own.")
    overrides = {"budget": Budget(steps=steps)} if steps is not None else {}
    first = {"budget": Budget(tokens=count(tokens))} if tokens is not None else {}
    runs = unfold(load(name), size, seeds, None if dry_run else data, only, overrides, first)
    if on is not None and not dry_run:
        raise InvalidInput("--on is about a device that is not here: it belongs to --dry-run.")
    if pool not in ("local", "ray"):
        raise InvalidInput(f"--pool must be local or ray for an experiment; got {pool!r} instead.")
    if address is not None and pool != "ray":
        raise InvalidInput("An address belongs to a cluster: say --pool ray, or leave --address out.")
    if dry_run:
        from thereexists.cli._forecast import show_forecast

        show_forecast(runs, out, on, json)
        return
    how = How(
        out,
        default_cache(),
        device=device,
        resume=resume,
        parallel=parallel,
        budget_seconds=budget_seconds,
        checkpoint_seconds=checkpoint_seconds,
        pool=pool,
        address=address,
    )
    outcome = run_all(runs, how)
    report = {
        "experiment": name,
        "size": size,
        "out": str(out),
        "done": len(outcome.records),
        "skipped": outcome.skipped,
        "failed": outcome.failed,
        "not_started": outcome.not_started,
        "rows": [row.record() for row in rows(outcome.records)],
    }
    if json:
        print_json(report)
    else:
        _show_tables(rows(outcome.records))
        for key, reason in outcome.failed.items():
            say(f"failed: {key}: {reason}", error=True)
    if outcome.failed:
        raise typer.Exit(1)


@tables_app.command()
def results(
    places: Annotated[list[Path], typer.Argument(help="Folders of runs, .jsonl files, or collected .json files.")],
    plots: Annotated[
        Path | None, typer.Option(help="Folder for the plots; default: RUNS/plots, with matplotlib.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Data folder, to score translations not scored yet.")] = None,
    collect: Annotated[Path | None, typer.Option(help="Folder for one small .json per experiment and size.")] = None,
    report: Annotated[Path | None, typer.Option(help="Markdown page to write, as docs/experiments.md.")] = None,
    json: AsJson = False,
) -> None:
    """Tables and plots of finished runs, the papers' figures beside ours, budgets stated.

    thereexists results runs/
    thereexists results docs/data/experiments --report docs/experiments.md --plots docs/img
    """
    from thereexists.experiments import results as found
    from thereexists.experiments.report import budget, write_report

    records = found.read(places)
    made = found.rows(records)  # all records are read and accepted before anything is written
    if collect is not None:
        command = f"thereexists results {' '.join(place.name for place in places)} --collect {collect}"
        found.collect(records, collect, command, found.find_references(data, records))
        records = found.read([collect])
    elif data is not None:
        references = found.find_references(data, records)
        records = [found.scored(record, references) for record in records]
    if collect is not None or data is not None:
        made = found.rows(records)
    drawn = []
    if plots is None and not json and report is None:
        plots = _folder_for_plots(places[0])
    if plots is not None:
        from thereexists.experiments.plots import draw

        drawn = draw(made, records, plots)
    if report is not None:
        sources = " ".join(map(str, [collect] if collect else places))
        plotted = f" --plots {plots}" if plots else ""
        write_report(records, report, f"thereexists results {sources} --report {report}{plotted}", drawn)
    if json:
        print_json({"rows": [row.record() for row in made], "plots": [str(path) for path in drawn]})
        return
    _show_tables(made)
    for key in found.by_table(made):
        for line in [*budget([r for r in records if found.table_of(r) == key]).split("\n"), ""]:
            say(line)
    for path in drawn:
        say(f"plot: {path}")


def _folder_for_plots(place: Path) -> Path | None:
    """RUNS/plots, for a folder of runs. Nobody named it, so it is taken only if it is not a link to somewhere else."""
    from importlib.util import find_spec

    from thereexists.core.regular_files import files_below

    if not place.is_dir() or not find_spec("matplotlib") or not any(f.name == "run.json" for f in files_below(place)):
        return None
    if (place / "plots").is_symlink():
        raise InvalidInput(f"{place / 'plots'} is a link; name the folder for the plots with --plots.")
    return place / "plots"


_DEFAULT_BUDGET: dict[str, dict[str, Any]] = {
    "mlm": {"epochs": 1.0},
    "nli": {"epochs": 3.0},
    "copy": {"steps": 2500},
    "lm": {"epochs": 1.0},
    "mt": {"epochs": 10.0},
}
_NO_DROPOUT = {"norm_first": True, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def _model(size, mixer, pattern, config, options, layers, hybrid_blocks) -> dict[str, Any]:
    """The fields of a mixer configuration; naming a pattern means the mixer ``sparse``."""
    if pattern is not None and mixer not in (None, "sparse"):
        raise InvalidInput(f"A pattern belongs to the mixer 'sparse'; got --mixer {mixer} and --pattern {pattern}.")
    if pattern is None and mixer == "sparse":
        raise InvalidInput("The mixer 'sparse' needs a --pattern, for example strided.")
    model: dict[str, Any] = {"size": size, "mixer": "sparse" if pattern else mixer or "attention"}
    if pattern is not None:
        model |= {"pattern": pattern, "pattern_config": config, "pattern_options": dict(map(_pair, options or []))}
    if layers is not None:
        model["num_hidden_layers"] = layers
    if hybrid_blocks or mixer == "hybrid":
        model["hybrid_blocks"] = hybrid_blocks
    return model


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(f"--option must look like stride=16; got {text!r}.")
    try:
        return name, json_module.loads(value)
    except ValueError:
        raise InvalidInput(f"--option {name} must have a number, true, false or a list; got {value!r}.") from None


def _train(task: str, out: Path | None, given: dict[str, Any], data: dict[str, Any], options: dict[str, Any]) -> None:
    from thereexists.experiments.settings import Budget, Settings, count
    from thereexists.experiments.training import train

    tokens, model = given["tokens"], given["model"]
    asked = {name: given[name] for name in ("steps", "seconds", "epochs")}
    asked["tokens"] = None if tokens is None else count(tokens)
    budget = Budget(**(asked if any(value is not None for value in asked.values()) else _DEFAULT_BUDGET[task]))
    if out is None:
        parts = [
            task,
            model.get("pattern") or model["mixer"],
            model.get("pattern_config"),
            model.get("num_hidden_layers"),
        ]
        out = Path("runs") / "-".join(str(part) for part in parts if part is not None)
    settings = Settings(
        task,
        budget,
        model,
        {name: value if isinstance(value, list) else str(value) for name, value in data.items() if value is not None},
        options,
        start=None if given.get("start") is None else str(given["start"]),
        **{name: given[name] for name in ("length", "batch", "lr", "precision", "seed", "compile")},
    )
    result = train(
        settings,
        out,
        resume=given["resume"],
        device=given["device"],
        checkpoint_seconds=given["checkpoint_seconds"],
        quiet=given["json"],
    )
    if not result:  # one process of several: the first one speaks
        return
    result: dict[str, Any] = result | {"out": str(out)}
    if given["json"]:
        print_json({name: value for name, value in result.items() if name != "hypotheses"})
        return
    from rich.table import Table

    table = Table(show_header=False, box=None)
    for name, value in _flat(result["metrics"]):
        table.add_row(name, f"{value:.4g}" if isinstance(value, float) else str(value))
    for name in ("parameters", "tokens_seen", "tokens_per_second", "seconds", "device", "seed", "out"):
        table.add_row(
            name.replace("_", " "), f"{result[name]:,}" if isinstance(result[name], int) else str(result[name])
        )
    console().print(table)


def _flat(metrics: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for name, value in metrics.items():
        label = f"{before} {name}".strip().replace("_", " ")
        out += _flat(value, label) if isinstance(value, dict) else [(label, value)]
    return [(name, value) for name, value in out if value is not None]


def _show_tables(made: list[Any]) -> None:
    from rich.table import Table

    from thereexists.experiments.tables import tables

    screen = console()
    for one in tables(made):
        table = Table(title=one.title, title_justify="left")
        for column in one.header:
            table.add_column(column, overflow="fold")
        for cells in one.body:
            table.add_row(*cells)
        screen.print(table)
        for remark in one.remarks:
            screen.print(remark.replace("**", ""))
        screen.print()
