"""certify and verify: the proof object of a witness, made and re-checked."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thereexists.cli._output import AsJson, bold, console, print_json, styled
from thereexists.cli._workers import Address, DryRun, PoolName, WorkerCount, print_estimate, the_workers
from thereexists.core.errors import InvalidInput, NotProved
from thereexists.core.kinds import kind_of

if TYPE_CHECKING:
    from thereexists.functions.target import Target

app = typer.Typer()

Where = Annotated[Path, typer.Argument(help="The folder of a witness.")]
Function = Annotated[
    str | None, typer.Option(help="file.py:function, for a witness of your own function (its code is not stored).")
]


@app.command()
def certify(
    witness: Where,
    p: Annotated[float, typer.Option("--p", help="The p of d_p.")] = 1.0,
    function: Function = None,
    bound: Annotated[float | None, typer.Option(help="Largest |f|; allows a statistical certificate.")] = None,
    confidence: Annotated[float, typer.Option(help="Of a statistical certificate.")] = 0.99,
    samples: Annotated[int, typer.Option(help="Of a statistical certificate.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="For every random choice.")] = 0,
    workers: WorkerCount = None,
    pool: PoolName = "loky",
    address: Address = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Prove a bound on the error of a witness, over its whole domain, and write it to certificate.json.

    An interrupted run goes on where it stopped. Workers and pool change how long it takes, never what comes out.

    Examples: thereexists certify w/

    thereexists certify w/ --p 2 --json

    thereexists certify w/ --workers 2
    """
    from thereexists.certificates import predict
    from thereexists.core.storage import read_record
    from thereexists.witness.load import load
    from thereexists.witness.verbs import certify as make

    loaded, target = load(witness), None
    if function is not None or bound is not None:
        target = given_target(stored_target(witness, read_record(witness)), function)
        target = target if bound is None else dataclasses.replace(target, bound=bound)
    with the_workers("certify", workers, pool, address, quiet=as_json, shown=not dry_run) as crew:
        if dry_run:
            print_estimate(predict(loaded, p, target, crew), as_json)
            return
        try:
            certificate = make(
                loaded, p, target, seed=seed, confidence=confidence, samples=samples, folder=witness, workers=crew
            )
        except NotProved as error:
            print_not_proved(error, as_json)
            raise typer.Exit(1) from None
    certificate.save(witness)
    loaded.kind.find("commands").certified(certificate, as_json)


@app.command()
def verify(
    witness: Where,
    function: Function = None,
    sample: Annotated[
        float | None, typer.Option(help="Enclose only this share of the cubes again, such as 0.01.")
    ] = None,
    job: Annotated[
        Path | None, typer.Option(help="A folder of your own, outside the witness, to resume from if interrupted.")
    ] = None,
    workers: WorkerCount = None,
    pool: PoolName = "loky",
    address: Address = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Re-check a witness and its certificate from the files alone. Exit code 0 if everything holds, 1 if not.

    With --sample the verdict is "undecided, no fault found" at best: exit code 0, and "holds": null.

    Examples: thereexists verify w/

    thereexists verify w/ --function my.py:f

    thereexists verify w/ --sample 0.01 --workers 2
    """
    from thereexists.certificates import load_certificate, predict
    from thereexists.certificates import verify as check
    from thereexists.core.storage import read_record

    record = read_record(witness)  # no folder to check is a mistake of the caller, not a failed check
    target = None if function is None else given_target(stored_target(witness, record), function)
    with the_workers("verify", workers, pool, address, quiet=as_json, shown=not dry_run) as crew:
        if dry_run:
            from thereexists.witness.load import load

            print_estimate(predict(load(witness), load_certificate(witness).p, target, crew, sample), as_json)
            return
        verdict = check(witness, target, workers=crew, sample=sample, job=job)
    if as_json:
        print_json({"holds": verdict.holds, "checks": [vars(check) for check in verdict.witness]})
    else:
        _print_checks(verdict)
    if verdict.holds is False:
        raise typer.Exit(1)


def stored_target(witness: Path, record: dict[str, Any]) -> Target:
    """What a record claims of a function."""
    from thereexists.core.json_files import malformed
    from thereexists.functions.targets import restore

    if "target" not in kind_of(record, witness).fields:
        raise InvalidInput("--function gives the function of a target again; this witness is of something else.")
    with malformed(witness, "is not a witness of a function"):
        return restore(record["target"])


def given_target(stored: Target, function: str | None) -> Target:
    """The stored claims with the function given again; a file that changed since the build is refused."""
    from thereexists.functions.target import from_file

    if function is None:
        return stored
    given = from_file(function, n=stored.n, d=stored.d)
    if given.origin["sha256"] != stored.origin.get("sha256"):
        raise InvalidInput(f"{function} is not the file that this witness was built from (its SHA-256 differs).")
    if given.name != stored.name:
        raise InvalidInput(
            f"This witness was built from the function {stored.name!r} of that file, not {given.name!r}."
        )
    return dataclasses.replace(stored, f=given.f)


def print_not_proved(error: NotProved, as_json: bool) -> None:
    if as_json:
        print_json({"kind": "not proved", "bound": None, "reason": str(error)})
    else:
        console().print(str(error), markup=False)


def _print_checks(verdict: Any) -> None:
    from rich.table import Table

    table = Table("check", "", "what was found", box=None)
    for check in verdict.witness:
        table.add_row(check.name, styled(("ok", "green") if check.passed else ("FAILED", "red")), check.detail)
    console().print(table)
    words = {True: bold("holds"), False: styled(("does not hold", "bold red"))}
    console().print(words.get(verdict.holds, styled(("undecided", "bold"), ": no fault found in the sample")))
