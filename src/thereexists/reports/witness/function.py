"""The report of a witness of a function: what it is, what is proved of it, and pictures measured on the network."""

from __future__ import annotations

import platform
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thereexists.certificates.certificate import FILE
from thereexists.core.authors_word import WORDS, as_its_author_says
from thereexists.core.plain_text import counted, d_of, in_full
from thereexists.core.rounded_figures import in_percent, rounded_down, rounded_up
from thereexists.functions.target import Target
from thereexists.model import Transformer, sizes
from thereexists.model.parts import parts_of
from thereexists.reports import stated, svg
from thereexists.reports.artefact import Found, weights_hash
from thereexists.reports.certificate import bound_section
from thereexists.reports.contexts import contexts_section
from thereexists.reports.first_screen import PAPERS, Number, first_screen, proof_of
from thereexists.reports.html import (
    Markup,
    Page,
    Section,
    at_most,
    code,
    facts,
    figure,
    join,
    key,
    measured,
    number,
    panels,
    paragraph,
    shade,
    table,
    upper,
)
from thereexists.reports.measure import Slice, plane_through, slice_through
from thereexists.reports.memory import memory_section
from thereexists.reports.planes import first_picture, surfaces_section
from thereexists.reports.sparse import pattern_section
from thereexists.witness.function import FunctionWitness
from thereexists.witness.load import load as read_witness
from thereexists.witness.recounted import class_of, description_of, is_builtin, told_name

MOST_OUTPUTS = 12
FOREIGN = "is about other weights or another function"


def function_page(folder: Path, witness: FunctionWitness, record: dict[str, Any], target: Target | None = None) -> Page:
    """All sections; ``target`` gives the function again, for a witness of a user's own."""
    witness = witness.knowing(target)
    target = target or witness.target
    foreign = witness.certificate is None and (folder / FILE).is_file()
    cut, plane = slice_through(witness, target), plane_through(witness, target)
    sections = [
        Section("built", "What was built", _built(witness, record)),
        Section("stages", "Stages and weights", stages_section(witness.network)),
        Section("certificate", "What is certified", _certificate(folder, witness, foreign)),
        Section("curves", "Target against network", _curves(cut, target)),
        surfaces_section(witness, plane),
        contexts_section(witness),
        memory_section(witness),
        pattern_section(witness),
        Section("dtypes", "Number formats", _dtypes(witness)),
        Section("reproduce", "How to reproduce it", _reproduce(folder, witness, record)),
    ]
    plan = witness.plan
    lead = (
        f"A Transformer for sequences of {plan.grid.n} tokens with {plan.grid.d} "
        f"feature{'s' if plan.grid.d > 1 else ''}, written down without training."
    )
    title = f"There exists a Transformer: {told_name(witness)}"
    drawn = Markup("") if plane is None else first_picture(plane, plan.grid.d)
    first = first_screen(_largest(folder, witness, foreign), _source(witness), drawn)
    return Page("witness", title, lead, tuple(s for s in sections if s is not None), first)


def _largest(folder: Path, witness: FunctionWitness, foreign: bool) -> list[Number]:
    """How deep, how far off at most, and whether anything is proved."""
    layers = sum(stage.depth for stage in witness.network.stages.values())
    found = witness.certificate
    if found is None:
        bound = ("no bound", f"the certificate {FOREIGN}" if foreign else "there is no certificate")
    else:
        norm = f"{d_of(found.p)}, {found.holds_for()}, {found.label()}: {WORDS}"
        bound = (at_most(float(found.bound)), norm)
    return [(layers, "layers, none of them trained"), bound, proof_of(folder, found is not None)]


def _source(witness: FunctionWitness) -> str:
    theorem = sizes.counted(witness.network)["theorem"]
    after = (
        f"After the main theorem of {PAPERS['B']}" if theorem == "B" else f"After Theorem {theorem} of {PAPERS['A']}"
    )
    return (
        f"{after}; in {counted(witness.network.depth, 'block')} by a construction of our own."
        if witness.network.wide
        else f"{after}."
    )


