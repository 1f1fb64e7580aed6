"""Re-check a saved witness of a function and its certificate from the files alone, without trusting their author.

Here: the record against the weights, and the claims about f. ``verify_bound.py`` checks the numbers.
"""

from __future__ import annotations

import itertools
import math
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists.certificates.asked import check_asked
from thereexists.certificates.certificate import load_certificate
from thereexists.certificates.certify_function import TRIED_BOXES
from thereexists.certificates.check import Asked, Check, as_claimed
from thereexists.certificates.covered import grid_fits
from thereexists.certificates.enclose import WEIGHTS
from thereexists.certificates.function_certificate import FunctionCertificate
from thereexists.certificates.safe_dtypes import verdicts
from thereexists.certificates.stored_function import read_function
from thereexists.certificates.support import vanishes_outside
from thereexists.certificates.variation import MOST_SPLITS, some_boxes, splits_within
from thereexists.certificates.verify_bound import MOST_SUBCUBES, Case, bound_checks
from thereexists.certificates.verify_tokens import check_dtypes
from thereexists.core import storage
from thereexists.core.errors import InvalidTarget, Obstructed
from thereexists.core.kinds import KINDS
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_up
from thereexists.functions.claims import refute
from thereexists.functions.described import differing
from thereexists.functions.grid import Grid
from thereexists.functions.targets import builtin
from thereexists.model import EmbeddedTransformer, Transformer
from thereexists.model.digest import weights_sha256
from thereexists.model.sizes import counted

FILES = Check("files", True, "record, weights and certificate are whole and match their digests")
_PAIRS = 20_000
_MOST_CUBES = 1 << 40


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


def _common_checks(case: Case[FunctionCertificate], asked: Asked) -> Iterator[Check]:
    yield _check_layers(case)
    yield _check_plan(case)
    yield _check_pattern(case)
    if (case.grid.n, case.grid.d) != (case.target.n, case.target.d):  # no question about f would fit
        yield _check_target(case)
        yield _another_shape(case)
        return
    yield _check_grid(case)
    yield from _check_support(case)
    yield _check_target(case)
    if case.target.region is not None or "domain" in case.record["target"]:
        domain = _check_domain(case)
        yield domain
        if not domain.passed:  # the layers bound no sum over these cubes
            return
    yield _check_symmetry(case)
    yield _check_one_by_one(case)
    yield _check_claims_about_f(case)
    yield _check_cells(case)
    yield _check_figures(case)
    yield _check_epsilon(case)
    yield from bound_checks(case, asked.opinions, asked.how)


def _read(asked: Asked, network_class: type[Transformer]) -> Case[FunctionCertificate]:
    folder, record = asked.folder, asked.record
    certificate = load_certificate(folder, KINDS[record["construction"]].certificates)
    stored = read_function(folder, record, asked.weights, network_class)
    target = asked.target or stored.target
    grid = stored.grid.on(target.region)
    if certificate.cubes_to_sum(grid.cells) > _MOST_CUBES:
        raise storage.BadWitnessFile(f"{folder} claims a sum over {grid.cells:,} cubes: more than anyone can compute.")
    job = asked.how.job
    if job is not None and Path(os.path.realpath(job)).is_relative_to(os.path.realpath(folder)):
        raise Obstructed("The folder of a verification must not lie in the witness it verifies.")
    return Case(record, stored.network, grid, target, certificate, folder)


def _check_weights(case: Case[FunctionCertificate]) -> Check:
    actual = weights_sha256(case.network)
    same = actual == case.certificate.weights_sha256
    return Check("weights", same, f"SHA-256 {actual[:16]}… {'is' if same else 'is not'} the certified one")


def _check_deep_class(case: Case[FunctionCertificate]) -> Check:
    claimed, actual = case.record.get("class"), case.network.shape() | {"positional": case.network.E is not None}
    right = claimed == actual and (actual["h"], actual["m"], actual["r"]) == (2, 1, 4)
    right = right and case.network.rho in WEIGHTS and case.record.get("dtype") == "float64"
    return Check("class", right, f"{as_claimed(claimed, actual)}; rho = {case.network.rho}, wanted is T^{{2,1,4}}")


