"""Re-check the numbers of a function's certificate: the bound and its parts, second opinions, the float64 run."""

from __future__ import annotations

import dataclasses
import functools
import math
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from thereexists.arithmetic.balls import Array
from thereexists.certificates.certify_function import assumptions, float_error, run
from thereexists.certificates.check import SAMPLE, Check, How, as_claimed
from thereexists.certificates.cubes import Problem, Sums
from thereexists.certificates.float_bound import float_runs
from thereexists.certificates.float_edges import POINTS, carried, strays
from thereexists.certificates.function_certificate import (
    PROVED,
    FunctionCertificate,
    RigorousCertificate,
    StatisticalCertificate,
    floats_in_words,
)
from thereexists.certificates.output_bound import output_bound
from thereexists.certificates.ramps import uniform_in_words
from thereexists.certificates.rigorous import Bound, Uniform, rigorous_bound, sums_over_cubes, the_problem
from thereexists.certificates.second_opinion import second_opinion
from thereexists.certificates.statistical import established, statistical_assumptions, statistical_bound
from thereexists.certificates.variation import splits_within
from thereexists.core.errors import NotProved, Obstructed
from thereexists.core.plain_text import d_of
from thereexists.core.rounded_figures import rounded_down, rounded_up
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target
from thereexists.model import Transformer

# Recomputing a bound takes the same float operations; another NumPy may sum in another order. A bound and its parts may
# be stated lower by this much, and still hold: each was rounded up by (1 + 2^-20)^{1/p} ≥ 1 + 1.4e-8 (``units.py``).
AGREEMENT = 1e-9
FLOAT_SHARE = 2.0**-20  # of the largest output: rounding that one cube may have more than another
MOST_SUBCUBES = 1 << 24
D_P = "an integral over the domain"

C = TypeVar("C", bound=FunctionCertificate, covariant=True)


@dataclass(frozen=True)
class Case(Generic[C]):
    """All that the checks look at."""

    record: dict[str, Any]
    network: Transformer
    grid: Grid
    target: Target
    certificate: C
    folder: Path

    @functools.cached_property
    def output_bound(self) -> list[float]:
        """The largest |g| in each feature, from the weights."""
        return output_bound(self.network)


def bound_checks(case: Case[FunctionCertificate], opinions: int | None, how: How) -> Iterator[Check]:
    """All checks of numbers, the quick ones first."""
    yield _check_output_bound(case)
    yield from CHECKS[case.certificate.kind](case, how)
    yield _check_second_opinion(case, opinions)
    yield _check_float_run(case)


def _check_output_bound(case: Case[FunctionCertificate]) -> Check:
    claimed, actual = case.certificate.output_bound, case.output_bound
    right = len(claimed) == len(actual) and all(
        a <= c and math.isfinite(c) and _agrees(c, a, a) for c, a in zip(claimed, actual, strict=False)
    )
    return Check("output bound", right, as_claimed(claimed, actual))


