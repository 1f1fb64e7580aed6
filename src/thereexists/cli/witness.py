"""The main commands: targets, plan, build, run, show, trace."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thereexists.cli import _complete
from thereexists.cli._output import AsJson, console, print_json, progress_bar
from thereexists.cli._workers import Address, DryRun, EngineName, WorkerCount, print_estimate, the_workers
from thereexists.cli.kinds import automata, programs
from thereexists.cli.kinds.functions import certificate_summary, print_certificate, print_witness
from thereexists.core.errors import InvalidInput, NotProved, ThereExistsError

if TYPE_CHECKING:
    from thereexists.functions.target import Target

app = typer.Typer()
SHARDED = (None, "faithful")
_ONLY_PROGRAMS = "--dtype is for programs (file.py:name, without --n); a function is built in float64."

TargetName = Annotated[
    str,
    typer.Argument(
        help="A built-in target (see `thereexists targets`), file.py:function, or regex:PATTERN.",
        autocompletion=_complete.names(_complete.TARGETS),
    ),
]
Tokens = Annotated[int | None, typer.Option("--n", help="Tokens of a sequence (a table says it itself).")]
Features = Annotated[int, typer.Option("--d", help="Features of a token.")]
Delta = Annotated[str | None, typer.Option(help="Grid width, such as 1/8.")]
Epsilon = Annotated[float | None, typer.Option(help="Wanted error in d_p; chooses the grid.")]
P = Annotated[float, typer.Option("--p", help="The p of d_p.")]
Lipschitz = Annotated[
    float | None, typer.Option(help="Lipschitz constant of your function, from the maximum norm to the maximum norm.")
]
Equivariant = Annotated[
    bool | None,
    typer.Option("--equivariant/--no-equivariant", help="Theorem 1 (claim checked first) or Theorem 2."),
]
Domain = Annotated[tuple[float, float], typer.Option(help="Low and high end of every entry.")]
PatternName = Annotated[
    str | None,
    typer.Option(
        "--pattern",
        help="Sparse attention: a pattern's name (see `pattern list`) or an .npz mask.",
        autocompletion=_complete.names(_complete.PATTERNS),
    ),
]
PatternSizes = Annotated[list[str] | None, typer.Option("--set", help="A size of the pattern, as name=value.")]
Construction = Annotated[
    str | None,
    typer.Option(
        help="faithful (unless said; the proof's own, deep and narrow) or compact (four blocks, any runtime).",
        autocompletion=_complete.names(_complete.CONSTRUCTIONS),
    ),
]
MaxWidth = Annotated[
    int | None, typer.Option(help="Compact: spread feed-forward layers over blocks of at most so many units.")
]
ProgramType = Annotated[str | None, typer.Option("--dtype", help="Of a program or an automaton: its dtype.")]
Alphabet = Annotated[str | None, typer.Option(help="Of an automaton: its symbols, as ab01 or as words between spaces.")]
Where = Annotated[Path, typer.Argument(help="The folder of a witness.")]


@app.command()
def targets(as_json: AsJson = False) -> None:
    """List the built-in functions, one line each.

    Example: thereexists targets
    """
    from thereexists.functions.targets import BUILTINS, builtin

    rows = [builtin(name, n=3) for name in BUILTINS]
    if as_json:
        fields = ("name", "description", "equivariant", "lipschitz")
        print_json({"targets": [{field: getattr(row, field) for field in fields} for row in rows]})
        return
    from rich.table import Table

    table = Table("target", "what it computes", "theorem", "Lipschitz (n=3, d=1)", box=None)
    for row in rows:
        table.add_row(row.name, row.description, "1" if row.equivariant else "2", f"{row.lipschitz:.3g}")
    console().print(table)


@app.command()
def plan(
    target: TargetName,
    n: Tokens = None,
    d: Features = 1,
    delta: Delta = None,
    epsilon: Epsilon = None,
    p: P = 1.0,
    lipschitz: Lipschitz = None,
    equivariant: Equivariant = None,
    domain: Domain = (0.0, 1.0),
    pattern: PatternName = None,
    sizes: PatternSizes = None,
    construction: Construction = None,
    max_width: MaxWidth = None,
    dtype: ProgramType = None,
    alphabet: Alphabet = None,
    as_json: AsJson = False,
) -> None:
    """Say what a build would give, before building: layers, id bits, memory, predicted error.

    Examples: thereexists plan sort --n 3 --delta 1/8

    thereexists plan prog.py:smooth

    thereexists plan table.csv

    thereexists plan "regex:(ab|ba)*" --alphabet ab --n 1024
    """
    if automata.is_automaton(target, alphabet):
        automata.refuse_others(delta=delta, epsilon=epsilon, lipschitz=lipschitz, pattern=pattern)
        automata.plan(automata.AutomatonRequest(target, alphabet, n, dtype), as_json)
        return
    if programs.is_program(target, n):
        _only_for_targets(delta, lipschitz, equivariant, pattern, sizes, max_width)
        programs.plan(target, epsilon, dtype, as_json)
        return
    if dtype is not None:
        raise InvalidInput(_ONLY_PROGRAMS)
    if target.endswith(".csv"):
        from thereexists.cli.kinds.tokens import plan_table

        given = [pattern, delta, epsilon, lipschitz, equivariant, n, max_width]
        plan_table(Path(target), construction, any(x is not None for x in given), as_json)
        return
    from thereexists.constructions.build import the_method

    resolved = _resolve(target, n, d, domain, lipschitz, equivariant)
    options = _method_options(construction, max_width, delta, epsilon, _pattern(pattern, sizes, resolved.n)) | {"p": p}
    summary = {"target": resolved.name, **the_method(resolved, None, options).plan(resolved).describe()}
    print_json(summary) if as_json else print_witness(summary)


@app.command()
def build(
    target: TargetName,
    n: Tokens = None,
    d: Features = 1,
    delta: Delta = None,
    epsilon: Epsilon = None,
    p: P = 1.0,
    lipschitz: Lipschitz = None,
    equivariant: Equivariant = None,
    domain: Domain = (0.0, 1.0),
    pattern: PatternName = None,
    sizes: PatternSizes = None,
    rho: Annotated[str, typer.Option(help="Probability map of the attention: softmax or sparsemax.")] = "softmax",
    modified: Annotated[bool, typer.Option(help="Stop at the modified class: hardmax, three-piece φ.")] = False,
    construction: Construction = None,
    max_width: MaxWidth = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write; TARGET-witness unless said.")] = None,
    samples: Annotated[int, typer.Option(min=16, help="Points of the distance estimate.")] = 2048,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the distance estimate.")] = 0,
    certify: Annotated[bool, typer.Option("--certify/--no-certify", help="Prove a bound on the error too.")] = True,
    dtype: ProgramType = None,
    alphabet: Alphabet = None,
    shard_size: Annotated[
        str | None, typer.Option(help="Build out of core, in files of this size, such as 64MB: larger than memory.")
    ] = None,
    workers: WorkerCount = None,
    engine: EngineName = "loky",
    address: Address = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Construct a Transformer for a function, without training, and save it.

    Examples: thereexists build sort --n 3 --delta 1/8 --out w/

    thereexists build my.py:f --n 2 --d 2 --epsilon 0.3 --lipschitz 1

    thereexists build sort --n 4 --delta 1/4 --pattern star

    thereexists build sort --n 4 --delta 1/8 --construction compact

    thereexists build table.csv --construction compact --out w/

    thereexists build prog.py:smooth --epsilon 1e-3 --out w/

    thereexists build my.py:f --n 20 --delta 1/2 --shard-size 64MB --workers 2

    thereexists build "regex:(ab|ba)*" --alphabet ab --n 1024 --out w/
    """
    if automata.is_automaton(target, alphabet):
        automata.refuse_others(delta=delta, epsilon=epsilon, lipschitz=lipschitz, pattern=pattern)
        automata.build(automata.AutomatonRequest(target, alphabet, n, dtype, out), as_json)
        return
    if dry_run and shard_size is None:
        raise InvalidInput("--dry-run is for --shard-size; `thereexists plan` says what a build in memory takes.")
    if programs.is_program(target, n):
        _only_for_targets(delta, lipschitz, equivariant, pattern, sizes, max_width)
        if not certify:
            raise InvalidInput(
                "A program is always certified: that is what says what the network does. Leave --no-certify out."
            )
        programs.build(programs.ProgramRequest(target, epsilon, dtype, out), as_json)
        return
    if dtype is not None:
        raise InvalidInput(_ONLY_PROGRAMS)
    if target.endswith(".csv"):
        from thereexists.cli.kinds.tokens import build_table

        given = [pattern, delta, epsilon, lipschitz, equivariant, n, max_width]
        build_table(Path(target), construction, any(x is not None for x in given), out, as_json)
        return
    resolved = _resolve(target, n, d, domain, lipschitz, equivariant)
    from thereexists.constructions.build import the_method
    from thereexists.core import storage

    out = out or Path(f"{resolved.name}-witness")
    storage.check_writable(out)
    chosen = _pattern(pattern, sizes, resolved.n)
    crew = functools.partial(the_workers, count=workers, engine=engine, address=address, quiet=as_json)
    with crew("", shown=False):
        pass  # a mistake in the options is told before any work
    if shard_size is not None:
        from thereexists.constructions.faithful.sharded import build_sharded, predict_sharded

        if delta is None or modified or epsilon is not None or max_width is not None or construction not in SHARDED:
            raise InvalidInput("--shard-size is for the faithful construction on a grid of your choice (--delta).")
        size = _bytes(shard_size)
        if dry_run:
            with crew("build", shown=False) as hands:
                print_estimate(predict_sharded(resolved, delta, chosen, hands), as_json)
            return
        with crew("build") as hands:
            witness = build_sharded(resolved, out, delta, p, chosen, rho, size, hands)
        witness = dataclasses.replace(witness, distance=witness.estimate_distance(p, samples, seed))
    else:
        with progress_bar("tabulate", quiet=as_json) as progress:
            options = _method_options(construction, max_width, delta, epsilon, chosen) | {"p": p}
            options |= {"rho": rho} if rho != "softmax" else {}
            options |= {"modified": True} if modified else {}
            method = the_method(resolved, None, options)
            witness = telling(method, progress).build(resolved)
        witness = dataclasses.replace(witness, distance=witness.estimate_distance(p, samples, seed))
        witness.save(out)
    certificate, reason = _certify(witness, p, seed, out, crew) if certify else (None, InvalidInput("not asked for"))
    if as_json:
        made = None if certificate is None else certificate_summary(certificate)
        why = None if reason is None else str(reason)
        print_json({"witness": str(out), **witness.describe(), "certificate": made, "not_certified": why})
    else:
        print_witness({"witness": str(out), **witness.describe()})
        if certificate is not None:
            print_certificate(certificate)
        elif certify:
            console().print(f"Not certified: {reason}", markup=False)
    if isinstance(reason, NotProved):
        raise typer.Exit(1)


