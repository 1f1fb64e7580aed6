"""The report of a verdict on a sparsity pattern: conditions and reasons, the masks, the path, the receptive field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.rounded_figures import cut, rounded_down
from thereexists.patterns import Pattern, PatternVerdict
from thereexists.patterns.picture import density
from thereexists.reports import svg
from thereexists.reports.artefact import Found, Kind
from thereexists.reports.first_screen import PAPERS, Number, first_screen
from thereexists.reports.html import Markup, Page, Section, facts, figure, join, keys, panels, paragraph
from thereexists.reports.sparse import MOST_STEPS, MOST_TOKENS, pattern_pictures

SOURCE = f"The theorem and its conditions: {PAPERS['B']}."
MOST_IN_A_ROW = 3  # steps on the first screen
CELLS = 64  # of the density map of a pattern that is too large to draw


def pattern_page(verdict: PatternVerdict) -> Page:
    """The page of ``te.patterns.check(pattern)``.

        from thereexists.reports import pattern_page

        pattern_page(te.patterns.check(te.patterns.star(n=8)))

    Args:
        verdict: what ``te.patterns.check`` said.

    Returns:
        The page.
    """
    pattern = verdict.pattern
    title = f"The pattern {pattern.name} on {pattern.n:,} tokens"
    sections = (
        Section("verdict", "Is it universal?", _verdict(verdict)),
        Section("pattern", "The pattern", _pictures(verdict)),
    )
    lead = "Sparse attention, judged by the conditions of the universality theorem."
    numbers = pattern_numbers(
        verdict.universal, verdict.depth, max(pattern.connections), pattern.n, "decided for this page"
    )
    return Page("pattern", title, lead, sections, first_screen(numbers, SOURCE, thumbnails(pattern)))


def pattern_numbers(universal: Any, depth: Any, most: int, n: int, who: str) -> list[Number]:
    """The verdict in words, how deep the network must be, and how sparse the pattern is."""
    words = {True: "universal", False: "not universal", None: "undecided"}[universal]
    deep = ("no depth", "known at which every token has seen all") if depth is None else (
        depth, f"layer{'' if depth == 1 else 's'} until every token has seen all"
    )  # fmt: skip
    sparse = f"connections per token, of {n:,}: {rounded_down(100 * most / n**2, 3)}% of all pairs"
    said = [(words, "by the conditions of the theorem"), deep, (round(most / n, 1), sparse)]
    return [(figure, f"{what}: {who}") for figure, what in said]


def thumbnails(pattern: Pattern) -> Markup:
    """Every step as a small picture, with the key of its strengths."""
    cells = min(pattern.n, CELLS)
    maps = [np.sqrt(density(step, cells)) - 1.0 for step in pattern.steps[:MOST_IN_A_ROW]]
    drawn = [figure(svg.heat(m, -1.0, f"Step {l}", labels=False), f"Step {l}.") for l, m in enumerate(maps, 1)]
    return join([panels(drawn, style="three"), density_key()])


def density_key() -> Markup:
    return keys([svg.strengths(svg.ASKED, "no pair connected", "every pair of the cell")])


def _verdict(verdict: PatternVerdict) -> Markup:
    pattern = verdict.pattern
    return join(
        [
            paragraph(*universal_words(verdict.universal)),
            *(paragraph(reason) for reason in verdict.reasons),
            facts(
                {
                    "every token sees itself": "yes" if verdict.self_loops.holds else "no",
                    "path": verdict.path_result.status,
                    "receptive depth": verdict.depth,
                    "connections": ", ".join(f"{c:,}" for c in pattern.connections[:MOST_STEPS]),
                    "sparsity": cut(pattern.sparsity, 4),
                }
            ),
        ]
    )


def _pictures(verdict: PatternVerdict) -> Markup:
    pattern = verdict.pattern
    if pattern.n <= MOST_TOKENS:
        path = None if verdict.path is None else [int(k) for k in verdict.path]
        return pattern_pictures(np.asarray(pattern.mask()), pattern.name, path)
    return density_pictures(pattern)


def universal_words(universal: bool | None) -> tuple[str, str]:
    """The verdict in a sentence, and its tone."""
    return {
        True: ("Universal: every condition of the theorem holds.", "good"),
        False: ("Not universal.", "bad"),
        None: ("Undecided: the sufficient conditions fail or could not be decided, which is not a disproof.", ""),
    }[universal]


def density_pictures(pattern: Pattern) -> Markup:
    """How many pairs of each block are connected, for patterns with too many tokens to draw."""
    maps = [np.sqrt(density(step, CELLS)) - 1.0 for step in pattern.steps[:MOST_STEPS]]
    figures = [figure(svg.heat(m, -1.0, f"Step {l}", labels=False), f"Step {l}.") for l, m in enumerate(maps, 1)]
    share = (
        f"Too many tokens to draw one by one: each cell stands for {pattern.n / CELLS:,.1f} × {pattern.n / CELLS:,.1f} "
    )
    return join(
        [
            paragraph(share + "pairs; the stronger the colour, the more of them are connected (square root)."),
            panels(figures),
            density_key(),
        ]
    )


def _is_pattern(found: Found) -> bool:
    """A library pattern with its n, a mask, or a model's config."""
    from thereexists.patterns import REGISTRY

    if found.n is not None:
        return found.path.is_file() or (found.path / "config.json").is_file() or not found.path.exists()
    if str(found.path) in REGISTRY and not found.path.exists():
        return True
    if found.path.suffix == ".npz":
        return not is_sparse_matrix(found.path)
    is_model = (found.path / "config.json").is_file() and not (found.path / "result.json").is_file()
    return found.has("model_type") or is_model  # with a result it is a training of ours


def is_sparse_matrix(file: Path) -> bool:
    """Whether an .npz file is a sparse matrix of SciPy: a target of heads, not a mask."""
    from thereexists.core.plain_arrays import names_in

    return {"indices.npy", "format.npy"} <= names_in(file)


def _page(found: Found) -> Page:
    from thereexists.patterns import check

    return pattern_page(check(_load(found)))


def _load(found: Found) -> Pattern:
    from thereexists.patterns import REGISTRY, build, load_npz
    from thereexists.patterns.configs import load_config

    name, sizes = str(found.path), dict(found.sizes)
    if found.path.suffix == ".npz":
        if found.n is not None or sizes:
            raise InvalidInput("A mask file has its own sizes; leave out --n and --set.")
        return load_npz(found.path)
    if found.path.exists():
        unknown = sorted(set(sizes) - {"globals", "seed"})
        if unknown:
            raise InvalidInput(
                f"A model config has its own '{unknown[0]}'; only --n and --set globals=… or seed=… apply."
            )
        return load_config(found.path, n=found.n, **sizes)
    if name not in REGISTRY:
        raise InvalidInput(f"{name!r} is neither a pattern ({', '.join(REGISTRY)}) nor a file.")
    if found.n is None:
        raise InvalidInput(f"{name!r} needs a number of tokens: --n 64.")
    return build(name, found.n, **sizes)


KIND = Kind(
    "pattern",
    "a pattern (its name with --n, an .npz mask, or a model's config.json)",
    _is_pattern,
    _page,
    sized=True,
)