def _check_rigorous(case: Case[RigorousCertificate], how: How) -> Iterator[Check]:
    certificate, p = case.certificate, case.certificate.p
    if not case.target.provable:
        yield Check(
            "kind", False, "the target states no modulus and no interval extension: nothing rigorous can follow"
        )
        return
    listed = set(assumptions(case.target)) == set(certificate.assumptions)  # no word more: it would be taken for ours
    yield Check("assumptions", listed, "; ".join(certificate.assumptions))
    if not 1 <= certificate.splits <= splits_within(case.grid, MOST_SUBCUBES):
        yield Check("splits", False, f"{certificate.splits} sub-cubes per side are more than this check can afford")
        return
    problem = the_problem(case.network, case.target, case.grid, p, certificate.splits)

    def again(chosen: tuple[int, ...] | None) -> list[Sums]:
        return sums_over_cubes(
            problem, case.network, case.target, how.workers, case.folder, how.job, how.progress, chosen
        )

    sums, check = _recomputed(case, problem, how, again)
    yield check
    if sums is None:
        return
    found = rigorous_bound(problem, case.target, sums)
    undecided = f"{found.undecided} of {case.grid.cells} cubes undecided"
    yield Check("enclosures", found.undecided == certificate.undecided, undecided)
    said = certificate.parts
    wrong = [
        k
        for k, v in found.parts.items()
        if not (_is_size(said.get(k), v) and _agrees(said.get(k), v, found.total) and said[k] >= v * (1 - AGREEMENT))
    ]
    detail = ", ".join(f"{k} claimed {certificate.parts.get(k)}, found {found.parts[k]}" for k in wrong)
    yield Check("parts", not wrong, detail or "every part is as claimed")
    yield Check(
        "target bound",
        _reaches(certificate.target_bound, found.target_bound),
        f"claimed |f| ≤ {rounded_up(certificate.target_bound, 9)}, found {rounded_up(found.target_bound, 9)}",
    )
    holds = 0 <= found.total <= certificate.bound * (1 + AGREEMENT) and _agrees(
        certificate.bound, found.total, found.total
    )
    yield Check(
        "bound",
        holds,
        f"claimed {d_of(p)} ≤ {rounded_up(certificate.bound, 6)}, found {rounded_up(found.total, 6)}: {D_P}",
    )
    yield _check_uniform(certificate.uniform, found.uniform)
    yield _check_float_proof(certificate.float_error, found, case.grid.cells)
    if certificate.float_run is not None:  # a certificate of an older version says nothing
        runs = float_runs(case.network, case.target, problem, found)
        yield _check_float_bound(certificate.float_run, runs, floats_in_words(runs, p, case.target.compact_support))


def _check_uniform(claimed: dict[str, float] | None, found: Uniform | None) -> Check:
    """What is said of single inputs. A certificate of an older version says nothing, which is no fault."""
    if claimed is None or found is None:
        return Check("single inputs", claimed is None, "nothing is claimed about them: d_p is an integral")
    wrong = [name for name, size in vars(found).items() if not _reaches(claimed.get(name), size)]
    if wrong:
        detail = ", ".join(f"{name} claimed {claimed.get(name)}, found {vars(found)[name]}" for name in wrong)
        return Check("single inputs", False, detail)
    return Check("single inputs", True, uniform_in_words(found.most, found.share))


def _check_float_proof(claimed: dict[str, Any], found: Bound, cells: int) -> Check:
    """What is said to be proved of the float64 run. What is only measured is measured again, in another check."""
    most, cubes = found.float_run
    if claimed["kind"] != PROVED:
        return Check("float proof", True, "nothing is claimed to be proved about the float64 run")
    right = claimed["cubes"] == cubes == cells and _agrees(claimed["max"], most, found.target_bound)
    right = right and _is_size(claimed["max"], most) and claimed["max"] >= most
    detail = f"claimed within {claimed['max']} on {claimed['cubes']:,} cores, found {most} on {cubes:,}"
    return Check("float proof", right, f"{detail}, on any machine")


def _check_float_bound(claimed: dict[str, Any], found: dict[str, Any], words: list[str]) -> Check:
    """What is said of the run as a whole, dtype by dtype: the same dtypes, and every number as found."""
    wrong = [] if claimed["status"] == found["status"] else [f"claimed {claimed['status']}, found {found['status']}"]
    if claimed["dtypes"].keys() != found["dtypes"].keys():
        wrong.append(f"claimed in {sorted(claimed['dtypes'])}, found in {sorted(found['dtypes'])}")
    for name in claimed["dtypes"].keys() & found["dtypes"].keys():
        said, known = claimed["dtypes"][name], found["dtypes"][name]
        wrong += [
            f"{name} {part} claimed {said[part]}, found {known[part]}"
            for part in known
            if not _same_numbers(said[part], known[part])
        ]
    return Check("float bound", not wrong, "; ".join(wrong or words))


def _same_numbers(claimed: Any, found: Any) -> bool:
    """Numbers, lists of them, or None."""
    if found is None or claimed is None:
        return claimed is found
    if isinstance(found, list):
        return isinstance(claimed, list) and len(claimed) == len(found) and all(map(_same_numbers, claimed, found))
    return _reaches(claimed, found)


