"""Re-check a saved witness of a function and its certificate from the files alone, without trusting their author."""

from __future__ import annotations

import dataclasses
import itertools
import math
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists.arithmetic.balls import Array
from thereexists.certificates.asked import check_asked
from thereexists.certificates.certificate import Certificate, load_blocks, load_certificate
from thereexists.certificates.certify_function import TRIED_BOXES, assumptions, float_error, run
from thereexists.certificates.check import SAMPLE, Asked, Check, How
from thereexists.certificates.cubes import Problem, Sums, weights_sha256
from thereexists.certificates.enclose import WEIGHTS
from thereexists.certificates.float_edges import POINTS, strays
from thereexists.certificates.output_bound import output_bound
from thereexists.certificates.rigorous import rigorous_bound, sums_over_cubes, the_problem
from thereexists.certificates.safe_dtypes import verdicts
from thereexists.certificates.second_opinion import second_opinion
from thereexists.certificates.statistical import established, statistical_assumptions, statistical_bound
from thereexists.certificates.variation import MOST_SPLITS, some_boxes, splits_within
from thereexists.certificates.verify_tokens import check_dtypes
from thereexists.core import storage
from thereexists.core.errors import InvalidInput, InvalidTarget, NotProved, ThereExistsError
from thereexists.core.json_files import malformed
from thereexists.functions.claims import refute
from thereexists.functions.grid import Grid
from thereexists.functions.target import Target
from thereexists.functions.targets import BUILTINS, builtin, restore
from thereexists.model import EmbeddedTransformer, Transformer
from thereexists.model.sizes import check_plan, check_sizes

# Recomputing a bound takes the same float operations; another NumPy may sum in another order.
AGREEMENT = 1e-9
FLOAT_SHARE = 2.0**-20  # of the largest output: rounding that one cube may have more than another
FILES = Check("files", True, "record, weights and certificate are whole and match their digests")
_PAIRS = 20_000
_MOST_SUBCUBES = 1 << 24
_MOST_CUBES = 1 << 40
_UNSTORED_CUBES = 1 << 24  # certificates of the first versions came without their sums


@dataclass(frozen=True)
class _Case:
    """All that the checks look at."""

    record: dict[str, Any]
    network: Transformer
    grid: Grid
    target: Target
    certificate: Certificate
    folder: Path


def faithful_checks(asked: Asked) -> Iterator[Check]:
    """A network as the proof builds it, sparse or not."""
    case = _read(asked, Transformer)
    yield FILES
    yield _check_weights(case)
    yield _check_deep_class(case)
    yield Check("dtypes", case.network.needs == torch.float64, "float64 only")
    yield from _common_checks(case, asked)


def compact_checks(asked: Asked) -> Iterator[Check]:
    """Four standard blocks over scratch rows."""
    case = _read(asked, EmbeddedTransformer)
    yield FILES
    yield _check_weights(case)
    yield _check_compact_class(case)
    yield _check_compact_dtypes(case)
    yield from _common_checks(case, asked)


def _common_checks(case: _Case, asked: Asked) -> Iterator[Check]:
    yield _check_layers(case)
    yield _check_pattern(case)
    yield _check_grid(case)
    yield _check_target(case)
    yield _check_symmetry(case)
    yield _check_one_by_one(case)
    yield _check_claims_about_f(case)
    yield _check_cells(case)
    yield _check_figures(case)
    yield _check_output_bound(case)
    yield from _check_bound(case, asked.how)
    yield _check_second_opinion(case, asked.opinions)
    yield _check_float_run(case)


def _read(asked: Asked, network_class: type[Transformer]) -> _Case:
    folder, record = asked.folder, asked.record
    storage.check_dtype(record, asked.weights)
    certificate = load_certificate(folder)
    with malformed(folder, "is not a complete witness"):
        network = network_class.from_structure(record["structure"], asked.weights)
        if type(network) is not network_class:
            raise InvalidInput("the network is not of the class that this construction gives")
        check_plan(record["plan"], record["construction"])
        grid = Grid.from_dict(record["grid"])
        stored = restore(record["target"])
        check_sizes(folder, network, grid, stored)
    if certificate.kind == "rigorous" and grid.cells > _MOST_CUBES:
        raise storage.BadWitnessFile(f"{folder} claims a sum over {grid.cells:,} cubes: more than anybody can compute.")
    job = asked.how.job
    if job is not None and job.resolve().is_relative_to(folder.resolve()):
        raise InvalidInput("The folder of a verification must not lie in the witness it verifies.")
    return _Case(record, network, grid, asked.target or stored, certificate, folder)


