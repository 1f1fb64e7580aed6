"""The one notion of a certificate: what is claimed of one network file, in numbers, and under which assumptions.

    certificate.bound           how far the network may be from what it should compute
    certificate.claim()         that in a few words
    certificate.assumptions     what is taken for granted
    certificate.save("w")       certificate.json, beside the weights it is about

The final variants are listed in ``core/kinds.py``: of a function rigorous or statistical (``function_certificate.py``),
of a program (``program_certificate.py``), of an automaton (``automaton_certificate.py``). Its kind stands in the file,
with exactly the fields of that kind; a reader asks the certificate, never of what kind it is. A table or a data set has
none: it is recalled exactly or not.
"""

from __future__ import annotations

import dataclasses
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, ClassVar, Self

from thereexists.core.atomic_files import the_error_in_words, write_beside
from thereexists.core.authors_word import WORDS
from thereexists.core.errors import BadWitnessFile, InvalidInput, Unreadable
from thereexists.core.json_files import malformed, read_json, record_digest
from thereexists.core.kinds import CERTIFICATES, named
from thereexists.core.named_folder import folder_named
from thereexists.core.notebook import InNotebook
from thereexists.core.plain_text import brief
from thereexists.core.regular_files import is_regular

FILE = "certificate.json"
BLOCKS = "certificate.blocks.safetensors"  # what only some have beside it
FORMAT_VERSION = 5
# Fields that older files have not, and may be None for: nothing was stated then.
_SINCE = {"epsilon": 3, "uniform": 4, "float_run": 5}


@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class Certificate(InNotebook, ABC):
    """``bound`` holds under ``assumptions`` for the network whose weights have this SHA-256.

        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 2)
        te.certify(witness).claim()

    A field that is compared is stored; ``seconds`` is neither, for the same claim is the same bytes.

    Args:
        bound: how far the network may be off.
        assumptions: what is taken for granted.
        weights_sha256: of the network that it is about.
        package_version: that made it.
        seconds: how long it took.
        stated: it was read from a file: its author's word, which ``te.verify`` checks.
    """

    kind: ClassVar[str]
    paper: ClassVar[str] = "A"  # where such networks were first written down, as reports name it

    bound: float
    assumptions: list[str]
    weights_sha256: str
    package_version: str
    seconds: float = dataclasses.field(default=0.0, compare=False)
    stated: bool = dataclasses.field(default=False, compare=False)

    @abstractmethod
    def claim(self) -> str:
        """The bound in a few words."""

    @abstractmethod
    def statement(self) -> str:
        """The bound as a report states it, with the inputs and the sense that it is about."""

    @abstractmethod
    def label(self) -> str:
        """How sure it is, in two or three words."""

    @abstractmethod
    def shares(self) -> dict[str, float]:
        """What the bound is made of."""

    def added_up(self) -> str:
        """How the shares make up the bound, where it is not their plain sum."""
        return ""

    @abstractmethod
    def detail(self) -> str:
        """What else it states, in one line."""

    def is_about(self, weights: str, meant: Any) -> bool:
        """Whether the network of these weights, ``weights_sha256``, is meant to compute just this."""
        return self.weights_sha256 == weights and self.means(meant)

    @abstractmethod
    def means(self, meant: Any) -> bool:
        """Whether it is about this function, program or automaton, as ``Witness.to_compute`` gives it."""

    @abstractmethod
    def subject(self) -> dict[str, str]:
        """What should be computed, as the author says: its name first."""

    def asked_for(self) -> list[float]:
        """How large the bound was asked to be at most, if anyone asked."""
        return []

    def dtype_bounds(self) -> dict[str, float | None]:
        """What is proved of the run in each number format, None where nothing is; empty if it is about none."""
        return {}

    def keeps_epsilon(self) -> bool:
        """Whether the bound is as small as was asked for; True if nothing was."""
        return True

    def beside(self) -> dict[str, str]:
        """The bound in other words: what was asked for, and what it is in other units."""
        return {}

    def meaning(self) -> list[str]:
        """What the bound says of single inputs, a sentence each; nothing where it is a bound for every one of them."""
        return []

    def tried(self) -> dict[str, str]:
        """What the author looked at besides the proof, and what was seen."""
        return {}

    @classmethod
    @abstractmethod
    def right(cls) -> dict[str, Callable[[Any], bool]]:
        """Of each stored field: is a stranger's value of the type, and of the parts, that the checks take it for?"""

    def __repr__(self) -> str:
        assumed = (f"assuming that {text}" for text in self.assumptions)
        claim, *more = map(self.marked, (f"{self.claim()}, {self.label()}", self.detail(), *assumed))
        return brief(f"{type(self).__name__}: {claim}", *more)

    def marked(self, text: str) -> str:
        """What it says, as its author's word where that is all it is."""
        return f"{WORDS}: {text}" if self.stated else text

    @classmethod
    def stored(cls) -> list[str]:
        """The names of the fields that a file of this kind holds, all of them and no others."""
        return [field.name for field in dataclasses.fields(cls) if field.compare]

    def content(self) -> dict[str, Any]:
        """Kind and fields, as they are stored."""
        return {"kind": self.kind, **{name: getattr(self, name) for name in self.stored()}}

    def describe(self) -> dict[str, Any]:
        """Plain data about the certificate, as ``certify --json`` gives it."""
        return {**self.content(), "seconds": self.seconds}

    def save(self, folder: str | Path) -> None:
        """Write certificate.json into the witness's folder, whole or not at all, with what belongs beside it."""
        record = {"format_version": FORMAT_VERSION, **self.content()}
        record["digest"] = record_digest(record)
        try:
            text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        except ValueError as error:
            raise InvalidInput(f"The certificate was not saved: one of its numbers is not finite ({error}).") from error
        file = folder_named(folder) / FILE
        with the_error_in_words(file):
            self.put(file, text)

    def put(self, file: Path, text: str) -> None:
        """The file alone; sums that an earlier certificate left would belong to none."""
        write_beside(file, text)
        (file.parent / BLOCKS).unlink(missing_ok=True)

    @classmethod
    def of(cls, record: dict[str, Any], folder: Path) -> Self:
        """What a record says, if it holds exactly the fields of this kind, each of its type."""
        odd = sorted(record.keys() ^ set(cls.stored()))
        if odd:
            must = "must hold" if odd[0] in cls.stored() else "must not hold"
            raise InvalidInput(f"a {cls.kind} certificate {must} {odd[0]!r}")
        wrong = [name for name, is_right in cls.right().items() if not is_right(record[name])]
        if wrong:
            raise InvalidInput(f"{wrong[0]!r} of a {cls.kind} certificate has a wrong type or wrong parts")
        return cls(**record, stated=True)


