"""The report of a verdict on a sparsity pattern: conditions and reasons, the masks, the path, the receptive field."""

from __future__ import annotations

import numpy as np

from thereexists.patterns import PatternVerdict
from thereexists.patterns.picture import density
from thereexists.report import svg
from thereexists.report.html import Markup, Page, Section, facts, figure, join, panels, paragraph
from thereexists.report.sparse import MOST_STEPS, MOST_TOKENS, pattern_pictures

CELLS = 64  # of the density map of a pattern that is too large to draw


def pattern_page(verdict: PatternVerdict) -> Page:
    """The page of ``te.patterns.check(pattern)``."""
    pattern = verdict.pattern
    title = f"The pattern {pattern.name} on {pattern.n:,} tokens"
    sections = (
        Section("verdict", "Is it universal?", _verdict(verdict)),
        Section("pattern", "The pattern", _pictures(verdict)),
    )
    return Page("pattern", title, "Sparse attention, judged by the conditions of the universality theorem.", sections)


def _verdict(verdict: PatternVerdict) -> Markup:
    words = {
        True: ("Universal: every condition of the theorem holds.", "good"),
        False: ("Not universal.", "bad"),
        None: ("Undecided: the sufficient conditions fail or could not be decided, which is not a disproof.", ""),
    }
    pattern = verdict.pattern
    return join(
        [
            paragraph(*words[verdict.universal]),
            *(paragraph(reason) for reason in verdict.reasons),
            facts(
                {
                    "every token sees itself": "yes" if verdict.self_loops.holds else "no",
                    "path": verdict.path_result.status,
                    "receptive depth": verdict.depth,
                    "connections": ", ".join(f"{c:,}" for c in pattern.connections[:MOST_STEPS]),
                    "sparsity": f"{pattern.sparsity:.4f}",
                }
            ),
        ]
    )


def _pictures(verdict: PatternVerdict) -> Markup:
    pattern = verdict.pattern
    if pattern.n <= MOST_TOKENS:
        path = None if verdict.path is None else [int(k) for k in verdict.path]
        return pattern_pictures(np.asarray(pattern.mask()), pattern.name, path)
    maps = [np.sqrt(density(step, CELLS)) - 1.0 for step in pattern.steps[:MOST_STEPS]]
    figures = [figure(svg.heat(m, -1.0, f"Step {l}", labels=False), f"Step {l}.") for l, m in enumerate(maps, 1)]
    share = (
        f"Too many tokens to draw one by one: each cell stands for {pattern.n / CELLS:,.1f} × {pattern.n / CELLS:,.1f} "
    )
    return join(
        [paragraph(share + "pairs; the darker, the more of them are connected (square root)."), panels(figures)]
    )
