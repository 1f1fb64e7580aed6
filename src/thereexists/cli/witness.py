"""The main commands: targets, plan, build, run, show, trace."""

from __future__ import annotations

import dataclasses
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thereexists.cli import _complete
from thereexists.cli._applies import refuse, take_only
from thereexists.cli._construction import (
    BuildMethodOptions,
    FunctionOptions,
    MethodOptions,
    WithDomain,
    is_program,
    says_what_a_table_says,
)
from thereexists.cli._files import Force, files_to_write
from thereexists.cli._output import AsJson, console, print_facts, print_json, progress_bar
from thereexists.cli._settings import command
from thereexists.cli._workers import WorkerOptions, print_estimate
from thereexists.cli.certificate import OwnDomain, on_domain
from thereexists.cli.kinds import CREW, automata, programs
from thereexists.cli.kinds.functions import described, print_witness, with_normalised
from thereexists.core.errors import InvalidInput, NotProved, ThereExistsError
from thereexists.core.rounded_figures import rounded_up

if TYPE_CHECKING:
    from thereexists.functions.target import Target

app = typer.Typer()
SHARDED = (None, "faithful")
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
        table.add_row(
            row.name,
            row.description,
            "1" if row.equivariant else "2",
            "" if row.lipschitz is None else rounded_up(row.lipschitz, 4),
        )
    console().print(table)


def _automaton(function: FunctionOptions, method: MethodOptions, out: Path | None = None) -> automata.AutomatonRequest:
    others = {name: getattr(method, name) for name in ("delta", "epsilon", "pattern", "max_width")}
    others["compact_support"] = function.compact_support or None
    automata.refuse_others(**others, lipschitz=function.lipschitz, equivariant=function.equivariant)
    take_only(
        ("target", "n", "alphabet", "dtype", "construction", "out", "certify", "to"),
        "an automaton takes --n, --alphabet, --dtype, --construction and --out",
    )
    return automata.AutomatonRequest(
        function.target, function.alphabet, function.n, method.dtype, method.construction, out
    )


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    function: FunctionOptions
    method: MethodOptions
    to: Annotated[str | None, typer.Option("--to", help="llama: the sizes of the stock checkpoint instead.")] = None
    as_json: AsJson = False


@command(app, kind_of_command=WithDomain)
def plan(asked: PlanOptions) -> None:
    """Say what a build would give, before building: layers, id bits, memory, predicted error.

    Examples: thereexists plan sort --n 3 --delta 1/8

    thereexists plan prog.py:smooth

    thereexists plan table.csv

    thereexists plan "regex:(ab|ba)*" --alphabet ab --n 1024

    thereexists plan addition:10 --to llama
    """
    function, method = asked.function, asked.method
    if asked.to is not None:
        _plan_stock(asked)
        return
    if automata.is_automaton(function.target, function.alphabet, function.n):
        automata.plan(_automaton(function, method), asked.as_json)
        return
    if is_program(function, method):
        programs.plan(function.target, method.epsilon, method.dtype, asked.as_json)
        return
    if function.target.endswith(".csv"):
        from thereexists.cli.kinds.tokens import plan_table

        given = says_what_a_table_says(function, method)
        plan_table(Path(function.target), method.construction, given, asked.as_json)
        return
    target = function.resolve()
    planned: Any = method.method(target).plan(target)
    summary = with_normalised({"target": target.name, **planned.describe()}, target, planned.grid)
    advice = _advice(planned, target)
    if asked.as_json:
        print_json({**summary, "advice": advice})
        return
    print_witness(summary)
    for sentence in advice:
        console().print(sentence)


def _plan_stock(asked: PlanOptions) -> None:
    """``--to llama``: of an automaton, a table or data set in a file, a name such as addition:10, or a witness."""
    from thereexists.exports import plan_llama
    from thereexists.exports.asked import named

    if asked.to != "llama":
        raise InvalidInput(f"The sizes of an export are planned with --to llama; got {asked.to!r} instead.")
    what, function = asked.function.target, asked.function
    claim = named(what)
    if claim is None and Path(what).suffix in (".csv", ".jsonl"):
        from thereexists.cli.kinds.tokens import stock_claim

        claim = stock_claim(Path(what))
    elif claim is None and automata.is_automaton(what, function.alphabet, function.n):
        claim = automata.stock_claim(_automaton(function, asked.method))
    elif claim is None:
        from thereexists.witness.load import load

        claim = load(what).lowerable()
    planned = {"checkpoint": what, **plan_llama(claim)}
    print_json(planned) if asked.as_json else print_facts(planned)


