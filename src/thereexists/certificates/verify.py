"""Re-check a saved witness and its certificate from the files alone, without trusting whoever made them.

Every check has a name, and a failing one says what it found. A verdict holds only if all of them pass. Which checks
there are depends on the kind of witness: one look-up, and nothing that builds is imported.

Three outcomes. It *holds*. It *does not hold*: what was read is false, altered or not of its kind. It *could not be
checked*, and nothing is said about it: there is no witness or no certificate, a file cannot be read, the function is
missing, or an option, a folder or a machine was in the way. A fault that was found before that counts all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from thereexists.certificates.check import (
    SAMPLE,
    Asked,
    Check,
    How,
    NoFunctionWanted,
    Progress,
    Told,
    check_crew,
    checked_opinions,
    untold,
)
from thereexists.certificates.llama.format import FORMAT, format_of
from thereexists.core import storage
from thereexists.core.errors import BadWitnessFile, Obstructed, ThereExistsError, Unreadable
from thereexists.core.kinds import kind_of
from thereexists.core.memory import is_out_of_memory, too_little_memory
from thereexists.core.named_folder import folder_named
from thereexists.core.neutral import neutral
from thereexists.core.plain_numbers import share_of_one
from thereexists.core.verdict import Verdict
from thereexists.functions.target import Target, check_is_target
from thereexists.parallel import HERE, Workers


@neutral()
def verify(
    folder: str | Path,
    target: Target | None = None,
    opinions: int | None = None,
    progress: Progress = untold,
    workers: Workers = HERE,
    sample: float | None = None,
    job: str | Path | None = None,
) -> Verdict:
    """Check a saved witness and its certificate again, from the files alone.

        te.verify("w").holds

    Args:
        folder: the folder of the witness. Nothing in it is believed, and no code in it is run.
        target: the function, where it is not a built-in one: its code is not stored.
        opinions: how many cubes are also checked by Arb and by exact rationals.
        progress: called as ``progress(done, total)``; an error that it raises is yours.
        workers: how many processes compute it, and where.
        sample: enclose only this share of the cubes again, drawn anew each time; the verdict is *undecided* where no
            fault was found.
        job: a folder of your own from which an interrupted verification resumes.

    Returns:
        A verdict: ``holds`` is True, False, or None where it could not be decided; ``reasons`` in words; ``evidence``,
        the tuple of all checks, each with its name, result and detail.

    Raises:
        InvalidInput: an argument is not what it must be. Whatever is wrong with the files is part of the verdict.
    """
    place = folder_named(folder)
    share = None if sample is None else share_of_one(sample, "'sample'", whole_too=True)
    asked = checked_opinions(opinions)
    check_is_target(target)
    check_crew(workers, progress)
    told = Told(progress)
    how = How(workers, share, None if job is None else folder_named(job), told)
    checks: list[Check] = []
    try:
        for check in _checks(place, target, asked, how):
            checks.append(check)
    except NoFunctionWanted:
        raise
    except (Obstructed, Unreadable) as error:
        checks.append(Check("files" if isinstance(error, Unreadable) else "asked", None, str(error)))
    except Exception as error:
        checks.append(_ended_by(error, not checks))
    if told.error is not None:
        raise told.error
    return _verdict(checks)


def _ended_by(error: Exception, at_once: bool) -> Check:
    """What an error says of the files. A forged one must never end in a stack trace, and never in a pass."""
    if is_out_of_memory(error):  # of this machine, whatever the files say; an error of ours may have come of it
        return Check("machine", None, too_little_memory(error))
    if isinstance(error, OSError):
        return Check("machine", None, f"{type(error).__name__}: {error}")
    if isinstance(error, ThereExistsError):
        return Check("files" if at_once or isinstance(error, BadWitnessFile) else "target", False, str(error))
    return Check("files", False, f"cannot be checked: {type(error).__name__}: {error}")


def _checks(folder: Path, target: Target | None, opinions: int | None, how: How) -> Iterator[Check]:
    """Of a stock checkpoint, or of a witness of any kind."""
    stock = format_of(folder)
    if stock is not None:
        if target is not None:
            raise NoFunctionWanted(f"{folder} is a stock checkpoint, with its claim: verify it without a function.")
        from thereexists.certificates.llama.reals.verify import real_checks
        from thereexists.certificates.llama.verify import checkpoint_checks

        return checkpoint_checks(folder) if stock == FORMAT else real_checks(folder)
    record, weights = storage.read(folder)
    return kind_of(record, folder).find("verify")(Asked(folder, record, weights, target, opinions, how))


def _verdict(checks: list[Check]) -> Verdict:
    failed = [f"{check.name}: {check.detail}" for check in checks if check.passed is False]
    unmade = tuple(f"{check.name}: {check.detail}" for check in checks if check.passed is None)
    if unmade and not failed:
        return Verdict(None, unmade, tuple(checks))
    sampled = [check.detail for check in checks if check.name == SAMPLE]
    if sampled and not failed:
        return Verdict(None, tuple(sampled), tuple(checks))
    return Verdict(not failed, tuple(failed), tuple(checks))
