"""``python -m thereexists.experiments``: experiments on a machine that has torch and transformers and little else.

    python -m thereexists.experiments run table-a --size mini --seeds 3 --data DATA --out runs --results r.jsonl
    python -m thereexists.experiments train settings.json --out runs/a
    python -m thereexists.experiments list table-a --size mini --data DATA
    python -m thereexists.experiments prepare table-a --size mini --data DATA --out PREPARED
    python -m thereexists.experiments speeds docs/data/experiments --out speeds.json

The command ``thereexists`` does the same and more.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thereexists.core.errors import ThereExistsError
from thereexists.core.plain_text import visible

if TYPE_CHECKING:
    from thereexists.experiments.grid import Run


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return options.do(options)
    except ThereExistsError as error:
        print(visible(f"Error: {error}"), file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    from thereexists.experiments.runner import How, run_all
    from thereexists.experiments.settings import Budget, count
    from thereexists.experiments.tokens import default_cache

    overrides = json.loads(options.set) if options.set else {}
    overrides |= {"budget": Budget(steps=options.steps)} if options.steps else {}
    first = {"budget": Budget(tokens=count(options.tokens))} if options.tokens else {}
    runs = _runs(options, overrides, first)
    if options.dry_run:
        return _dry_run(options, runs)
    how = How(
        options.out,
        options.cache or default_cache(),
        device=options.device,
        resume=options.resume,
        parallel=options.parallel,
        budget_seconds=options.budget_seconds,
        checkpoint_seconds=options.checkpoint_seconds,
        results=options.results,
        stop_at=None if options.stop_seconds is None else time.time() + options.stop_seconds,
    )
    outcome = run_all(runs, how)
    report = {"done": len(outcome.records), "failed": outcome.failed, "stopped": outcome.stopped,
              "not_started": outcome.not_started}  # fmt: skip
    print(json.dumps(report))
    return 1 if outcome.failed else 0


def _list(options: argparse.Namespace) -> int:
    for run in _runs(options):
        print(json.dumps({"run": run.key, "stages": [stage.record() for stage in run.stages]}))
    return 0


def _prepare(options: argparse.Namespace) -> int:
    from thereexists.experiments.runner import write_prepared
    from thereexists.experiments.tokens import default_cache

    runs = _runs(options, json.loads(options.set) if options.set else {})
    for path in write_prepared(runs, options.data, options.out, options.cache or default_cache()):
        print(json.dumps({"file": str(path), "bytes": path.stat().st_size}))
    return 0


def _runs(options: argparse.Namespace, *changes: dict[str, Any]) -> list[Run]:
    """The runs of all experiments named, those that match ``--only``."""
    from thereexists.experiments.grid import load, matching, unfold

    data = None if getattr(options, "dry_run", False) else options.data
    runs = [
        run
        for name in options.experiment
        for run in unfold(load(name), options.size, options.seeds, data, None, *changes)
    ]
    return sorted(matching(runs, options.only), key=lambda run: run.extra)


def _dry_run(options: argparse.Namespace, runs: list[Run]) -> int:
    from thereexists.experiments.forecast import device_of, forecast, known_speeds, sentence
    from thereexists.experiments.runner import done_before

    known = known_speeds(options.out)
    device = device_of(known, options.on)
    made = forecast(runs, known, device, done_before(runs, options.out))
    for one in made:
        print(json.dumps(vars(one)))
    print(sentence(made, device, known), file=sys.stderr)
    return 0


def _speeds(options: argparse.Namespace) -> int:
    from thereexists.experiments.forecast import write_speeds
    from thereexists.experiments.results import read

    command = f"python -m thereexists.experiments speeds {' '.join(map(str, options.places))} --out {options.out}"
    write_speeds(read(options.places), options.out, command)
    return 0


def _train(options: argparse.Namespace) -> int:
    from thereexists.experiments.files import read_json
    from thereexists.experiments.settings import Execution, from_record
    from thereexists.experiments.training import train

    settings, how = from_record(read_json(options.settings)), Execution(device=options.device)
    result = train(settings, options.out, how, resume=options.resume)
    if result:  # empty on all processes but the first
        print(json.dumps(result["metrics"]))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m thereexists.experiments", description=(__doc__ or "").partition("\n")[0]
    )
    commands = parser.add_subparsers(required=True)
    for name, do in (("run", _run), ("list", _list), ("prepare", _prepare)):
        command = commands.add_parser(name)
        command.set_defaults(do=do)
        command.add_argument("experiment", nargs="+", help="table-a, copying, sparsity-nli, lm, mt, or .toml files")
        command.add_argument("--size", default="mini")
        command.add_argument("--seeds", type=int, default=1)
        command.add_argument("--only", help="globs on the names of the runs, such as 'attention,hyb*'")
        command.add_argument("--data", type=Path, default=Path("data"))
        if name != "list":
            command.add_argument("--out", type=Path, default=Path("runs"))
            command.add_argument("--cache", type=Path)
            command.add_argument("--set", help='JSON of settings for every stage, such as {"compile": true}')
        if name == "run":
            command.add_argument("--device")
            command.add_argument("--resume", action="store_true")
            command.add_argument("--parallel", type=int, default=1)
            command.add_argument("--budget-seconds", type=float)
            command.add_argument("--stop-seconds", type=float, help="then checkpoints are written and everything stops")
            command.add_argument("--checkpoint-seconds", type=float, default=60.0)
            command.add_argument("--results", type=Path, help="a .jsonl file to append every record to")
            command.add_argument("--dry-run", action="store_true", help="say what it will take, and do nothing")
            command.add_argument("--on", help="with --dry-run: another device than the one here, such as h200")
            command.add_argument("--tokens", help="tokens of the first stage, such as 40M")
            command.add_argument("--steps", type=int, help="this many steps in every stage: to see that all works")
    command = commands.add_parser("speeds")
    command.set_defaults(do=_speeds)
    command.add_argument("places", nargs="+", type=Path, help="records: folders of runs, .jsonl or collected .json")
    command.add_argument("--out", type=Path, required=True)
    command = commands.add_parser("train")
    command.set_defaults(do=_train)
    command.add_argument("settings", type=Path)
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--device")
    command.add_argument("--resume", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main())