def _advice(plan: Any, target: Target) -> list[str]:
    """What you should know before you plan or build this, one sentence each."""
    from thereexists.functions.claims import said_of_the_edge

    return [*plan.advice(), *said_of_the_edge(target)]


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    function: FunctionOptions
    method: BuildMethodOptions
    out: Annotated[Path | None, typer.Option(help="Folder to write; default: TARGET-witness.")] = None
    samples: Annotated[int, typer.Option(min=16, help="Points of the distance estimate.")] = 2048
    seed: Annotated[int, typer.Option(min=0, help="Seed of the distance estimate.")] = 0
    certify: Annotated[bool, typer.Option("--certify/--no-certify", help="Prove a bound on the error too.")] = True
    shard_size: Annotated[
        str | None,
        typer.Option(help="Build out of core, in files of this size, such as 64MB; for networks larger than memory."),
    ] = None
    crew: WorkerOptions
    as_json: AsJson = False


@command(app, kind_of_command=WithDomain)
def build(asked: BuildOptions) -> None:
    """Construct a Transformer for a function, without training, and save it.

    Examples: thereexists build sort --n 3 --delta 1/8 --out w/

    thereexists build my.py:f --n 2 --d 2 --epsilon 0.3 --lipschitz 1

    thereexists build sort --n 4 --delta 1/4 --pattern fixed

    thereexists build sort --n 4 --delta 1/8 --construction compact

    thereexists build table.csv --construction compact --out w/

    thereexists build prog.py:smooth --epsilon 1e-3 --out w/

    thereexists build my.py:f --n 20 --delta 1/2 --shard-size 64MB --workers 2

    thereexists build "regex:(ab|ba)*" --alphabet ab --n 1024 --out w/
    """
    function, method, out = asked.function, asked.method, asked.out
    if automata.is_automaton(function.target, function.alphabet, function.n):
        if not asked.certify:
            refuse("an automaton is always certified", "certify")
        automata.build(_automaton(function, method, out), asked.as_json)
        return
    if asked.crew.dry_run and asked.shard_size is None:
        raise InvalidInput("--dry-run is for --shard-size; `thereexists plan` says what a build in memory takes.")
    if is_program(function, method):
        if not asked.certify:
            raise InvalidInput(
                "A program is always certified: that is what says what the network does. Leave --no-certify out."
            )
        programs.build(programs.ProgramRequest(function.target, method.epsilon, method.dtype, out), asked.as_json)
        return
    if function.target.endswith(".csv"):
        from thereexists.cli.kinds.tokens import build_table

        given = says_what_a_table_says(function, method)
        build_table(Path(function.target), method.construction, given, out, asked.as_json)
        return
    target = function.resolve()
    from thereexists.core import storage

    out = out or Path(f"{target.name}-witness")
    with storage.reserved(out):
        _build_function(target, out, asked)


def _build_function(target: Target, out: Path, asked: BuildOptions) -> None:
    method = asked.method
    if not asked.certify and asked.shard_size is None:
        refuse("a build without a certificate has nothing to share out", *CREW)
    with asked.crew.hired("", quiet=True):
        pass  # a mistake in the options is reported before any work
    if asked.shard_size is None:
        with progress_bar("tabulate", quiet=asked.as_json) as progress:
            witness = telling(_proving(method.method(target), asked), progress).build(target)
            witness = _measured(witness, asked)
        witness.save(out)
    else:
        witness = _build_sharded(target, out, asked)
        if witness is None:
            return
        witness = _measured(witness, asked)
    if witness.proved is not None:  # made, and saved, with the witness
        certificate, reason = witness.certificate, None
    else:
        certificate, reason = _certify(witness, out, asked) if asked.certify else (None, InvalidInput("not asked for"))
    summary = with_normalised({"witness": str(out), **witness.describe()}, target, witness.grid)
    advice = _advice(witness.plan, target)
    if asked.as_json:
        made = None if certificate is None else described(certificate)
        why = None if reason is None else str(reason)
        print_json({**summary, "certificate": made, "not_certified": why, "advice": advice})
    else:
        print_witness(summary, certificate)
        if certificate is None and asked.certify:
            console().print(f"Not certified: {reason}", markup=False)
        for sentence in advice:
            console().print(sentence)
    if isinstance(reason, NotProved):
        raise typer.Exit(1)


