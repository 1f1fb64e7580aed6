"""Which artefact lies in a folder, and the page for it."""

from __future__ import annotations

from pathlib import Path

from thereexists.errors import BadWitnessFile, InvalidInput, ThereExistsError
from thereexists.report.html import Page
from thereexists.target import Target

MOST_RECORD_BYTES = 16 << 20


def report(folder: str | Path, target: Target | None = None) -> Page:
    """The page of a saved witness or head; ``target`` gives a function of your own again (its code is not stored).

    te.report.report("w").save("report.html")
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is not the folder of a saved witness or head.")
    for file in folder.glob("*.json"):
        if file.stat().st_size > MOST_RECORD_BYTES:
            raise BadWitnessFile(
                f"{file} has {file.stat().st_size:,} bytes; a record has at most {MOST_RECORD_BYTES:,}."
            )
    try:
        return _head(folder) if (folder / "head.json").is_file() else _witness(folder, target)
    except ThereExistsError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError, RuntimeError) as error:
        # The digests fit, so somebody wrote a record on purpose whose entries are not what they should be.
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise BadWitnessFile(f"{folder} cannot be reported, its record is malformed: {reason}") from error


def _head(folder: Path) -> Page:
    from thereexists.heads.io import load
    from thereexists.report.head import head_page
    from thereexists.storage import HEAD, read_record

    return head_page(load(folder), read_record(folder, HEAD), folder)


def _witness(folder: Path, target: Target | None) -> Page:
    from thereexists.report.witness import witness_page
    from thereexists.storage import read_record
    from thereexists.witness import load

    witness = load(folder)
    if hasattr(witness, "vocabulary"):
        raise InvalidInput(
            f"{folder} is a witness on tokens; a report draws functions of numbers (see: thereexists show)."
        )
    if hasattr(witness, "program"):
        from thereexists.report.program import program_page

        return program_page(folder, witness)
    return witness_page(folder, witness, read_record(folder), target)
