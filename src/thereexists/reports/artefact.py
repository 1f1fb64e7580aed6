"""Which artefact lies at a place, and the page for it.

Each kind of artefact is one file of ``kinds/`` that ends in a ``KIND``: how to recognise it, and how to make its page.
Recognising reads names and the top of a JSON record, nothing else, and no two kinds claim the same artefact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from thereexists.core import shards
from thereexists.core.errors import BadWitnessFile, InvalidInput, ThereExistsError
from thereexists.core.json_files import MOST_BYTES, read_json
from thereexists.core.memory import is_out_of_memory, too_little_memory
from thereexists.core.named_folder import folder_named
from thereexists.core.neutral import neutral
from thereexists.core.regular_files import open_regular
from thereexists.functions.target import Target
from thereexists.reports.html import Page

MOST_RECORD_BYTES = MOST_BYTES
RECORDS = ("witness.json", "head.json")  # by which a saved artefact's folder is recognised


@dataclass(frozen=True)
class Found:
    """A place that a report was asked about, and what the caller said about it.

        from pathlib import Path

        from thereexists.reports import Found, every_kind

        np.save("mask.npy", te.patterns.star(n=8).mask())
        [kind.name for kind in every_kind() if kind.recognises(Found(Path("mask.npy")))]

    Args:
        path: the folder or file.
        target: the function, for a witness of your own.
        n: how many tokens a pattern has.
        sizes: the sizes of a pattern.
    """

    path: Path
    target: Target | None = None
    n: int | None = None
    sizes: dict[str, int] = field(default_factory=dict)

    @cached_property
    def record(self) -> dict[str, Any]:
        """The JSON object that says what this is: of the folder, or the file itself; empty if there is none."""
        names = [self.path / name for name in RECORDS] if self.path.is_dir() else [self.path]
        file = next((name for name in names if name.is_file() and name.suffix == ".json"), None)
        if file is None:
            return {}
        check_size(file)
        content = read_json(file, MOST_RECORD_BYTES, "JSON")
        return content if isinstance(content, dict) else {}

    def has(self, *keys: str) -> bool:
        """Whether this is a single JSON file whose object has all these keys."""
        return not self.path.is_dir() and set(keys) <= set(self.record)


@dataclass(frozen=True)
class Kind:
    """A kind of artefact that ``te.report`` can read.

        from thereexists.reports import every_kind

        [kind.what for kind in every_kind()]  # what te.report can read

    ``docs/add-report.md`` shows how to add one.

    Args:
        name: what it is called.
        what: the same in words, for messages.
        recognises: whether a place holds such an artefact; it only looks.
        page: reads the artefact and draws the page.
        sized: whether ``n`` and ``sizes`` belong to it.
    """

    name: str
    what: str
    recognises: Callable[[Found], bool]
    page: Callable[[Found], Page]
    sized: bool = False


def every_kind() -> tuple[Kind, ...]:
    """Every kind of artefact: one for each module of ``kinds/``.

        from thereexists.reports import every_kind

        [kind.name for kind in every_kind()]  # what te.report reads

    Returns:
        The kinds, in the order of their names.
    """
    from thereexists.reports import kinds as package

    modules = (import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__))
    return tuple(module.KIND for module in modules)


@neutral()
def report(
    place: str | Path, target: Target | None = None, n: int | None = None, sizes: dict[str, int] | None = None
) -> Page:
    """One offline page about an artefact.

        te.report("w").save("report.html")
        te.report("strided", n=64, sizes={"stride": 8})

    Args:
        place: the folder of a witness, a head or runs; a JSON file that a command printed; a mask, a model's config, or
            the name of a pattern.
        target: the function, for a witness of your own: its code is not stored.
        n: how many tokens the pattern has.
        sizes: the sizes of the pattern.

    Returns:
        The page: ``str(page)`` is the HTML document, ``page.save(file)`` writes it.

    Raises:
        InvalidInput: there is no such artefact.
        BadWitnessFile: it is malformed.
    """
    found = Found(folder_named(place), target, n, sizes or {})
    every = every_kind()
    if not found.path.exists() and n is None and not any(kind.recognises(found) for kind in every):
        raise InvalidInput(f"There is no {place}; give a folder or a file, or a pattern's name with --n.")
    if found.path.is_dir():
        check_records(found.path)
    if target is not None and "target" not in found.record:
        raise InvalidInput(f"{place} already contains what it computes: leave the function out.")
    for kind in every:
        if kind.recognises(found):
            if (n is not None or sizes) and not kind.sized:
                raise InvalidInput(f"{place} is {kind.what}: --n and --set are for patterns; leave them out.")
            with malformed(found.path):
                return kind.page(found)
    known = "; ".join(kind.what for kind in every)
    raise InvalidInput(f"{place} is not an artefact that a report can read. It reads: {known}.")


def weights_hash(record: dict[str, Any]) -> str:
    """The hash that stands for the weights: of their file, or of the index of their files."""
    stated = record.get("shards_sha256")
    if stated is None:
        return f"SHA-256 {record['weights_sha256']}"
    return f"{len(stated) - 1} files, SHA-256 {stated[shards.INDEX]} of their index"


def check_records(folder: Path) -> None:
    """Refuse a folder that is none, or whose records are absurdly long."""
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is not the folder of a saved artefact.")
    for file in folder.glob("*.json"):
        check_size(file)


def check_size(file: Path) -> None:
    open_regular(file, MOST_RECORD_BYTES).close()


@contextmanager
def malformed(place: Path) -> Iterator[None]:
    """The digests match, so a record with wrong entries was written on purpose: say so."""
    try:
        yield
    except ThereExistsError:
        raise
    except MemoryError as error:
        raise BadWitnessFile(f"{place} cannot be reported: {too_little_memory(error)}") from error
    except RecursionError as error:
        raise BadWitnessFile(
            f"{place} cannot be reported, its record is malformed: it is nested too deeply."
        ) from error
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RuntimeError, StopIteration) as error:
        if is_out_of_memory(error):
            raise BadWitnessFile(f"{place} cannot be reported: {too_little_memory(error)}") from error
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        raise BadWitnessFile(f"{place} cannot be reported, its record is malformed: {reason}") from error
