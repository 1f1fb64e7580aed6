"""Re-check a saved program: its weights against its operations, and every number of its certificate.

The weights are run symbolically and compared with what the operations mean (``program_bound.py``); nothing of the
compiler is used. At last some random inputs, drawn anew each time, go through the network in every certified dtype and
through the program's own forms: a bound that is wrong may be caught there by somebody who did not believe the proof.
"""

from __future__ import annotations

import copy
import math
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists import storage
from thereexists.certificates.check import Check
from thereexists.certificates.cubes import weights_sha256
from thereexists.certificates.program_bound import Comparison, compare
from thereexists.certificates.program_certificate import (
    ARITHMETIC,
    ProgramCertificate,
    dtype_bounds,
    load_program_certificate,
    program_sha256,
    total_bound,
)
from thereexists.certificates.program_values import values_of
from thereexists.errors import ThereExistsError
from thereexists.model import EmbeddedTransformer, Transformer
from thereexists.model.embedded import DTYPES
from thereexists.precision import as_dtype, run_embedded

AGREEMENT = 1e-9  # another NumPy may add in another order
_SAMPLE = 16
_MOST_WORK = 1 << 26  # logits of all heads of all blocks
_SLOW = ("bfloat16", "float16")  # on a CPU: only tried on small networks
_MOST_SLOW_WORK = 1 << 22


def program_checks(folder: Any, record: dict[str, Any], weights: dict[str, torch.Tensor]) -> Iterator[Check]:
    """The checks, one after the other; the first that makes the others meaningless ends them."""
    storage.check_dtype(record, weights)
    certificate = load_program_certificate(Path(folder))
    network = Transformer.from_structure(record["structure"], weights)
    if not isinstance(network, EmbeddedTransformer):
        yield Check("class", False, "the network is not one of standard blocks with an embedding")
        return
    claimed, actual = record.get("class"), network.shape() | {"positional": network.E is not None}
    yield Check("class", claimed == actual, f"claimed {claimed}, found {actual}, {network.depth} blocks")
    sha = weights_sha256(network)
    same = sha == certificate.weights_sha256
    yield Check("weights", same, f"SHA-256 {sha[:16]}… {'is' if same else 'is not'} the certified one")
    program = record["program"]
    sha = program_sha256(program)
    same = sha == certificate.program_sha256
    yield Check("program", same, f"{len(program['nodes'])} operations, SHA-256 {sha[:16]}… {'is' if same else 'is not'} the certified one")  # noqa: E501  # fmt: skip
    try:
        found = compare(program, network)
    except ThereExistsError as error:
        yield Check("meaning", False, str(error))
        return
    yield Check("meaning", True, f"the weights compute the program, all of its {found.terms:,} quantities, in real arithmetic")  # noqa: E501  # fmt: skip
    yield from _check_numbers(certificate, network, found)
    yield from _check_dtypes(certificate, network, found)
    yield _check_sample(certificate, network, found)


def _check_numbers(certificate: ProgramCertificate, network: EmbeddedTransformer, found: Comparison) -> Iterator[Check]:
    box = [list(ends) for ends in found.box]
    yield Check("box", certificate.box == box, f"claimed {certificate.box}, the program says {box}")
    actual = {"approximation": found.approximation, "weights": found.weights}
    right = certificate.parts.keys() == actual.keys() and all(
        _covers(certificate.parts[key], value) for key, value in actual.items()
    )
    yield Check("parts", right, f"claimed {certificate.parts}, found {actual}")
    listed = certificate.splines if isinstance(certificate.splines, list) else []
    right = len(listed) == len(found.splines) and all(
        isinstance(stated, dict)
        and {**stated, "own": 0.0} == {**spline, "own": 0.0}
        and _covers(stated.get("own"), spline["own"])
        for stated, spline in zip(listed, found.splines, strict=True)
    )
    yield Check("splines", right, f"{len(found.splines)} functions, off by {[s['own'] for s in found.splines]}")
    needed = {*found.assumptions, *ARITHMETIC}
    lacking = needed - set(certificate.assumptions)
    yield Check("assumptions", not lacking, "; ".join(lacking) or f"all {len(needed)} are listed")
    right = certificate.kind == "rigorous" and certificate.norm == "sup"
    yield Check("kind", right, f"{certificate.kind}, in the {certificate.norm} norm")


