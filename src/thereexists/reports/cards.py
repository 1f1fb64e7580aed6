"""Cards for notebooks: what ``repr`` says, and one picture of the reports' own, in their colours.

A card carries its style with it, inside ``@scope``, so that it changes nothing else on the page. As in a report, every
string is escaped, and nothing is run or asked for.
"""

from __future__ import annotations

import re
from functools import cache, singledispatch
from importlib.resources import files
from typing import Any

import numpy as np

from thereexists.certificates.certificate import Certificate
from thereexists.certificates.check import Check
from thereexists.constructions.program.graph import Value
from thereexists.constructions.program.saving import to_record
from thereexists.constructions.program.witness import CompiledWitness
from thereexists.core.verdict import Verdict
from thereexists.heads.head import Head
from thereexists.heads.stated import StatedVerdict
from thereexists.model.parts import parts_of
from thereexists.patterns import Pattern, PatternVerdict
from thereexists.patterns.picture import density
from thereexists.reports import svg
from thereexists.reports.html import Markup, figure, in_figures, join, key, panels, shade, text
from thereexists.reports.kinds.head import attention_pictures
from thereexists.reports.measure import slice_through
from thereexists.reports.program_graph import program_graph
from thereexists.reports.schedule import schedule
from thereexists.reports.verdict_pictures import bound_picture, steps
from thereexists.reports.witness.program import written_out
from thereexists.witness.function import FunctionWitness
from thereexists.witness.plan import Plan
from thereexists.witness.witness import Witness

CELLS = 64  # of the picture of a pattern, at most
MOST_STEPS = 4  # of a pattern that are drawn


def card(result: Any) -> str:
    """The card of a result, as HTML."""
    head, *facts = repr(result).splitlines()
    lines = "".join(f"<div>{in_figures(fact.strip())}</div>" for fact in facts)
    return (
        f'<div class="te-card"><style>{_style()}</style><div class="{_tone(result)}"><b>{text(head)}</b></div>'
        f'<div class="soft">{lines}</div>{picture(result)}</div>'
    )


@singledispatch
def picture(result: Any) -> Markup:
    """What is drawn of a result; nothing of one that words say best."""
    return Markup("")


@picture.register
def _(result: Witness) -> Markup:
    parts = [(i, part) for i, part in enumerate(parts_of(result.network)) if part.parameters]
    bar = svg.stacked_bar([(i, float(part.parameters)) for i, part in parts], "Parameters of each part")
    legend = join(Markup(f"{shade(i, f'{part.name} {part.parameters:,}')} &ensp; ") for i, part in parts)
    return figure(join([bar, legend]), "Parameters.")


@picture.register
def _(result: FunctionWitness) -> Markup:
    cut, d = slice_through(result, result.target), result.grid.d
    figures = []
    for k, i in [(k, i) for k in range(result.grid.n) for i in range(d)][:3]:
        name = f"output token {k}" if d == 1 else f"output token {k}, feature {i}"
        target = [] if cut.target is None else [(0, False, cut.target[:, k, i])]
        drawn = svg.lines(cut.x, [*target, (1, False, cut.network[:, k, i])], name, "x, the first token")
        figures.append(figure(drawn, name))
    both = Markup(f"{key(0, 'target')} &ensp; ") if cut.target is not None else Markup("")
    return join([both, key(1, "network"), panels(figures, style="three")])


@picture.register
def _(result: CompiledWitness) -> Markup:
    return schedule(result.places, result.network)


@picture.register
def _(result: Plan) -> Markup:
    stages = [(name, depth) for name, depth in result.layers.items() if name != "total"]
    bar = svg.stacked_bar([(i, float(depth)) for i, (_, depth) in enumerate(stages)], "Layers of each stage")
    legend = join(Markup(f"{shade(i, f'{name} {depth:,}')} &ensp; ") for i, (name, depth) in enumerate(stages[:12]))
    return figure(join([bar, legend]), "Layers.")


@picture.register
def _(result: Certificate) -> Markup:
    return bound_picture(result, says="")


@picture.register
def _(result: Verdict) -> Markup:
    """The checks behind it, where its evidence is a list of them."""
    found = result.evidence if isinstance(result.evidence, tuple) else ()
    made = [(check.name, check.passed) for check in found if isinstance(check, Check)]
    return steps(made) if made else Markup("")


@picture.register
def _(result: Pattern) -> Markup:
    if result.n > 4096:
        return Markup("")
    steps = result.steps[:MOST_STEPS]
    maps = [np.sqrt(density(step, CELLS)) - 1.0 for step in steps]
    drawn = [figure(svg.heat(m, -1.0, f"Step {l}", labels=False), f"Step {l}.") for l, m in enumerate(maps, 1)]
    return panels(drawn, style="three")


@picture.register
def _(result: PatternVerdict) -> Markup:
    return picture(result.pattern)


@picture.register
def _(result: Head) -> Markup:
    return panels(attention_pictures(result), style="three")


@picture.register
def _(result: Value) -> Markup:
    record = to_record(result)
    return join([Markup(f"<pre>{text(written_out(record))}</pre>"), program_graph(record)])


@singledispatch
def _tone(result: Any) -> str:
    """The class of the first line: good news, bad news, or neither."""
    return ""


@_tone.register
def _(result: Verdict) -> str:
    return {True: "good", False: "bad"}.get(result.holds, "")  # pyright: ignore[reportCallIssue, reportArgumentType]


@_tone.register
def _(result: StatedVerdict) -> str:
    return ""


@_tone.register
def _(result: PatternVerdict) -> str:
    return {True: "good", False: "bad"}.get(result.universal, "")  # pyright: ignore[reportCallIssue, reportArgumentType]


@cache
def _style() -> str:
    """The style of the reports, for a card only."""
    css = files("thereexists.reports").joinpath("page.css").read_text(encoding="utf-8").replace(":root", ":scope")
    css += "figure { display: block; width: auto; max-width: none; text-align: left; } "  # some pages centre them
    css += "figcaption { font-style: normal; max-width: none; margin: 0; text-align: left; } "
    css += ":scope { background: var(--paper); color: var(--ink); padding: .5rem .75rem; max-width: 60rem; "
    css += "font: 14px/1.5 system-ui, sans-serif; }"
    sized = re.sub(r"(\d*\.?\d+)rem", lambda size: f"{16 * float(size[1]):g}px", css)  # a page has a rem of its own
    return f"@scope (.te-card) {{ {sized} }}"