def _built(witness: FunctionWitness, record: dict[str, Any]) -> Markup:
    target, grid = witness.target, witness.grid
    shape, theorem_number = class_of(witness.network), sizes.counted(witness.network)["theorem"]
    origin, words = target.origin, description_of(witness)
    function = f"{target.name}: {words}" if words else target.name
    source = f"{origin.get('kind', 'Python code')} {origin.get('reference', '')}".strip()
    sha256 = origin.get("sha256")
    theorem: dict[int | str, str] = {
        1: "Theorem 1 (equivariant, no positions)",
        2: "Theorem 2 (with positional encoding)",
    }
    return facts(
        {
            "function": as_its_author_says(function),
            "from": as_its_author_says(source),
            "file's SHA-256": None if sha256 is None else as_its_author_says(sha256),
            "sequences": as_its_author_says(f"n = {grid.n} tokens, d = {grid.d}, {_box(target)}"),
            "claimed": as_its_author_says(_claims(target)),
            "grid": as_its_author_says(f"δ = 1/{grid.N}, {grid.cells:,} cubes"),
            "theorem": theorem.get(
                theorem_number, f"Theorem {theorem_number} (sparse attention, with positional encoding)"
            ),
            "construction": witness.construction,
            "network": f"{sum(s.depth for s in witness.network.stages.values()):,} layers, "
            f"{sum(p.numel() for p in witness.network.parameters()):,} parameters, attention by {witness.network.rho}",
            "class": f"h = {number(shape['h'])} heads of size m = {number(shape['m'])}, r = {number(shape['r'])} "
            f"hidden units, width {number(shape['d'])}",
        }
    )


def _claims(target: Target) -> str:
    symmetry = "permutation equivariant" if target.equivariant else "no symmetry"
    symmetry += ", 0 outside its box" if target.compact_support else ""
    return symmetry if target.lipschitz is None else f"Lipschitz constant {in_full(target.lipschitz)}, {symmetry}"


def _box(target: Target) -> str:
    if target.region is not None:
        return f"in the domain: {target.region.words()}"
    ends = sorted({(float(a), float(b)) for a, b in zip(target.low, target.high, strict=True)})
    return "every entry in " + ", ".join(f"[{in_full(float(a))}, {in_full(float(b))}]" for a, b in ends)


def stages_section(network: Transformer) -> Markup:
    """Layers, parameters and weight ranges, counted on the weights; the last row is the sum."""
    parts = parts_of(network)
    rows = [
        [shade(i, p.name), p.layers, p.parameters, measured(p.smallest), measured(p.largest)]
        for i, p in enumerate(parts)
    ]
    named = ", ".join(f"{part.name} {part.parameters:,}" for part in parts)
    whole = sum(part.parameters for part in parts)
    rows.append(
        [
            "all",
            sum(part.layers for part in parts),
            whole,
            measured(min((part.smallest for part in parts if part.smallest > 0), default=0.0)),
            measured(max((part.largest for part in parts), default=0.0)),
        ]
    )
    bar = svg.stacked_bar([(i, float(p.parameters)) for i, p in enumerate(parts)], f"Parameters of each part: {named}")
    head = ["stage", "layers", "parameters", "smallest non-zero |weight|", "largest |weight|"]
    return join([figure(bar, f"{whole:,} parameters, part by part."), table(head, rows)])


def _certificate(folder: Path, witness: FunctionWitness, foreign: bool) -> Markup:
    measured, found = witness.distance, witness.certificate
    sampled = None
    if measured is not None:
        sampled = (
            f"{d_of(measured.p)} = {measured.estimate:.4g}, between {rounded_down(measured.low, 4)} and "
            f"{rounded_up(measured.high, 4)} at {in_percent(measured.confidence)} ({measured.samples:,} random points, "
            f"seed {measured.seed})"
        )
    if foreign:
        return paragraph(f"The certificate in this folder {FOREIGN}: it proves nothing here.", "bad")
    if found is None:
        advice = f"This witness has no certificate. Make one: thereexists certify {shlex.quote(str(folder))}"
        return join([paragraph(advice), stated.facts({"measured": sampled})])
    return join(
        [
            bound_section(found, sampled),
            paragraph(
                "These figures are read from certificate.json, whose digest and weights were compared. To check the "
                f"proof itself again: thereexists verify {shlex.quote(str(folder))}",
                "soft",
            ),
        ]
    )