def _check_dtypes(certificate: ProgramCertificate, network: EmbeddedTransformer, found: Comparison) -> Iterator[Check]:
    """Every stated bound covers its parts, and the network allows no dtype without one."""
    names = list(certificate.bounds)
    known = bool(names) and set(names) <= set(DTYPES) and set(network.safe) == set(names)
    yield Check("dtypes", known, f"certified {', '.join(names)}; the network runs in {', '.join(network.safe)}")
    if not known:
        return
    actual, reasons = dtype_bounds(network, found, names, None)
    for name in names:
        stated = certificate.bounds[name]
        if name in reasons:
            yield Check(f"bound {name}", False, reasons[name])
            continue
        right = _covers(stated.get("rounding"), actual[name]["rounding"])
        right = right and _covers(stated.get("bound"), total_bound(actual[name]["rounding"], found))
        right = right and (certificate.epsilon is None or stated["bound"] <= certificate.epsilon)
        yield Check(
            f"bound {name}", right, f"claimed sup norm ≤ {stated.get('bound')}, found {actual[name]['bound']:.6g}"
        )
    stated = certificate.bounds.get(certificate.dtype, {}).get("bound")
    right = stated is not None and certificate.bound == stated
    yield Check("bound", right, f"claimed {certificate.bound} in {certificate.dtype}")


def _check_sample(certificate: ProgramCertificate, network: EmbeddedTransformer, found: Comparison) -> Check:
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    low, high = (np.array([ends[k] for ends in found.box]) for k in (0, 1))
    n, heads = found.meaning.n, max(network.shape()["h"], 1)
    work = n * n * heads * max(network.depth, 1)
    count = min(_SAMPLE, max(1, _MOST_WORK // work))
    names = [name for name in certificate.bounds if work <= _MOST_SLOW_WORK or name not in _SLOW]
    unit = rng.random((count, n, len(low)))
    unit[::4] = rng.integers(0, 5, unit[::4].shape) / 4  # ends, ties
    inputs = [_of_dtype(low + (high - low) * unit, low, high, name) for name in names]
    if not names:
        return Check("trial", True, "too large to try in half precision here")
    wanted, noise = values_of(found.meaning, found.meant, np.concatenate(inputs))
    detail = f"{count} random inputs (seed {seed}) in {', '.join(names)}"
    for name, X, Y in zip(names, inputs, np.split(wanted, len(inputs)), strict=True):
        there = network if name == "float64" else copy.deepcopy(network).to(as_dtype(name))
        flagged = network.W_in is not None and network.W_in.shape[1] == X.shape[2] + 1  # all tokens are there
        given = np.concatenate([X, np.ones((*X.shape[:2], 1))], axis=2) if flagged else X
        off = float(np.abs(run_embedded(there, given) - Y).max())
        allowed = certificate.bounds[name]["bound"] + noise
        if not off <= allowed:
            return Check("trial", False, f"{detail}: off by {off:.3g} in {name}, more than {allowed:.3g}")
    return Check("trial", True, f"{detail} keep their bounds")


def _of_dtype(X: np.ndarray, low: np.ndarray, high: np.ndarray, name: str) -> np.ndarray:
    """The inputs as numbers of the dtype; one that left the box on the way becomes one that did not."""
    X = torch.from_numpy(X).to(as_dtype(name)).to(torch.float64).numpy()
    inside = (low <= X) & (high >= X)
    return np.where(inside, X, X[inside].flat[0] if inside.any() else low)


def _covers(claimed: Any, found: float) -> bool:
    """A claim may be larger than what is found, never smaller."""
    if isinstance(claimed, bool) or not isinstance(claimed, int | float) or not math.isfinite(claimed):
        return False
    return claimed >= 0 and found <= claimed * (1 + AGREEMENT)