def _check_compact_class(case: Case[FunctionCertificate]) -> Check:
    """Four standard blocks, or no more than a maximal width asks for."""
    plan, network = case.record["plan"], case.network
    claimed, actual = case.record.get("class"), network.shape() | {"positional": network.E is not None}
    right = claimed == actual
    right = right and network.depth <= _most_blocks(network, (plan.get("sizes") or {}).get("max_width"))
    right = right and case.record.get("dtype") == "float64"
    detail = f"{as_claimed(claimed, actual)}; {network.depth} blocks of softmax attention and ReLU"
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


def _check_compact_dtypes(case: Case[FunctionCertificate]) -> Check:
    """Every dtype called safe, in the structure and in the plan, is proved from the weights."""
    network = case.network
    assert isinstance(network, EmbeddedTransformer)
    stated = (case.record.get("plan", {}).get("sizes") or {}).get("safe")
    if stated != list(network.safe):
        return Check("dtypes", False, f"the plan says safe in {stated}, the structure in {list(network.safe)}")
    return check_dtypes("float64", network.safe, verdicts(network, case.grid))


def _check_layers(case: Case[FunctionCertificate]) -> Check:
    claimed, actual = case.record["plan"]["layers"], counted(case.network)["layers"]
    return Check("layers", claimed == actual, as_claimed(claimed, actual))


def _check_plan(case: Case[FunctionCertificate]) -> Check:
    """What it says besides: the theorem, the grid, and how many parameters there are."""
    grid, network = case.grid, counted(case.network)
    actual = {"n": grid.n, "d": grid.d, "delta": float(grid.delta)}
    actual |= {key: network[key] for key in ("theorem", "parameters")}
    claimed = {key: case.record["plan"][key] for key in actual}
    return Check("plan", claimed == actual, as_claimed(claimed, actual))


def _check_pattern(case: Case[FunctionCertificate]) -> Check:
    """The stored masks against the claimed pattern, and Assumption 1 by its definition."""
    claimed = case.record.get("plan", {}).get("pattern")
    stacks = [stage.attention for stage in case.network.stages.values() if stage.attention is not None]
    if claimed is None:
        dense = all(stack.pattern is None for stack in stacks)
        return Check(
            "pattern", dense, "dense attention" if dense else "the weights have a pattern that the record does not"
        )
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
        f"after {s} steps some token has not seen all others": bool(seen.all()),
    }
    failed = [what for what, holds in conditions.items() if not holds]
    return Check("pattern", not failed, "; ".join(failed) or f"the pattern satisfies Assumption 1, s = {s}")


def _another_shape(case: Case[FunctionCertificate]) -> Check:
    grid, f = case.grid, case.target
    return Check("grid", False, f"it is one for n = {grid.n}, d = {grid.d}, and {f.name} has n = {f.n}, d = {f.d}")


def _check_grid(case: Case[FunctionCertificate]) -> Check:
    """The cubes must cover the domain: otherwise the sum over cubes leaves something out."""
    grid = case.grid
    low, high = np.array(grid.origin), np.array(grid.origin) + grid.N * np.array(grid.step)
    right = grid_fits(case.network, grid, case.target) and Grid.from_dict(case.certificate.grid) == grid
    return Check("grid", right, f"{grid.N}^{grid.n * grid.d} cubes from {low.tolist()} to {high.tolist()}")


def _check_support(case: Case[FunctionCertificate]) -> Iterator[Check]:
    """Of a function that is 0 outside its box: so must the network be, or no integral over R^{d×n} is finite."""
    if case.target.compact_support:
        verdict = vanishes_outside(case.network, case.target, case.grid.n)
        yield Check("support", verdict.holds, verdict.reasons[0])


def _check_target(case: Case[FunctionCertificate]) -> Check:
    actual = case.target.describe()
    found = sorted({*differing(case.certificate.target, actual), *differing(case.record["target"], actual)})
    if case.target.origin.get("kind") == "builtin":
        domain = (case.target.low.tolist(), case.target.high.tolist())
        known = builtin(case.target.name, case.target.n, case.target.d, domain)
        if case.target.lipschitz is None or case.target.lipschitz < (known.lipschitz or 0.0):
            found.append(f"lipschitz (the built-in's is {in_full(known.lipschitz)})")
    detail = "the function, its shape and its domain are the certified ones"
    return Check("target", not found, f"differs in {', '.join(found)}" if found else detail)