def _curves(cut: Slice, target: Target) -> Markup:
    n, d = cut.others.shape
    fixed = "; ".join(" ".join(f"{v:.4g}" for v in token) for token in cut.others)
    free = "x, the first token" if d == 1 else "x, feature 0 of the first token"
    intro = [
        paragraph(
            f"Every output while {free}, moves through its range. The other entries stay at ({fixed}), where the first "
            f"one is replaced by x. {len(cut.x)} points; the ramps between the cubes are thinner than a pixel."
        )
    ]
    if target.region is not None:
        intro.append(paragraph("Where that leaves the domain, a point of the domain near it takes its place."))
    if cut.target is None:
        again = (
            "The function itself is not stored with a witness: give it with --function file.py:function to see it too."
        )
        intro.append(paragraph(again))
    else:
        gap = np.abs(cut.network - cut.target)
        legend = Markup(f"{key(0, 'target')} &emsp; {key(1, 'network')} &emsp; {key(3, '|difference|')}")
        largest, mean = upper(float(gap.max())), measured(float(gap.mean()))
        worst = f"Along this line the largest difference is {largest}, the mean {mean}."
        intro += [paragraph(legend), paragraph(worst)]
    shown = [(k, i) for k in range(n) for i in range(d)][:MOST_OUTPUTS]
    both = cut.network if cut.target is None else np.stack([cut.network, cut.target])
    ends, errors = (float(both.min()), float(both.max())), (0.0, float(np.ptp(both, axis=0).max()))
    figures: list[Markup] = []
    for k, i in shown:
        name = f"output token {k}" if d == 1 else f"output token {k}, feature {i}"
        y = cut.network[:, k, i]
        f = None if cut.target is None else cut.target[:, k, i]
        curves = [(1, False, y)] if f is None else [(0, False, f), (1, False, y)]
        figures.append(figure(svg.lines(cut.x, curves, name, "x", ends), name))
        if f is not None:
            error = svg.lines(cut.x, [(3, False, np.abs(y - f))], f"{name}: error", "x", errors)
            figures.append(figure(error, f"{name}: |network − target|"))
    left = n * d - len(shown)
    rest = [paragraph(f"{left} more outputs are not drawn.", "soft")] if left else []
    return join([*intro, panels(figures, pairs=cut.target is not None), *rest])


def _dtypes(witness: FunctionWitness) -> Markup:
    rows = [[name, "safe" if v.holds else "not safe", v.reasons[0]] for name, v in witness.verdicts().items()]
    intro = paragraph("Decided by a bound from the weights, not by trial: off the ramps, a safe format gives the "
                      "float64 output rounded once. A format that is not safe is refused.")  # fmt: skip
    return join([intro, table(["format", "verdict", "why"], rows)])


def _reproduce(folder: Path, witness: FunctionWitness, record: dict[str, Any]) -> Markup:
    command, remark = build_command(witness)
    measured = witness.distance
    return join(
        [
            code(command),
            paragraph(f"The command that built it, {WORDS}. {remark}".rstrip(), "soft"),
            code(f"thereexists verify {shlex.quote(str(folder))}"),
            facts(
                {
                    "built by": as_its_author_says(f"thereexists {record['package_version']}"),
                    "report by": f"Python {platform.python_version()}, torch {torch.__version__}, "
                    f"NumPy {np.__version__}",
                    "seed": None
                    if measured is None
                    else as_its_author_says(f"{measured.seed}, and only the measured distance is random"),
                    "weights": weights_hash(record),
                }
            ),
        ]
    )


def build_command(witness: FunctionWitness) -> tuple[str, str]:
    """The command line that builds these weights again, and what it cannot say."""
    plan, target, grid = witness.plan, witness.target, witness.grid
    origin, remarks = target.origin, []
    reference = target.name if is_builtin(witness) else str(origin.get("reference") or target.name)
    words = ["thereexists", "build", reference, "--n", str(grid.n)]
    words += ["--d", str(grid.d), "--delta", f"1/{grid.N}"]
    if origin.get("kind") not in ("builtin", "file"):
        remarks.append("The function was given in Python: put it into a file and name it as file.py:function.")
    if origin.get("kind") != "builtin":
        words += [] if target.lipschitz is None else ["--lipschitz", repr(float(target.lipschitz))]
        words += ["--equivariant"] if target.equivariant else []
    words += ["--compact-support"] if target.compact_support else []
    boxes = {(float(a), float(b)) for a, b in zip(target.low, target.high, strict=True)}
    if target.region is not None:
        named = target.region.command()
        words += [] if named is None else ["--domain", named]
        remarks += [] if named else ["The domain was given in Python: put it into a file, --domain file.py:domain."]
    elif boxes != {(0.0, 1.0)}:
        ends = zip(target.low.tolist(), target.high.tolist(), strict=True) if len(boxes) > 1 else boxes
        words += ["--domain", ";".join(f"{low!r},{high!r}" for low, high in ends)]
    words += plan.command_options()
    if witness.network.rho == "hardmax":
        words.append("--modified")
    elif witness.network.rho != "softmax":
        words += ["--rho", witness.network.rho]
    if "--pattern" in words:
        remarks.append("If the pattern has sizes, add them with --set; its masks are stored with the weights.")
    return shlex.join(words), " ".join(remarks)


def page(found: Found, record: dict[str, Any]) -> Page:
    return function_page(found.path, read_witness(found.path), record, found.target)