@app.command()
def run(
    witness: Where,
    input: Annotated[str, typer.Option("--input", help='"0.3 0.1 0.7", or a .npy or .csv file.')],
    out: Annotated[Path | None, typer.Option(help="Also write the output to this .npy file.")] = None,
    dtype: Annotated[
        str | None, typer.Option(help="A lower dtype than float64; one that is not safe is refused.")
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="auto, reference, fused or skip: how fast, not what.",
            autocompletion=_complete.names(_complete.ENGINES),
        ),
    ] = "auto",
    as_json: AsJson = False,
) -> None:
    """Run a witness on one sequence or on a batch.

    Example: thereexists run w/ --input "0.3 0.1 0.7"
    """
    from thereexists.cli.kinds import RunRequest
    from thereexists.witness.load import load

    loaded = load(witness, dtype)
    loaded.kind.find("commands").run(loaded, RunRequest(input, out, engine), as_json)


@app.command()
def show(witness: Where, as_json: AsJson = False) -> None:
    """Show what a witness is made of: stages, layers, parameters, weight ranges, how it was built.

    Example: thereexists show w/
    """
    from thereexists.core.storage import read_record
    from thereexists.witness.load import load

    loaded = load(witness)
    loaded.kind.find("commands").show(witness, loaded, read_record(witness), as_json)