def _check_domain(case: Case[FunctionCertificate]) -> Check:
    """Of a domain that is not a box: the network stores values for the cubes that may meet it, found here again.

    The bound is a sum over these cubes whoever built for which; this says that the network was built for this domain,
    and that there are as many cubes as it has layers for. (The layers of a network on a box are counted as it is read.)
    """
    grid, plan, region = case.grid, case.record["plan"], case.target.region
    n, tokens = grid.n, grid.token_cells
    if case.network.wide:
        wanted = {n * grid.cells if grid.positional else tokens * math.comb(tokens + n - 2, n - 1)}
        stated, what = (plan.get("sizes") or {}).get("contexts"), "contexts"
    else:
        ids = n * grid.cells if grid.positional else sum(j * math.comb(tokens, j) for j in range(1, n + 1))
        wanted, what = {ids, 2 * ids}, "value layers"  # one sweep, or two
        stages = case.network.stages.items()
        stated = sum(stage.depth for name, stage in stages if name not in ("quantise", "context"))
    words = "the box" if region is None else region.words()
    detail = f"{words}: {grid.cells:,} cubes may meet it, and there are {stated} {what}"
    return Check("domain", stated in wanted, detail)


def _check_symmetry(case: Case[FunctionCertificate]) -> Check:
    if not case.target.equivariant:
        return Check("symmetry", True, "no symmetry is claimed")
    try:
        case.target.check_equivariance(seed=secrets.randbits(64))
    except InvalidTarget as error:
        return Check("symmetry", False, str(error))
    return Check("symmetry", True, "permutation equivariant on 64 random permutations")


def _check_claims_about_f(case: Case[FunctionCertificate]) -> Check:
    """The modulus and the interval extension are assumptions; a counterexample ends them."""
    f, boxes = case.target, None
    splits = case.certificate.asked_splits()
    if f.interval is not None and 1 <= splits <= MOST_SPLITS:
        boxes = some_boxes(f, case.grid, splits, TRIED_BOXES, secrets.randbits(64))
    found = refute(f, _PAIRS, seed=secrets.randbits(64), boxes=boxes)
    return Check("modulus", found is None, found or f"not refuted by {_PAIRS:,} random pairs, nor by a search in boxes")


def _check_one_by_one(case: Case[FunctionCertificate]) -> Check:
    """Whoever runs f on one sequence must get the value that was used for it in a batch."""
    try:
        case.target.check_one_by_one(seed=secrets.randbits(64))
        splits = case.certificate.asked_splits()
        if 1 <= splits <= splits_within(case.grid, MOST_SUBCUBES):
            check_asked(case.target, case.grid, splits, seed=secrets.randbits(64))
    except InvalidTarget as error:
        return Check("one by one", False, str(error))
    return Check("one by one", True, "f answers a sequence alone as in a batch, and the same when asked again")


def _check_cells(case: Case[FunctionCertificate]) -> Check:
    claimed, actual = case.certificate.cells, case.grid.cells
    return Check("cells", claimed == actual, as_claimed(claimed, actual))


def _check_epsilon(case: Case[FunctionCertificate]) -> Check:
    """What was asked for stands in the record, in the d_p of its prediction; a certificate in that d_p keeps it."""
    plan, certificate = case.record["plan"], case.certificate
    asked = plan.get("epsilon")
    if asked is None or plan["error"]["p"] != certificate.p:
        right = not certificate.asked_for()
        return Check(
            "epsilon", right, "none was asked for" if right else f"{certificate.epsilon}, which was never asked for"
        )
    right = certificate.epsilon == asked and certificate.keeps_epsilon()
    proves = rounded_up(certificate.bound, 6)
    detail = f"asked for {in_full(asked)}, the certificate says {certificate.epsilon} and proves {proves}"
    return Check("epsilon", right, detail)


def _check_figures(case: Case[FunctionCertificate]) -> Check:
    """Of a second opinion only its count is free: how many cubes the author asked about is the author's word.

    ``verify`` asks about cubes of its own. What another kind of certificate states, the reader refused.
    """
    opinion = case.certificate.second_opinion
    right = opinion["cubes"] <= case.grid.cells and opinion["disagreeing"] == []
    right = right and opinion["seed"] == case.certificate.seed
    return Check("figures", right, "those of its kind" if right else f"no second opinion on these cubes: {opinion}")