def _recomputed(
    case: Case[RigorousCertificate],
    problem: Problem,
    how: How,
    again: Callable[[tuple[int, ...] | None], list[Sums]],
) -> tuple[list[Sums] | None, Check]:
    """The sums of all blocks, and what a comparison with the stored ones found.

    In full, the sums are ours. With a sample, they are the stored ones, of which the drawn blocks were computed again.
    """
    total = -(-case.grid.cells // problem.block)
    drawn = total if how.sample is None else min(total, math.ceil(how.sample * total))
    claimed, width = case.certificate.sums(), case.certificate.sums_per_block
    if len(claimed) != total:  # found here, before the work
        return None, Check("blocks", False, f"{len(claimed)} blocks are stored where the grid has {total}")
    if drawn == total:
        sums = again(None)
        wrong = _wrong_blocks(dict(enumerate(sums)), claimed, total, width)
        return sums, Check("blocks", wrong is None, wrong or f"the stored sums of {total} blocks are right")
    generator = secrets.SystemRandom()  # nobody can know beforehand which blocks will be looked at
    chosen = tuple(sorted(generator.sample(range(total), drawn)))
    wrong = _wrong_blocks(dict(zip(chosen, again(chosen), strict=True)), claimed, total, width)
    if wrong is not None:
        return None, Check("blocks", False, wrong)
    missed = min(1.0, 3.0 / drawn)  # (1 − q)^k ≤ e^-3 < 5 % from q = 3/k on
    detail = (
        f"{drawn} of {total} blocks of {problem.block} cubes, drawn at random, were enclosed again and are right; if "
        f"{rounded_up(100 * missed, 3)}% of the blocks were wrong, that would happen less than once in twenty times"
    )
    return claimed, Check(SAMPLE, True, detail)


def _wrong_blocks(found: dict[int, Sums], claimed: list[Sums], total: int, width: int) -> str | None:
    """What is wrong with the stored sums, given some that were computed again; ``width`` of them a block are stored."""
    if len(claimed) != total:
        return f"{len(claimed)} blocks are stored where the grid has {total}"
    if any(len(sums) != width for sums in claimed):
        return f"a block does not have {width} sums, as the blocks of a certificate of its version have"
    if not all(math.isfinite(x) and x >= 0 for sums in claimed for x in sums):
        return "a stored sum is negative or not finite"
    wrong = [
        number
        for number, sums in found.items()
        if not all(_agrees(c, f, s) for c, f, s in zip(claimed[number], sums, _scales(sums), strict=width == len(sums)))
    ]
    return f"the stored sums of the blocks {wrong[:8]} are not what their cubes give" if wrong else None


def _check_statistical(case: Case[StatisticalCertificate], how: How) -> Iterator[Check]:
    certificate = case.certificate
    if how.sample is not None or how.job is not None:
        raise Obstructed(
            "A statistical certificate is checked in one go, on points drawn now: leave --sample and --job out."
        )
    if case.target.provable:
        yield Check("kind", False, "this target allows a rigorous certificate; a statistical one hides that")
    stated = case.target.bound
    honest = stated is None or certificate.target_bound >= stated
    yield Check("target bound", honest, f"certified with |f| ≤ {certificate.target_bound}, the target states {stated}")
    measured = certificate.float_error["kind"] != PROVED
    yield Check(
        "float proof", measured, "a statistical certificate is about the run itself, but proves nothing about it"
    )
    target = dataclasses.replace(case.target, bound=certificate.target_bound)
    listed = set(statistical_assumptions(target)) == set(certificate.assumptions)
    yield Check("assumptions", listed, "; ".join(certificate.assumptions))
    p, confidence, samples = certificate.p, certificate.confidence, certificate.samples

    def g(X: Array) -> Array:
        return run(case.network, X)

    try:
        found, B = statistical_bound(case.network, target, case.grid, g, p, confidence, samples, certificate.seed)
        if not _agrees(certificate.bound, found, found):
            yield Check(
                "bound",
                False,
                f"claimed {rounded_up(certificate.bound, 6)}, but its own points give {rounded_up(found, 6)}",
            )
            return
        fresh = established(certificate.bound, target, case.grid, g, p, confidence, samples, B)
    except NotProved as error:
        yield Check("bound", False, str(error))
        return
    says = {True: "establish", False: "refute", None: "do not establish"}[fresh.holds]
    detail = (
        f"{fresh.points:,} points drawn now {says} {d_of(p)} ≤ {rounded_up(certificate.bound, 6)}: they put it between "
        f"{rounded_down(fresh.low, 6)} and {rounded_up(fresh.high, 6)}"
    )
    yield Check("bound", fresh.holds is True, detail)


CHECKS: dict[str, Callable[[Case[Any], How], Iterator[Check]]] = {
    RigorousCertificate.kind: _check_rigorous,
    StatisticalCertificate.kind: _check_statistical,
}


def _check_second_opinion(case: Case[FunctionCertificate], opinions: int | None) -> Check:
    opinion = second_opinion(case.network, case.grid, opinions, seed=None)
    detail = f"Arb and exact rationals on {opinion.cubes} cubes (seed {opinion.seed})"
    if opinion.disagreeing:
        detail += f" disagree on the cubes {list(opinion.disagreeing)}"
    return Check("second opinion", not opinion.disagreeing, detail)


def _check_float_run(case: Case[FunctionCertificate]) -> Check:
    """The float64 run against the enclosures, on cubes that nobody could know when the weights were written.

    The certificate states what was measured on its own cubes. On others the rounding differs: constructions keep that
    of values below 2^-20 of them, and that of entries is carried on by the ids (``float_edges.carried``). So much is
    allowed beside what is stated; of the second nothing, where the run is said to be proved. The figure to believe is
    the fresh one. Off the cores there is no enclosure; there the run must keep to the output bound, on points around
    the edges.
    """
    claimed, network = case.certificate.float_error, case.network
    own, fresh = (float_error(network, case.grid, s) for s in (case.certificate.seed, secrets.randbits(64)))
    stated = claimed.get("max", -1.0)
    right = claimed.get("dtype") == "float64" and 0 <= stated < math.inf
    B = case.output_bound
    room = FLOAT_SHARE * max(B)
    if claimed.get("kind") != PROVED:  # which is another check's business
        right = right and claimed.get("kind") == "measured" and claimed.get("cubes") == own["cubes"]
        right = right and own["max"] <= stated * (1 + AGREEMENT) + 1e-300
        right = right and stated <= max(own["max"] * (1 + AGREEMENT), room)  # not just any larger one
        room = max(room, carried(case.grid, B))
    right = right and fresh["max"] <= max(stated, room)
    share = min(1.0, case.target.volume ** (1 / case.certificate.p))  # a distance over a small domain is small
    right = right and max(own["max"], fresh["max"]) * share <= case.certificate.bound
    stray = strays(lambda X: run(network, X), case.target, case.grid, B, secrets.randbits(64))
    detail = f"measured {fresh['max']:.3g} on {fresh['cubes']} cubes drawn now; claimed {stated} on its own; "
    kept = f"within the output bound, but for rounding, on {POINTS} points near edges"
    return Check("float run", right and stray is None, detail + (stray or kept))


def _agrees(claimed: Any, found: float, scale: float) -> bool:
    """Up to the order of summation: relative to what was found, or to 1e-12 of what it is a part of."""
    return isinstance(claimed, int | float) and abs(claimed - found) <= AGREEMENT * max(abs(found), 1e-12 * scale)


def _reaches(claimed: Any, found: float) -> bool:
    """Of a largest value, which no order of sums changes. A certificate leaves room for a machine's last bits."""
    return _agrees(claimed, found, found) and claimed >= found


def _is_size(claimed: Any, found: float) -> bool:
    """No error is negative, and 0 is a claim of its own, "exact": only what was found to be 0 agrees with it."""
    return isinstance(claimed, int | float) and (claimed > 0 or claimed == found == 0)


def _scales(sums: Sums) -> Sums:
    """What the sums of a block are parts of: integrals of both, counted cubes of themselves, the others of |f|."""
    distinct, equal, volume, count, _, largest, *more = sums
    return [distinct + equal, distinct + equal, volume, count, largest, largest, largest, largest, largest, more[-1]]