@app.command()
def trace(
    witness: Where,
    input: Annotated[str, typer.Option("--input", help='One sequence, such as "0.3 0.1 0.7".')],
    as_json: AsJson = False,
) -> None:
    """Watch one sequence go through the proof: quantised, every selective shift, ids, values.

    Example: thereexists trace w/ --input "0.3 0.1 0.7"
    """
    from thereexists.witness.load import load

    loaded = load(witness)
    loaded.kind.find("commands").trace(loaded, input, as_json)


def _method_options(
    construction: str | None, max_width: int | None, delta: str | None, epsilon: float | None, pattern: Any
) -> dict[str, Any]:
    """What was said, and nothing else: the method refuses what it does not have."""
    said = {
        "construction": construction,
        "max_width": max_width,
        "delta": delta,
        "epsilon": epsilon,
        "pattern": pattern,
    }
    return {name: value for name, value in said.items() if value is not None}


def telling(method: Any, progress: Any) -> Any:
    """The method, telling its progress if it does."""
    tells = any(field.name == "progress" for field in dataclasses.fields(method))
    return dataclasses.replace(method, progress=progress) if tells else method


def _only_for_targets(*given: Any) -> None:
    if any(x is not None for x in given):
        raise InvalidInput(
            "A program is built with --epsilon and --dtype; the other options are for functions, with --n."
        )