def _check_weights(case: _Case) -> Check:
    actual = weights_sha256(case.network)
    same = actual == case.certificate.weights_sha256
    return Check("weights", same, f"SHA-256 {actual[:16]}… {'is' if same else 'is not'} the certified one")


def _check_deep_class(case: _Case) -> Check:
    claimed, actual = case.record.get("class"), case.network.shape() | {"positional": case.network.E is not None}
    right = claimed == actual and (actual["h"], actual["m"], actual["r"]) == (2, 1, 4)
    right = right and case.network.rho in WEIGHTS and case.record.get("dtype") == "float64"
    return Check("class", right, f"claimed {claimed}, found {actual}, rho = {case.network.rho}, wanted T^{{2,1,4}}")


def _check_compact_class(case: _Case) -> Check:
    """Four standard blocks, or no more than a maximal width asks for."""
    plan, network = case.record["plan"], case.network
    claimed, actual = case.record.get("class"), network.shape() | {"positional": network.E is not None}
    right = claimed == actual
    right = right and network.depth <= _most_blocks(network, (plan.get("sizes") or {}).get("max_width"))
    right = right and plan.get("parameters") == network.parameter_count and case.record.get("dtype") == "float64"
    detail = f"claimed {claimed}, found {actual}, {network.depth} blocks of softmax attention and ReLU"
    return Check("class", right, detail)


