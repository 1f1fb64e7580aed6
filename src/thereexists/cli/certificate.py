"""certify and verify: the proof object of a witness, made and re-checked."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thereexists.cli._applies import ALWAYS, said
from thereexists.cli._output import AsJson, bold, console, print_json, styled
from thereexists.cli._settings import command
from thereexists.cli._workers import WorkerOptions, print_estimate
from thereexists.core.errors import BadWitnessFile, InvalidInput, NotProved, Obstructed, Unreadable
from thereexists.core.kinds import kind_of
from thereexists.core.one_writer import one_writer

if TYPE_CHECKING:
    from thereexists.functions.target import Target

app = typer.Typer()

Where = Annotated[Path, typer.Argument(help="The folder of a witness.")]
Function = Annotated[
    str | None, typer.Option(help="file.py:function, for a witness of your own function (its code is not stored).")
]
OwnDomain = Annotated[
    str | None, typer.Option("--domain", help="file.py:domain, if the domain is your own code (it is not stored).")
]


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    confidence: Annotated[float, typer.Option(help="Confidence of a statistical certificate.")] = 0.99
    samples: Annotated[int, typer.Option(help="Random points of a statistical certificate.")] = 20_000
    seed: Annotated[int, typer.Option(min=0, help="For every random choice.")] = 0


@dataclass(frozen=True, kw_only=True)
class CertifyOptions:
    witness: Where
    p: Annotated[float, typer.Option("--p", help="The p of d_p.")] = 1.0
    function: Function = None
    domain: OwnDomain = None
    bound: Annotated[float | None, typer.Option(help="Largest |f|; allows a statistical certificate.")] = None
    sampling: SamplingOptions
    crew: WorkerOptions
    as_json: AsJson = False


@command(app)
def certify(asked: CertifyOptions) -> None:
    """Prove a bound on the error of a witness, an integral over its domain, and write it to certificate.json.

    An interrupted run resumes where it stopped. Workers and pool change how long it takes, never the result.

    Examples: thereexists certify w/

    thereexists certify w/ --p 2 --json

    thereexists certify w/ --workers 2
    """
    from thereexists.certificates import predict
    from thereexists.core.storage import read_record
    from thereexists.witness.load import load
    from thereexists.witness.verbs import certify as make

    before, loaded, target = _identity(asked.witness), load(asked.witness), None
    commands = loaded.kind.find("commands")
    commands.refuse_others("certify")
    if any(given is not None for given in (asked.function, asked.domain, asked.bound)):
        target = given_target(stored_target(asked.witness, read_record(asked.witness)), asked.function, asked.domain)
        target = target if asked.bound is None else dataclasses.replace(target, bound=asked.bound)
    commands.check_certify(loaded, target)
    if asked.crew.dry_run:
        with asked.crew.hired("certify", quiet=True) as workers:
            print_estimate(predict(loaded, asked.p, target, workers), asked.as_json)
        return
    with one_writer(asked.witness.absolute()):  # nobody puts another witness there meanwhile
        with asked.crew.hired("certify", quiet=asked.as_json) as workers:
            try:
                sampling = dataclasses.asdict(asked.sampling)
                certificate = make(loaded, asked.p, target, folder=asked.witness, workers=workers, **sampling)
            except NotProved as error:
                print_not_proved(error, asked.as_json)
                raise typer.Exit(1) from None
        if _identity(asked.witness) != before:
            raise Obstructed(f"{asked.witness} was replaced while it was certified; nothing was written. Try again.")
        certificate.save(asked.witness)
    commands.certified(certificate, asked.as_json)
    if not certificate.keeps_epsilon():
        raise typer.Exit(1)


def _identity(folder: Path) -> str | None:
    """Of what lies there: the record has the hash of the weights in it. None where there is no record."""
    from thereexists.core.regular_files import file_sha256

    file = folder / "witness.json"
    return file_sha256(file) if file.is_file() else None


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    witness: Where
    function: Function = None
    domain: OwnDomain = None
    sample: Annotated[float | None, typer.Option(help="Enclose only this share of the cubes again, such as 0.01.")] = (
        None
    )
    job: Annotated[
        Path | None, typer.Option(help="A folder of your own, outside the witness, to resume from if interrupted.")
    ] = None
    crew: WorkerOptions
    as_json: AsJson = False


@command(app)
def verify(asked: VerifyOptions) -> None:
    """Re-check a witness and its certificate from the files alone.

    Exit code 0 if everything holds; 1 if it does not: the files are false or altered; 2 if it could not be checked: no
    witness or no certificate there, an unreadable file, a function that is missing (--function), a wrong option.

    With --sample the verdict is "undecided, no fault found" at best: exit code 0, and "holds": null.

    Examples: thereexists verify w/

    thereexists verify w/ --function my.py:f

    thereexists verify w/ --sample 0.01 --workers 2
    """
    from thereexists.certificates import load_certificate, predict
    from thereexists.certificates import verify as check
    from thereexists.certificates.certify_function import check_spread

    if set(said()) - {"witness", "function", "domain", *ALWAYS}:
        _refuse_others(asked.witness)
    again = asked.function is not None or asked.domain is not None
    target = _given_again(asked.witness, asked.function, asked.domain) if again else None
    with asked.crew.hired("verify", quiet=asked.as_json or asked.crew.dry_run) as workers:
        if asked.crew.dry_run:
            from thereexists.witness.load import load

            loaded = load(asked.witness)
            check_spread(loaded)  # before a certificate of a function is looked for
            p = load_certificate(asked.witness, ("rigorous", "statistical")).p
            print_estimate(predict(loaded, p, target, workers, asked.sample), asked.as_json)
            return
        verdict = check(asked.witness, target, workers=workers, sample=asked.sample, job=asked.job)
    why = [check.detail for check in verdict.evidence if check.passed is None]
    if verdict.holds is None and why:
        raise Obstructed(f"{asked.witness} could not be checked. {why[0]}")
    if asked.as_json:
        print_json({"holds": verdict.holds, "checks": [vars(check) for check in verdict.evidence]})
    else:
        _print_checks(verdict)
    if verdict.holds is False:
        raise typer.Exit(1)


def _refuse_others(witness: Path) -> None:
    """Options without a use for this kind; a record that cannot be read is a matter of the checks."""
    from thereexists.core.storage import read_record

    with suppress(Unreadable, BadWitnessFile):
        kind_of(read_record(witness), witness).find("commands").refuse_others("verify")


def _given_again(witness: Path, function: str | None, domain: str | None) -> Target | None:
    """The target with its function; None if the record is no record of ours: the checks say what is wrong with it."""
    from thereexists.core.storage import read_record

    try:
        stored = stored_target(witness, read_record(witness))
    except Unreadable:
        raise
    except BadWitnessFile:
        return None
    return given_target(stored, function, domain)


def stored_target(witness: Path, record: dict[str, Any]) -> Target:
    """What a record claims of a function."""
    from thereexists.core.json_files import malformed
    from thereexists.functions.targets import restore

    if "target" not in kind_of(record, witness).fields:
        raise InvalidInput("--function gives the function of a target again; this witness is of something else.")
    with malformed(witness, "is not a witness of a function"):
        return restore(record["target"])


def given_target(stored: Target, function: str | None, domain: str | None = None) -> Target:
    """The stored claims with the function, or the domain, given again; a file that changed is refused."""
    from thereexists.functions.domains.stored import given_again
    from thereexists.functions.target import from_file

    stored = stored if domain is None else dataclasses.replace(stored, domain=given_again(stored.region, domain))
    if function is None:
        return stored
    given = from_file(function, n=stored.n, d=stored.d)
    if stored.origin.get("kind") != given.origin["kind"]:  # of a built-in, the record would lend its interval extension
        raise InvalidInput(f"This witness was not built from a file: {_otherwise(stored)}.")
    if given.origin["sha256"] != stored.origin.get("sha256"):
        raise InvalidInput(f"{function} is not the file that this witness was built from (its SHA-256 differs).")
    if given.name != stored.name:
        raise InvalidInput(
            f"This witness was built from the function {stored.name!r} of that file, not {given.name!r}."
        )
    return dataclasses.replace(stored, f=given.f)


def _otherwise(stored: Target) -> str:
    if stored.origin.get("kind") == "builtin":
        return f"it is of the built-in function {stored.name}, which comes with it; leave --function out"
    return "give its Python function again in Python, te.verify(folder, target)"


def on_domain(loaded: Any, witness: Path, domain: str | None) -> Any:
    """A loaded witness with the code of its domain, where it is given."""
    if domain is None:
        return loaded
    from thereexists.core.storage import read_record

    return dataclasses.replace(loaded, target=given_target(stored_target(witness, read_record(witness)), None, domain))


def print_not_proved(error: NotProved, as_json: bool) -> None:
    if as_json:
        print_json({"kind": "not proved", "bound": None, "reason": str(error)})
    else:
        console().print(str(error), markup=False)


_PASSED = {True: ("ok", "green"), False: ("FAILED", "red"), None: ("not checked", "yellow")}


def _print_checks(verdict: Any) -> None:
    from rich.table import Table

    table = Table("check", "", "what was found", box=None)
    for check in verdict.evidence:
        table.add_row(check.name, styled(_PASSED[check.passed]), check.detail)
    console().print(table)
    words = {True: bold("holds"), False: styled(("does not hold", "bold red"))}
    console().print(words.get(verdict.holds, styled(("undecided", "bold"), ": no fault found in the sample")))