def _pattern(name: str | None, sizes: list[str] | None, n: int) -> Any:
    if name is None:
        if sizes:
            raise InvalidInput("--set gives the sizes of a pattern; say which one with --pattern.")
        return None
    from thereexists.cli.pattern import assignment, load_pattern

    given = dict(assignment(text) for text in sizes or [])
    return load_pattern(name, None if Path(name).suffix == ".npz" else n, given)


def _bytes(text: str) -> int:
    """``64MB`` or ``1GB`` as a number of bytes."""
    units = {"KB": 10**3, "MB": 10**6, "GB": 10**9}
    number, unit = text[:-2], text[-2:].upper()
    if unit not in units or not number.strip().isdigit():
        raise InvalidInput(f"--shard-size must look like 64MB or 1GB; got {text!r} instead.")
    return int(number) * units[unit]


def _certify(witness: Any, p: float, seed: int, out: Path, crew: Any) -> tuple[Any, ThereExistsError | None]:
    """The certificate, saved beside the weights, or why there is none: the witness itself is whole either way."""
    if witness.target.variation(1.0) is None and witness.target.interval is None:
        return None, InvalidInput("that takes a Lipschitz constant (--lipschitz).")
    from thereexists.witness.verbs import certify

    try:
        with crew("certify") as workers:
            certificate = certify(witness, p, seed=seed, folder=out, workers=workers)
    except ThereExistsError as error:
        return None, error
    certificate.save(out)
    return certificate, None


def _resolve(
    name: str, n: int | None, d: int, domain: tuple[float, float], lipschitz: float | None, equivariant: bool | None
) -> Target:
    from thereexists.functions.targets import resolve

    if n is None:
        raise InvalidInput("How many tokens does a sequence have? Say it with --n.")
    target = resolve(name, n, d, domain)
    claims: dict[str, Any] = {"lipschitz": lipschitz, "equivariant": equivariant}
    return dataclasses.replace(target, **{key: value for key, value in claims.items() if value is not None})