@app.command()
def run(
    witness: Where,
    input: Annotated[
        str,
        typer.Option(
            "--input",
            help='"0.3 0.1 0.7" (tokens of several features between semicolons), a .npy array (batch, n, d), '
            "or a .csv file with one sequence per line; symbols as they are, or a .txt file with one string per line.",
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Also write the output to this .npy file.")] = None,
    dtype: Annotated[str | None, typer.Option(help="A dtype below float64; one that is not safe is refused.")] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="auto, reference, fused or skip: changes the speed, not the result.",
            autocompletion=_complete.names(_complete.ENGINES),
        ),
    ] = "auto",
    domain: OwnDomain = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Run a witness on one sequence or on a batch.

    Example: thereexists run w/ --input "0.3 0.1 0.7"
    """
    from thereexists.cli.kinds import RunRequest
    from thereexists.witness.load import load

    files_to_write(force, (out, ()))
    loaded = load(witness, dtype)
    commands = loaded.kind.find("commands")
    commands.refuse_others("run")
    loaded = on_domain(loaded, witness, domain)
    commands.run(loaded, RunRequest(input, out, engine), as_json)


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
    domain: OwnDomain = None,
    as_json: AsJson = False,
) -> None:
    """Watch one sequence go through the proof: quantised, every selective shift, ids, values.

    Example: thereexists trace w/ --input "0.3 0.1 0.7"
    """
    from thereexists.witness.load import load

    loaded = on_domain(load(witness), witness, domain)
    loaded.kind.find("commands").trace(loaded, input, as_json)


def telling(method: Any, progress: Any) -> Any:
    """The method, telling its progress if it does."""
    tells = any(field.name == "progress" for field in dataclasses.fields(method))
    return dataclasses.replace(method, progress=progress) if tells else method


def _build_sharded(target: Target, out: Path, asked: BuildOptions) -> Any:
    """The witness, built straight into its folder; None where only the cost was asked for, and told."""
    from thereexists.constructions.faithful.sharded import build_sharded, predict_sharded

    method = asked.method
    others = (method.epsilon, method.max_width)
    if method.delta is None or method.modified or others != (None, None) or method.construction not in SHARDED:
        raise InvalidInput("--shard-size is for the faithful construction on a grid of your choice (--delta).")
    pattern, size = method.chosen_pattern(target.n), _bytes(asked.shard_size or "")
    with asked.crew.hired("build", quiet=asked.as_json or asked.crew.dry_run) as workers:
        if not asked.crew.dry_run:
            return build_sharded(target, out, method.delta, method.p, pattern, method.rho, size, workers)
        print_estimate(predict_sharded(target, method.delta, pattern, workers), asked.as_json)
    return None


def _proving(method: Any, asked: BuildOptions) -> Any:
    """The method; one for --epsilon certifies as it goes, by the crew that was asked for, or only predicts."""

    def prove(witness: Any, p: float) -> Any:
        from thereexists.witness.verbs import certify

        with asked.crew.hired("certify", quiet=asked.as_json) as workers:
            return certify(witness, p, seed=asked.seed, workers=workers)

    return dataclasses.replace(method, prove=prove if asked.certify else None)


def _measured(witness: Any, asked: BuildOptions) -> Any:
    distance = witness.estimate_distance(asked.method.p, asked.samples, asked.seed)
    return dataclasses.replace(witness, distance=distance)


def _bytes(text: str) -> int:
    """``64MB`` or ``1GB`` as a number of bytes."""
    units = {"KB": 10**3, "MB": 10**6, "GB": 10**9}
    number, unit = text[:-2], text[-2:].upper()
    if unit not in units or not number.strip().isdigit():
        raise InvalidInput(f"--shard-size must look like 64MB or 1GB; got {text!r} instead.")
    return int(number) * units[unit]


def _without_a_modulus(target: Target, out: Path) -> str:
    """What can be had for a function that is known by its values alone."""
    reference = target.origin.get("reference")
    words = ["thereexists", "certify", str(out), *([] if reference is None else ["--function", str(reference)])]
    return (
        "that takes a Lipschitz constant (--lipschitz). If all you can state is the largest |f|, that gives a bound "
        f"that holds with 99% confidence: {shlex.join(words)} --bound …"
    )


def _certify(witness: Any, out: Path, asked: BuildOptions) -> tuple[Any, ThereExistsError | None]:
    """The certificate, saved beside the weights, or why there is none: the witness itself is whole either way."""
    if not witness.target.provable:
        return None, InvalidInput(_without_a_modulus(witness.target, out))
    from thereexists.witness.verbs import certify

    try:
        with asked.crew.hired("certify", quiet=asked.as_json) as workers:
            certificate = certify(witness, asked.method.p, seed=asked.seed, folder=out, workers=workers)
    except ThereExistsError as error:
        return None, error
    certificate.save(out)
    return certificate, None