def load_certificate(folder: str | Path, kinds: Collection[str] = tuple(CERTIFICATES)) -> Any:
    """Read certificate.json; refuses one that is missing, broken, changed, of another version or of no such kind.

        te.build(te.targets.builtin("sort", n=2), delta=1 / 2).save("w")
        te.certify(te.load("w")).save("w")
        te.certificates.load_certificate("w")

    Args:
        folder: of a witness.
        kinds: the kinds that are expected.

    Returns:
        The certificate: what its author claims.

    Raises:
        InvalidInput: there is none.
        BadWitnessFile: it is malformed or was changed.
    """
    file = Path(folder) / FILE
    if not is_regular(file):
        raise (BadWitnessFile if os.path.lexists(file) else Unreadable)(
            f"{folder} has no {FILE}; make one with `thereexists certify {folder}`."
        )
    record = read_json(file)
    if not isinstance(record, dict) or not {"format_version", "digest"} <= record.keys():
        raise BadWitnessFile(f"{file} was truncated or changed: it is not a certificate.")
    version, stated = record.pop("format_version"), record.pop("digest")
    if type(version) is not int or not 2 <= version <= FORMAT_VERSION:
        how = f"make it again with `thereexists certify {folder}`" if version == 1 else "update thereexists"
        raise Unreadable(f"{file} has format version {version}, not {FORMAT_VERSION}; {how}.")
    if record_digest({"format_version": version, **record}) != stated:
        raise BadWitnessFile(f"{file} was changed after it was written: its digest does not match.")
    return certificate_of(record, file, kinds, version)


def certificate_of(
    record: dict[str, Any], file: Path, kinds: Collection[str] = tuple(CERTIFICATES), version: int = FORMAT_VERSION
) -> Any:
    """The certificate that a record states, as the final class of the kind that it names."""
    record = dict(record)
    kind = record.pop("kind", None)
    if not isinstance(kind, str) or kind not in kinds:
        raise BadWitnessFile(
            f"{file} is a certificate of the kind {str(kind)[:40]!r}, and {' or '.join(kinds)} is wanted."
        )
    with malformed(file, "is not a complete certificate"):
        cls = named(CERTIFICATES[kind])
        later = {name for name, since in _SINCE.items() if version < since} & set(cls.stored())
        return cls.of({**dict.fromkeys(later), **record}, file.parent)


# What a field of a stranger's file may be. None of them takes True for 1.


def is_number(part: Any) -> bool:
    return type(part) in (int, float)


def is_size(part: Any) -> bool:
    return is_number(part) and part >= 0


def is_count(part: Any) -> bool:
    return type(part) is int and part >= 0


def is_text(part: Any) -> bool:
    return isinstance(part, str)


def is_object(part: Any) -> bool:
    return isinstance(part, dict)


def is_list_of(right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda part: isinstance(part, list) and all(right(x) for x in part)


def is_table_of(right: Callable[[Any], bool], keys: Collection[str] | None = None) -> Callable[[Any], bool]:
    """An object whose values are right; with ``keys``, of these and no others that somebody might take for ours."""
    return lambda part: (
        isinstance(part, dict) and all(right(x) for x in part.values()) and (keys is None or part.keys() == set(keys))
    )


def is_record(**fields: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """An object of exactly these fields, each of its own type."""
    return lambda part: (
        isinstance(part, dict)
        and part.keys() == fields.keys()
        and all(right(part[name]) for name, right in fields.items())
    )


RIGHT: dict[str, Callable[[Any], bool]] = {  # of every kind
    "bound": is_number,
    "assumptions": is_list_of(is_text),
    "weights_sha256": is_text,
    "package_version": is_text,
}
