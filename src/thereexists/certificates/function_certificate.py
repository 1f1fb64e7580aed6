"""The certificates of a function: ``d_p(f, g) ≤ bound``, an integral over the domain, proved or with a confidence.

It is no bound at single inputs: those on ramps can be far off. ``meaning`` says so wherever the bound is printed.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self, final

import numpy as np

from thereexists.certificates.block_sums import OLDER_SUMS, SUMS, Blocks, load_blocks, packed
from thereexists.certificates.certificate import (
    BLOCKS,
    RIGHT,
    Certificate,
    is_count,
    is_list_of,
    is_number,
    is_object,
    is_record,
    is_size,
    is_table_of,
    is_text,
)
from thereexists.certificates.ramps import d_p_in_words, off_core_share, uniform_in_words
from thereexists.certificates.units import normalised
from thereexists.core.atomic_files import filled_beside, write_beside
from thereexists.core.dtypes import SIGNIFICAND
from thereexists.core.errors import InvalidInput, NotProved
from thereexists.core.plain_text import d_of, in_full
from thereexists.core.rounded_figures import in_percent, rounded_up
from thereexists.core.storage import JOB
from thereexists.functions.described import differing
from thereexists.functions.domains.stored import in_words, measured_in_words
from thereexists.functions.grid import Grid
from thereexists.parallel.job import remove_job

PROVED, MEASURED = "proved", "measured"  # of the run in floating point


def _nowhere() -> Blocks:
    raise NotProved("This certificate was put together without the sums over cubes: make it with te.certify.")


@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class FunctionCertificate(Certificate):
    """``d_p(f, g) ≤ bound``, for f as ``target`` states it and g the network with these weights.

    ``float_error`` is the largest difference between the float64 run and the network in exact arithmetic: *proved* on
    the cores of so many cubes, for every machine that keeps to IEEE 754 (``float_proof.py``), or *measured* on some.
    ``second_opinion``: what Arb and exact rationals say of the enclosures of some cubes. ``epsilon`` is the d_p that
    was asked for when the network was built, None if none was: ``verify`` demands that the bound keeps it.
    """

    p: float
    cells: int
    output_bound: list[float]
    target_bound: float
    seed: int
    target: dict[str, Any]
    grid: dict[str, Any]
    float_error: dict[str, Any]
    second_opinion: dict[str, Any]
    epsilon: float | None

    def __post_init__(self) -> None:
        """No certificate without a finite bound: "proved" and infinity never stand together."""
        if not (is_number(self.bound) and math.isfinite(self.bound)):
            loose = [name.replace("_", " ") for name, size in self.shares().items() if not math.isfinite(size)]
            where = f" (the part {', '.join(loose)} has no finite bound)" if loose else ""
            raise NotProved(f"Not proved: no finite bound on d_p follows from these weights and this target{where}.")

    def claim(self) -> str:
        return f"{d_of(self.p)} ≤ {rounded_up(float(self.bound), 4)}"

    def statement(self) -> str:
        return f"{d_of(self.p)}(f, network) ≤ {rounded_up(float(self.bound), 6)}, {self.holds_for()}"

    def asked_for(self) -> list[float]:
        return [] if self.epsilon is None else [self.epsilon]

    def keeps_epsilon(self) -> bool:
        return self.epsilon is None or self.bound <= self.epsilon

    def beside(self) -> dict[str, str]:
        said, size = {}, self.normalised()
        if size is not None and size != self.bound:
            said["normalised"] = f"{rounded_up(size, 4)}: {d_of(self.p)} over the p-th root of the domain's volume"
        if self.epsilon is not None:
            said["asked for"] = f"{in_full(self.epsilon)}, {'kept' if self.keeps_epsilon() else 'not reached'}"
        return said

    def meaning(self) -> list[str]:
        measured = measured_in_words(self.target["domain"]) if "domain" in self.target else []
        return [d_p_in_words(float(self.p), self._ramps(), self._everywhere()), *measured]

    def _everywhere(self) -> bool:
        """Whether the integral is one over all of R^{d×n}: f is 0 outside its box, and so, proved, is the network."""
        return self.target.get("compact_support") is True

    def _ramps(self) -> float | None:
        """At most this share of the domain lies off the cores; None if the target states no domain."""
        if "domain" in self.target:
            return None
        try:
            widths = np.array(self.target["high"], dtype=float) - np.array(self.target["low"], dtype=float)
            return off_core_share(widths, Grid.from_dict(self.grid))
        except (KeyError, TypeError, ValueError, InvalidInput):  # a stranger's: only verify looks at it closely
            return None

    def normalised(self) -> float | None:
        """The bound over volume^{1/p}, which does not grow with the domain; None if the target states no domain."""
        if "domain" in self.target:  # whose volume is not stated
            return None
        try:
            low, high, n = (self.target[name] for name in ("low", "high", "n"))
            return normalised(float(self.bound), low, high, n, self.p)
        except (KeyError, TypeError, ValueError):  # a stranger's target: only verify looks at it closely
            return None

    @abstractmethod
    def holds_for(self) -> str:
        """The inputs, and the sense, that the bound is about."""

    def means(self, meant: dict[str, Any]) -> bool:
        return not differing(self.target, meant)

    def subject(self) -> dict[str, str]:
        stated = self.target
        sequences = {"sequences": f"n = {stated['n']} tokens, d = {stated['d']}"} if {"n", "d"} <= stated.keys() else {}
        domain = {"domain": in_words(stated["domain"])} if "domain" in stated else {}
        return {"function": str(stated.get("name", "a function")), **sequences, **domain}

    def tried(self) -> dict[str, str]:
        opinion, drift = self.second_opinion, self.float_error
        return {
            "second opinion": f"{opinion['cubes']:,} cubes by ball and rational arithmetic, "
            f"{len(opinion['disagreeing'])} disagree",
            "float run": f"within {rounded_up(drift['max'], 4)} of exact arithmetic ({drift['kind']}, "
            f"{drift['cubes']:,} cubes)",
        }

    def float_in_words(self) -> str:
        """How far the float64 run may be from the network over the reals, and how that is known."""
        drift = self.float_error
        within = f"float64 run within {rounded_up(drift['max'], 2)} of the real one"
        if drift["kind"] != PROVED:
            return f"{within} ({drift['kind']})"
        where = "all cores" if drift["cubes"] == self.cells else f"{drift['cubes']:,} of {self.cells:,} cores"
        return f"{within} on {where} (proved, in any order of sums)"

    @abstractmethod
    def asked_splits(self) -> int:
        """Into how many parts a side of a cube is cut for questions about f; 0: f is asked about single points."""

    @abstractmethod
    def cubes_to_sum(self, cells: int) -> int:
        """Over how many cubes of a grid of ``cells`` the bound is a sum."""

    @classmethod
    def right(cls) -> dict[str, Callable[[Any], bool]]:
        return RIGHT | {
            "p": is_number,
            "cells": is_count,
            "output_bound": is_list_of(is_number),
            "target_bound": is_number,
            "seed": is_count,
            "target": is_object,
            "grid": is_object,
            "float_error": is_record(kind=is_text, dtype=is_text, cubes=is_count, max=is_number),
            "second_opinion": is_record(cubes=is_count, seed=is_count, disagreeing=is_list_of(is_count)),
            "epsilon": lambda part: part is None or is_number(part),
        }


@final
@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class RigorousCertificate(FunctionCertificate):
    """Proved, for the network in exact real arithmetic.

    ``parts``: grid (f against the network's constant on cubes with distinct columns), equal_columns (the other cubes,
    without positional encoding), ramps (everything off the cores), network (undecided cubes, and the radii of the
    enclosures); bound = (grid^p + equal_columns^p + ramps^p)^{1/p} + network. ``uniform`` bounds the error at single
    inputs: no entry is off by more than ``most``, for all inputs but a ``share`` of the domain (``rigorous.Uniform``);
    None in a file of an older version. ``float_run`` is about the run itself, on any machine: *proved* or *measured*,
    and, dtype by dtype, how far it is from the network on the ``cores``, how large its ``output`` is anywhere and the
    ``bound`` of the whole, d_p(f, run); the last two are None where nothing is proved of the run on ramps. ``sums``
    gives the sums over cubes, block by block, that all of it follows from: those just computed, or those stored beside
    the file.
    """

    kind: ClassVar[str] = "rigorous"
    PARTS: ClassVar[tuple[str, ...]] = ("grid", "equal_columns", "ramps", "network")

    parts: dict[str, float]
    uniform: dict[str, float] | None
    float_run: dict[str, Any] | None
    undecided: int
    splits: int
    blocks_sha256: str
    sums: Callable[[], Blocks] = dataclasses.field(default=_nowhere, compare=False)

    @property
    def sums_per_block(self) -> int:
        """An older certificate says nothing of single inputs, and has fewer."""
        return OLDER_SUMS if self.uniform is None else SUMS

    def label(self) -> str:
        return "proved"

    def holds_for(self) -> str:
        return "an integral over all of R^{d×n}" if self._everywhere() else "an integral over the domain"

    def meaning(self) -> list[str]:
        said, found = super().meaning(), self.uniform
        if found is None:
            return said
        said.append(uniform_in_words(found["most"], found["share"]))
        if found["most_distinct"] < 0.99 * found["most"] and found["share_distinct"] < 1:
            off = uniform_in_words(found["most_distinct"], found["share_distinct"])
            said.append(f"{off}, those with two tokens in one cell among them")
        return said + ([] if self.float_run is None else floats_in_words(self.float_run, self.p, self._everywhere()))

    def shares(self) -> dict[str, float]:
        return self.parts

    def dtype_bounds(self) -> dict[str, float | None]:
        return {} if self.float_run is None else {name: run["bound"] for name, run in self.float_run["dtypes"].items()}

    def added_up(self) -> str:
        return "" if self.p == 1 else f"The first three add up as p-th powers, p = {in_full(float(self.p))}."

    def detail(self) -> str:
        return f"{self.cells:,} cubes, {self.undecided:,} undecided"

    def asked_splits(self) -> int:
        return self.splits

    def cubes_to_sum(self, cells: int) -> int:
        return cells

    @classmethod
    def right(cls) -> dict[str, Callable[[Any], bool]]:
        own = {"undecided": is_count, "splits": is_count, "blocks_sha256": is_text}
        four = is_record(most=is_size, share=is_size, most_distinct=is_size, share_distinct=is_size)
        own["uniform"] = lambda part: part is None or four(part)
        own["float_run"] = lambda part: part is None or _is_float_run(part)
        return super().right() | own | {"parts": is_table_of(is_number, cls.PARTS)}

    @classmethod
    def of(cls, record: dict[str, Any], folder: Path) -> Self:
        sums = functools.partial(load_blocks, folder, record.get("blocks_sha256", ""))
        return dataclasses.replace(super().of(record, folder), sums=sums)

    def put(self, file: Path, text: str) -> None:
        """Both files are written out before the first of two renames: see ``block_sums.py`` for a kill between them."""
        with filled_beside(file.parent / BLOCKS, packed(self.sums())):
            write_beside(file, text)
        remove_job(file.parent / JOB)  # it is kept until what it was for is saved


def _is_float_run(part: Any) -> bool:
    def known(right: Callable[[Any], bool]) -> Callable[[Any], bool]:
        return lambda x: x is None or right(x)

    each = is_record(cores=is_size, output=known(is_list_of(is_size)), bound=known(is_size))
    if not is_record(status=is_text, dtypes=is_table_of(each))(part):
        return False
    return (
        part["status"] in (PROVED, MEASURED) and part["dtypes"].keys() <= SIGNIFICAND.keys()
    )  # words of ours, printed


def floats_in_words(found: dict[str, Any], p: float, everywhere: bool) -> list[str]:
    """What is proved of the run itself, dtype by dtype, and what is not."""
    if not found["dtypes"]:
        return ["the run in floating point is measured only: the bound is about exact arithmetic"]
    where = "over the box (outside it the run is tried only)" if everywhere else "ramps included"
    said = []
    for name, run in found["dtypes"].items():
        if run["bound"] is None:
            cores = rounded_up(float(run["cores"]), 2)
            told = f"within {cores} of the network on all cores, proved; on ramps it is tried only"
        else:
            told = f"{d_of(p)}(f, run) ≤ {rounded_up(float(run['bound']), 6)}, {where}, proved for any order of sums"
        said.append(f"the {name} run: {told}")
    return said


@final
@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class StatisticalCertificate(FunctionCertificate):
    """With probability ``confidence`` over its own random points, ``samples`` of them.

    It is about the float64 run, cut to ``output_bound``.
    """

    kind: ClassVar[str] = "statistical"

    confidence: float
    samples: int

    def claim(self) -> str:
        return f"{super().claim()} at confidence {self.confidence}"

    def label(self) -> str:
        return f"at {in_percent(self.confidence)} confidence"

    def holds_for(self) -> str:
        return f"with confidence {self.confidence}, over the certificate's own random points"

    def shares(self) -> dict[str, float]:
        return {"sample": self.bound}

    def detail(self) -> str:
        return f"{self.samples:,} random points, seed {self.seed}; a grid of {self.cells:,} cubes"

    def asked_splits(self) -> int:
        return 0

    def cubes_to_sum(self, cells: int) -> int:
        return 0

    @classmethod
    def right(cls) -> dict[str, Callable[[Any], bool]]:
        return super().right() | {"confidence": is_number, "samples": is_count}