def _most_blocks(network: Transformer, most: Any) -> int:
    """Four parts of one block each; with a maximal width, as many blocks as the units of each part need."""
    if most is None:
        return 4
    if type(most) is not int or most < 1:
        return 0
    units: dict[str, int] = {}
    for name, stage in network.stages.items():
        width = 0 if stage.feed_forward is None else stage.feed_forward.W_1.shape[1]
        if width > most:
            return 0
        part = name.split("_")[0]
        units[part] = units.get(part, 0) + stage.depth * width
    return 0 if len(units) > 4 else sum(max(1, -(-width // most)) for width in units.values())


def _check_compact_dtypes(case: _Case) -> Check:
    """Every dtype called safe, in the structure and in the plan, is proved from the weights."""
    network = case.network
    assert isinstance(network, EmbeddedTransformer)
    stated = (case.record.get("plan", {}).get("sizes") or {}).get("safe")
    if stated != list(network.safe):
        return Check("dtypes", False, f"the plan says safe in {stated}, the structure in {list(network.safe)}")
    return check_dtypes("float64", network.safe, verdicts(network, case.grid))


def _check_layers(case: _Case) -> Check:
    claimed = case.record.get("plan", {}).get("layers")
    actual = {name: stage.depth for name, stage in case.network.stages.items()}
    actual["total"] = case.network.depth
    return Check("layers", claimed == actual, f"claimed {claimed}, found {actual}")


def _check_pattern(case: _Case) -> Check:
    """The stored masks against the claimed pattern, and Assumption 1 by its definition."""
    claimed = case.record.get("plan", {}).get("pattern")
    stacks = [stage.attention for stage in case.network.stages.values() if stage.attention is not None]
    if claimed is None:
        dense = all(stack.pattern is None for stack in stacks)
        return Check("pattern", dense, "dense attention" if dense else "a pattern is stored that nobody claims")
    if len(stacks) != 1 or stacks[0].pattern is None:
        return Check("pattern", False, "a pattern is claimed, and the attention layers have none")
    masks, path, s = stacks[0].pattern.numpy(), claimed.get("path"), claimed.get("depth")
    n, p = case.grid.n, len(masks)
    if type(s) is not int or stacks[0].W_Q.shape[0] != p * (n - 1) * case.grid.K + s:
        return Check("pattern", False, "the layers are not p(n−1)K + s")
    union = np.asarray(masks.any(axis=0))
    seen = np.eye(n, dtype=bool)
    for t in range(s if 0 < s <= n * p else 0):
        seen = masks[t % p] @ seen
    conditions = {
        "the cycle or the connections differ": claimed.get("cycle") == p
        and claimed.get("connections") == masks.sum(axis=(1, 2)).tolist()
        and masks.shape[1:] == (n, n),
        "a token does not attend to itself": bool(masks[:, np.arange(n), np.arange(n)].all()),
        "the path is not Hamiltonian": isinstance(path, list)
        and sorted(path) == list(range(n))
        and all(union[k, before] for before, k in itertools.pairwise(path)),
        f"after {s} steps a token has not seen all others": bool(seen.all()),
    }
    failed = [what for what, holds in conditions.items() if not holds]
    return Check("pattern", not failed, "; ".join(failed) or f"the pattern satisfies Assumption 1, s = {s}")


def _check_grid(case: _Case) -> Check:
    """The cubes must cover the domain: otherwise the sum over cubes leaves something out."""
    grid, target = case.grid, case.target
    stated = Grid.from_dict(case.certificate.grid)
    low, high = np.array(grid.origin), np.array(grid.origin) + grid.N * np.array(grid.step)
    last, first = high - np.array(grid.step), low + np.array(grid.step)
    covers = bool((low <= target.low).all() and (high >= target.high).all())
    covers = covers and bool((last < target.high).all() and (first > target.low).all())  # no cell wholly outside
    E, width = case.network.E, case.network.shape()["d"]
    covers = covers and (E is None or tuple(E.shape) == (grid.n, width))
    covers = covers and case.network.ends() == (grid.d, grid.d)
    sparse = case.record.get("plan", {}).get("pattern") is not None
    shaped = (grid.n, grid.d, grid.positional) == (target.n, target.d, sparse or not target.equivariant)
    ends = list(grid.high) == target.high.tolist()
    right = covers and shaped and ends and stated == grid and (case.network.E is not None) == grid.positional
    return Check("grid", right, f"{grid.N}^{grid.n * grid.d} cubes from {low.tolist()} to {high.tolist()}")


def _check_target(case: _Case) -> Check:
    claimed, of_record, actual = map(_told, (case.certificate.target, case.record["target"], case.target.describe()))
    differing = sorted(key for key, value in actual.items() if not claimed.get(key) == of_record.get(key) == value)
    differing += sorted((claimed.keys() | of_record.keys()) - actual.keys())
    if case.target.origin.get("kind") == "builtin":
        domain = (case.target.low.tolist(), case.target.high.tolist())
        known = builtin(case.target.name, case.target.n, case.target.d, domain)
        if case.target.lipschitz is None or case.target.lipschitz < (known.lipschitz or 0.0):
            differing.append(f"lipschitz (the built-in's is {known.lipschitz:g})")
    elif case.target.name in BUILTINS:
        differing.append("origin")
    detail = "the function, its shape and its domain are the certified ones"
    return Check("target", not differing, f"differs in {', '.join(differing)}" if differing else detail)


def _told(target: dict[str, Any]) -> dict[str, Any]:
    """What is said of a function, less where its file lay: a file is known by its hash, wherever it has moved."""
    origin = target.get("origin")
    if not isinstance(origin, dict) or origin.get("kind") != "file":
        return target
    return {**target, "origin": {key: value for key, value in origin.items() if key != "reference"}}


def _check_symmetry(case: _Case) -> Check:
    if not case.target.equivariant:
        return Check("symmetry", True, "no symmetry is claimed")
    try:
        case.target.check_equivariance(seed=secrets.randbits(64))
    except ThereExistsError as error:
        return Check("symmetry", False, str(error))
    return Check("symmetry", True, "permutation equivariant on 64 random permutations")


def _check_claims_about_f(case: _Case) -> Check:
    """The modulus and the interval extension are assumptions; a counterexample ends them."""
    f, boxes = case.target, None
    if f.interval is not None and 1 <= case.certificate.splits <= MOST_SPLITS:
        boxes = some_boxes(f, case.grid, case.certificate.splits, TRIED_BOXES, secrets.randbits(64))
    found = refute(f, _PAIRS, seed=secrets.randbits(64), boxes=boxes)
    return Check("modulus", found is None, found or f"not refuted by {_PAIRS:,} random pairs, nor by a search in boxes")


def _check_one_by_one(case: _Case) -> Check:
    """Whoever runs f on one sequence must get the value that was used for it in a batch."""
    try:
        case.target.check_one_by_one(seed=secrets.randbits(64))
        if 1 <= case.certificate.splits <= splits_within(case.grid, _MOST_SUBCUBES):
            check_asked(case.target, case.grid, case.certificate.splits, seed=secrets.randbits(64))
    except InvalidTarget as error:
        return Check("one by one", False, str(error))
    return Check("one by one", True, "f answers a sequence alone as in a batch, and the same when asked again")


def _check_cells(case: _Case) -> Check:
    claimed, actual = case.certificate.cells, case.grid.cells
    return Check("cells", claimed == actual, f"claimed {claimed}, found {actual}")


def _check_figures(case: _Case) -> Check:
    """What the other kind of certificate states must not be stated here; of a second opinion only its count is free.

    How many cubes the author asked about is the author's word: ``verify`` asks about cubes of its own.
    """
    c, opinion = case.certificate, case.certificate.second_opinion
    cubes = opinion["cubes"]
    conditions = {
        "second_opinion": type(cubes) is int
        and 0 <= cubes <= case.grid.cells
        and type(opinion["seed"]) is int
        and opinion["seed"] == c.seed
        and opinion["disagreeing"] == [],
    }
    if c.kind == "rigorous":
        conditions |= {"samples": c.samples == 0}
    else:
        conditions |= {
            "parts": all((size is None) == (name != "sample") for name, size in c.parts.items())
            and c.parts.get("sample") == c.bound,
            "undecided": c.undecided == 0,
            "splits": c.splits == 0,
            "blocks_sha256": c.blocks_sha256 is None,
        }
    wrong = [name for name, holds in conditions.items() if not holds]
    detail = f"a {c.kind} certificate of these cubes does not state such a {wrong[0]}" if wrong else "those of its kind"
    return Check("figures", not wrong, detail)


def _check_output_bound(case: _Case) -> Check:
    claimed, actual = case.certificate.output_bound, output_bound(case.network)
    right = len(claimed) == len(actual) and all(
        a <= c and math.isfinite(c) and _agrees(c, a, a) for c, a in zip(claimed, actual, strict=False)
    )
    return Check("output bound", right, f"claimed {claimed}, found {actual}")


def _check_bound(case: _Case, how: How) -> Iterator[Check]:
    certificate, p = case.certificate, case.certificate.p
    if certificate.kind == "statistical":
        yield from _check_statistical(case)
        return
    if certificate.kind != "rigorous" or certificate.confidence is not None:
        yield Check("kind", False, f"{certificate.kind!r} is not a kind of certificate that holds with certainty")
        return
    if case.target.variation(1.0) is None and case.target.interval is None:
        yield Check(
            "kind", False, "the target states no modulus and no interval extension: nothing rigorous can follow"
        )
        return
    listed = set(assumptions(case.target)) == set(certificate.assumptions)  # no word more: it would be taken for ours
    yield Check("assumptions", listed, "; ".join(certificate.assumptions))
    if not 1 <= certificate.splits <= splits_within(case.grid, _MOST_SUBCUBES):
        yield Check("splits", False, f"{certificate.splits} sub-cubes a side are more than this check can afford")
        return
    problem = the_problem(case.network, case.target, case.grid, p, certificate.splits)

    def again(chosen: tuple[int, ...] | None) -> list[Sums]:
        return sums_over_cubes(
            problem, case.network, case.target, how.workers, case.folder, how.job, how.progress, chosen
        )

    sums, check = _recomputed(case, problem, how, again)
    if check is not None:
        yield check
    if sums is None:
        return
    found = rigorous_bound(problem, case.target, sums)
    undecided = f"{found.undecided} of {case.grid.cells} cubes undecided"
    yield Check("enclosures", found.undecided == certificate.undecided, undecided)
    wrong = [k for k, v in found.parts.items() if not _agrees(certificate.parts.get(k), v, found.total)]
    detail = ", ".join(f"{k} claimed {certificate.parts.get(k)}, found {found.parts[k]}" for k in wrong)
    yield Check("parts", not wrong, detail or "every part is as claimed")
    yield Check(
        "target bound",
        _agrees(certificate.target_bound, found.target_bound, found.target_bound),
        f"claimed |f| ≤ {certificate.target_bound}, found {found.target_bound}",
    )
    holds = 0 <= found.total <= certificate.bound * (1 + AGREEMENT) and _agrees(
        certificate.bound, found.total, found.total
    )
    yield Check("bound", holds, f"claimed d_{p:g} ≤ {certificate.bound:.6g}, found {found.total:.6g}")


def _recomputed(
    case: _Case, problem: Problem, how: How, again: Callable[[tuple[int, ...] | None], list[Sums]]
) -> tuple[list[Sums] | None, Check | None]:
    """The sums of all blocks, and what a comparison with the stored ones found, if there was one.

    In full, the sums are ours. With a sample, they are the stored ones, of which the drawn blocks were computed again.
    """
    total = -(-case.grid.cells // problem.block)
    drawn = total if how.sample is None else min(total, math.ceil(how.sample * total))
    stored = case.certificate.blocks_sha256 is not None
    if not stored and case.grid.cells > _UNSTORED_CUBES:
        return None, Check("blocks", False, f"a bound over {case.grid.cells:,} cubes must come with its sums by blocks")
    before = load_blocks(case.folder, case.certificate) if stored else None
    if before is not None and len(before) != total:  # found here, before the work
        return None, Check("blocks", False, f"{len(before)} blocks are stored where the grid has {total}")
    if drawn == total:
        sums = again(None)
        if before is None:
            return sums, None
        wrong = _wrong_blocks(dict(enumerate(sums)), before, total)
        return sums, Check("blocks", wrong is None, wrong or f"the stored sums of {total} blocks are right")
    claimed = load_blocks(case.folder, case.certificate)
    generator = secrets.SystemRandom()  # nobody can know beforehand which blocks will be looked at
    chosen = tuple(sorted(generator.sample(range(total), drawn)))
    wrong = _wrong_blocks(dict(zip(chosen, again(chosen), strict=True)), claimed, total)
    if wrong is not None:
        return None, Check("blocks", False, wrong)
    missed = min(1.0, 3.0 / drawn)  # (1 − q)^k ≤ e^-3 < 5 % from q = 3/k on
    detail = (
        f"{drawn} of {total} blocks of {problem.block} cubes, drawn at random, were enclosed again and are right; if "
        f"{missed:.2%} of the blocks were wrong, that would happen less than once in twenty times"
    )
    return claimed, Check(SAMPLE, True, detail)


def _wrong_blocks(found: dict[int, Sums], claimed: list[Sums], total: int) -> str | None:
    """What is wrong with the stored sums, given some that were computed again."""
    if len(claimed) != total or any(len(sums) != 6 for sums in claimed):
        return f"{len(claimed)} blocks are stored where the grid has {total}"
    if not all(math.isfinite(x) and x >= 0 for sums in claimed for x in sums):
        return "a stored sum is negative or not finite"
    wrong = [
        number
        for number, sums in found.items()
        if not all(_agrees(c, f, s) for c, f, s in zip(claimed[number], sums, _scales(sums), strict=True))
    ]
    return f"the stored sums of the blocks {wrong[:8]} are not what their cubes give" if wrong else None


def _check_statistical(case: _Case) -> Iterator[Check]:
    certificate = case.certificate
    if case.target.variation(1.0) is not None or case.target.interval is not None:
        yield Check("kind", False, "this target allows a rigorous certificate; a statistical one hides that")
    stated = case.target.bound
    honest = stated is None or certificate.target_bound >= stated
    yield Check("target bound", honest, f"certified with |f| ≤ {certificate.target_bound}, the target states {stated}")
    target = dataclasses.replace(case.target, bound=certificate.target_bound)
    listed = set(statistical_assumptions(target)) == set(certificate.assumptions)
    yield Check("assumptions", listed, "; ".join(certificate.assumptions))
    p, confidence, samples = certificate.p, certificate.confidence or 0.0, certificate.samples

    def g(X: Array) -> Array:
        return run(case.network, X)

    try:
        found, B = statistical_bound(case.network, target, case.grid, g, p, confidence, samples, certificate.seed)
        if not _agrees(certificate.bound, found, found):
            yield Check("bound", False, f"claimed {certificate.bound:.6g}, but its own points give {found:.6g}")
            return
        fresh = established(certificate.bound, target, case.grid, g, p, confidence, samples, B)
    except NotProved as error:
        yield Check("bound", False, str(error))
        return
    says = {True: "establish", False: "refute", None: "do not establish"}[fresh.holds]
    detail = (
        f"{fresh.points:,} points drawn now {says} d_{p:g} ≤ {certificate.bound:.6g}: they put it between "
        f"{fresh.low:.6g} and {fresh.high:.6g}"
    )
    yield Check("bound", fresh.holds is True, detail)


def _check_second_opinion(case: _Case, opinions: int | None) -> Check:
    opinion = second_opinion(case.network, case.grid, opinions, seed=None)
    detail = f"Arb and exact rationals on {opinion.cubes} cubes (seed {opinion.seed})"
    if opinion.disagreeing:
        detail += f" disagree on the cubes {list(opinion.disagreeing)}"
    return Check("second opinion", not opinion.disagreeing, detail)


def _check_float_run(case: _Case) -> Check:
    """The float64 run against the enclosures, on cubes that nobody could know when the weights were written.

    The certificate states what was measured on its own cubes. On others the rounding differs: constructions keep it
    below 2^-20 of their values, and so much is allowed beside what is stated. The figure to believe is the fresh one.
    Off the cores there is no enclosure; there the run must keep to the output bound, on points around the edges.
    """
    claimed, network = case.certificate.float_error, case.network
    own, fresh = (float_error(network, case.grid, s) for s in (case.certificate.seed, secrets.randbits(64)))
    stated = claimed.get("max", -1.0)
    right = claimed.get("dtype") == "float64" and claimed.get("kind") == "measured" and 0 <= stated < math.inf
    right = right and type(claimed.get("cubes")) is int and claimed.get("cubes") == own["cubes"]
    right = right and own["max"] <= stated * (1 + AGREEMENT) + 1e-300
    B = output_bound(network)
    right = right and stated <= max(own["max"] * (1 + AGREEMENT), FLOAT_SHARE * max(B))  # and not just any larger one
    right = right and fresh["max"] <= max(stated, FLOAT_SHARE * max(B))
    share = min(1.0, case.target.volume ** (1 / case.certificate.p))  # a distance over a small domain is small
    right = right and max(own["max"], fresh["max"]) * share <= case.certificate.bound
    stray = strays(lambda X: run(network, X), case.target, case.grid, B, secrets.randbits(64))
    detail = f"measured {fresh['max']:.3g} on {fresh['cubes']} cubes drawn now; claimed {stated} on its own; "
    return Check("float run", right and stray is None, detail + (stray or f"within the output bound on {POINTS} points near edges"))  # noqa: E501  # fmt: skip


def _agrees(claimed: Any, found: float, scale: float) -> bool:
    """Up to the order of summation: relative to what was found, or to 1e-12 of what it is a part of."""
    return isinstance(claimed, int | float) and abs(claimed - found) <= AGREEMENT * max(abs(found), 1e-12 * scale)


def _scales(sums: Sums) -> Sums:
    """What the six sums of a block are parts of: integrals of both, counted cubes of themselves, radii of |f|."""
    distinct, equal, volume, count, _, largest = sums
    return [distinct + equal, distinct + equal, volume, count, largest, largest]
