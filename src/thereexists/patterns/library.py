"""The patterns people use, each a few lines of symbols, and the registry that the command line reads.

STRIDED, FIXED, STAR and RANDOM are defined in paper B; the others come from the papers their docstrings name.
Longer than 400 lines because every pattern is a function of its own whose arguments and example stand beside it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from math import isqrt
from typing import Any

import numpy as np

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_numbers import seed_from
from thereexists.patterns.intervals import Documents
from thereexists.patterns.neighbourhood import Neighbourhood
from thereexists.patterns.numbers import of_kind, shown, whole
from thereexists.patterns.parts import Band, BlockBand, Explicit, Offsets, Part, Rect, Residue, Xor
from thereexists.patterns.pattern import Pattern
from thereexists.patterns.step import MOST_TOKENS, Step


@dataclass(frozen=True)
class Entry:
    """A registered pattern: its constructor, the sizes that suit a given n, one line about it, and what it costs.

    ``work`` of n and the sizes: at least the number of pairs that are listed or counted one by one to build it, token
    by token in every step. ``listed``: the union of its steps has no formula, all its pairs are listed.
    """

    build: Callable[..., Pattern]
    defaults: Callable[[int], dict[str, Any]]
    summary: str
    work: Callable[..., int]
    listed: bool

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(name for name in inspect.signature(self.build).parameters if name != "n")


MOST_STEPS = 1024  # of an alternating cycle
REGISTRY: dict[str, Entry] = {}


def _a_few(n: int, **sizes: Any) -> int:
    """Of patterns of a few formulas."""
    return n


def register(
    name: str, defaults: Callable[[int], dict[str, Any]], work: Callable[..., int] = _a_few, listed: bool = False
):
    """Enter a constructor under ``name``; a second one of the same name is refused."""

    def enter(build: Callable[..., Pattern]) -> Callable[..., Pattern]:
        if name in REGISTRY:
            raise InvalidInput(f"A pattern named '{name}' is registered already; choose another name.")
        summary = (build.__doc__ or "").strip().splitlines()[0].replace("``", "")
        checked = _checking(build)
        REGISTRY[name] = Entry(checked, defaults, summary, work, listed)
        return checked

    return enter


def _checking(build: Callable[..., Pattern]) -> Callable[..., Pattern]:
    """The constructor, which then takes exactly what its annotations say."""
    signature = inspect.signature(build)

    @wraps(build)
    def checked(*positional: Any, **named: Any) -> Pattern:
        given = signature.bind(*positional, **named)
        given.arguments.update(_of_kinds(signature, given.arguments))
        return build(*given.args, **given.kwargs)

    return checked


def _of_kinds(signature: inspect.Signature, given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: of_kind(value, signature.parameters[key].annotation, f"'{key}'") for key, value in given.items()}


def build(name: str, n: int, **parameters: Any) -> Pattern:
    """The registered pattern ``name`` over ``n`` tokens; parameters left out get sizes that suit ``n``.

        te.patterns.build("strided", 16, stride=4)

    Args:
        name: one of ``te.patterns.REGISTRY``.
        n: how many tokens.
        **parameters: sizes of the pattern.

    Returns:
        A pattern.

    Raises:
        InvalidInput: there is no such pattern, or it has no such size.
    """
    return known(name).build(n=n, **sizes_for(name, n, parameters))


def known(name: str) -> Entry:
    if not isinstance(name, str) or name not in REGISTRY:
        raise InvalidInput(f"There is no pattern named '{name}'. Known: {', '.join(REGISTRY)}.")
    return REGISTRY[name]


def sizes_for(name: str, n: int, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters, and for those left out sizes that suit ``n``."""
    entry = known(name)
    parameters = of_kinds(name, parameters)
    n = whole(n, "The number of tokens", least=1, most=MOST_TOKENS)  # before any list of that length is made
    defaults = entry.defaults(n)
    if "sparsity" in parameters:  # it takes the place of a degree
        defaults.pop("degree", None)
    return {**defaults, **parameters}


def of_kinds(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters in Python's own numbers; those that the pattern does not have, and other kinds, are refused."""
    entry = known(name)
    unknown = sorted(set(parameters) - set(entry.parameters))
    if unknown:
        raise InvalidInput(
            f"'{name}' has no parameter '{unknown[0]}'; it takes {', '.join(entry.parameters) or 'none besides n'}."
        )
    return _of_kinds(inspect.signature(entry.build), parameters)


def _root(n: int) -> int:
    return max(isqrt(n), 1)


def _divisor(n: int) -> int:
    """The divisor of n nearest below its square root."""
    return next(b for b in range(_root(n), 0, -1) if n % b == 0)


@register("dense", lambda n: {})
def dense(n: int) -> Pattern:
    """Every token attends to every token.

        te.patterns.dense(n=16)

    Args:
        n: how many tokens.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a positive whole number.
    """
    _size(n=n)
    return _pattern("dense", n, [Rect(range(n), range(n))])


@register("window", lambda n: {"window": min(_root(n), n)})
def window(n: int, window: int) -> Pattern:
    """Sliding window: tokens at distance at most ``window`` on either side.

        te.patterns.window(n=16, window=2)

    Args:
        n: how many tokens.
        window: how many tokens on either side.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a positive whole number.
    """
    _size(n=n, window=window)
    return _pattern("window", n, [Band(-window, window)], window=window)


def _offsets(n: int, window: int, dilation: int | Sequence[int]) -> int:
    dilations = (dilation,) if isinstance(dilation, int | np.integer) else dilation
    return sum(n * (2 * min(window, n // max(g, 1)) + 1) for g in dilations)


@register("dilated", lambda n: {"window": 4, "dilation": 2}, _offsets, listed=True)
def dilated(n: int, window: int, dilation: int | Sequence[int]) -> Pattern:
    """Dilated window: ``window`` tokens on either side, ``dilation`` apart; several dilations make a cycle.

        te.patterns.dilated(n=16, window=2, dilation=2)

    Args:
        n: how many tokens.
        window: how many tokens on either side.
        dilation: how far apart they are; several make a cycle of steps.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a positive whole number.
    """
    dilations = (dilation,) if isinstance(dilation, int | np.integer) else tuple(dilation)
    if not dilations:
        raise InvalidInput("'dilation' must be a positive integer or a list of them; got an empty list.")
    for g in dilations:
        _size(n=n, window=window, dilation=g)
    # Offsets of n and more lead nowhere, and a list of them could be of any length.
    reach = [min(window, (n - 1) // g) for g in dilations]
    steps = [[Offsets(tuple(range(-g * w, g * w + 1, g)))] for g, w in zip(dilations, reach, strict=True)]
    return _pattern("dilated", n, *steps, window=window, dilation=list(dilations))


@register("block_local", lambda n: {"block": _root(n)})
def block_local(n: int, block: int, shifted: bool = False) -> Pattern:
    """Blocks of ``block`` tokens, each to itself; ``shifted`` adds a second step with the blocks moved by half.

        te.patterns.block_local(n=16, block=4, shifted=True)

    Args:
        n: how many tokens.
        block: tokens in a block.
        shifted: whether a second step has the blocks moved by half.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a positive whole number.
    """
    _size(n=n, block=block)
    steps: list[list[Part]] = [[BlockBand(block)]]
    if shifted:
        steps.append([BlockBand(block, shift=block // 2)])
    return _pattern("block_local", n, *steps, block=block, shifted=shifted)


@register("strided", lambda n: {"stride": _root(n)})
def strided(n: int, stride: int) -> Pattern:
    """STRIDED (paper B): a window of ``stride`` on either side, then every ``stride``-th token.

        te.patterns.strided(n=16, stride=4)

    Args:
        n: how many tokens.
        stride: how far the window reaches, and how far apart the tokens of the second step are.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a positive whole number.
    """
    _size(n=n, stride=stride)
    return _pattern("strided", n, [Band(-stride, stride)], [Residue(stride)], stride=stride)


@register("fixed", lambda n: {"stride": _root(n)})
def fixed(n: int, stride: int) -> Pattern:
    """FIXED (paper B): the token's own block of ``stride`` tokens, then the last token of every block.

        te.patterns.fixed(n=16, stride=4)

    Args:
        n: how many tokens.
        stride: tokens in a block.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a positive whole number.
    """
    _size(n=n, stride=stride)
    # The last block may be short; its last token is n − 1.
    lasts = range(stride - 1, n, stride) if n % stride == 0 else np.append(np.arange(stride - 1, n, stride), n - 1)
    return _pattern("fixed", n, [BlockBand(stride)], [Band(0, 0), Rect(range(n), lasts)], stride=stride)


@register("star", lambda n: {})
def star(n: int) -> Pattern:
    """STAR (paper B): a ring of n − 1 tokens, one neighbour on either side, and a relay that sees and is seen by all.

        te.patterns.star(n=16)

    Args:
        n: how many tokens.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a positive whole number.
    """
    _size(n=n)
    relay, end = n - 1, max(n - 2, 0)
    # Band(−1, 1) also joins n − 2 with the relay, which the relay's own row and column contain anyway.
    ring = [Band(-1, 1), Rect(_one(0), _one(end)), Rect(_one(end), _one(0))]
    return _pattern("star", n, [*ring, Rect(range(n), _one(relay)), Rect(_one(relay), range(n))])


@register("longformer", lambda n: {"window": min(_root(n), n), "globals": 1})
def longformer(n: int, window: int, globals: int | Sequence[int] = 1) -> Pattern:
    """Longformer (Beltagy et al. 2020): a window, and global tokens that see and are seen by all.

        te.patterns.longformer(n=16, window=2)

    Args:
        n: how many tokens.
        window: how many tokens on either side.
        globals: how many tokens, from the first on, see and are seen by all; or which.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a positive whole number.
    """
    _size(n=n, window=window)
    tokens = _tokens(n, globals)
    return _pattern("longformer", n, [Band(-window, window), *_hubs(n, tokens)], window=window, globals=len(tokens))


@register(
    "bigbird",
    lambda n: {"block": _divisor(n), "seed": 0, "random_blocks": min(3, n // _divisor(n) - 1)},
    lambda n, block, random_blocks=3, **_: _drawn(-(-n // max(block, 1)), random_blocks) + n * random_blocks * block,
)
def bigbird(n: int, block: int, random_blocks: int = 3, seed: int = 0) -> Pattern:
    """BigBird (Zaheer et al. 2020): blocks; own and neighbouring, first and last global, some at random (seeded).

        te.patterns.bigbird(n=16, block=2)

    Args:
        n: how many tokens.
        block: tokens in a block.
        random_blocks: blocks that every block sees at random.
        seed: of the random blocks.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a positive whole number.
    """
    _size(n=n, block=block)
    if n % block:
        raise InvalidInput(f"bigbird needs n to be a multiple of its block; got n = {n} and block = {block}.")
    seed_from(seed)
    blocks = n // block
    if not 0 <= random_blocks < blocks:
        raise InvalidInput(f"'random_blocks' must lie in 0..{blocks - 1} for {blocks} blocks; got {random_blocks}.")
    ends = range(n) if n <= 2 * block else np.r_[0:block, n - block : n]
    parts: list[Part] = [BlockBand(block, -1, 1), *_hubs(n, ends)]
    if random_blocks:
        columns = _random_rows(blocks, random_blocks, seed)  # (blocks, random_blocks)
        tokens = (columns[:, :, None] * block + np.arange(block)).reshape(blocks, -1)
        indices = np.repeat(tokens, block, axis=0).ravel()
        parts.append(Explicit(np.arange(n + 1) * random_blocks * block, indices))
    return _pattern("bigbird", n, parts, block=block, random_blocks=random_blocks, seed=seed)


@register("logsparse", lambda n: {}, lambda n: 2 * n * n.bit_length())
def logsparse(n: int) -> Pattern:
    """LogSparse (Li et al. 2019), looking both ways: distances 0, 1, 2, 4, 8, …; its causal version is the original.

        te.patterns.logsparse(n=16)

    Args:
        n: how many tokens.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a positive whole number.
    """
    _size(n=n)
    powers = [1 << i for i in range((int(n) - 1).bit_length())]
    return _pattern("logsparse", n, [Offsets(tuple([-o for o in reversed(powers)] + [0] + powers))])


@register("axial", lambda n: {"columns": _divisor(n)})
def axial(n: int, columns: int) -> Pattern:
    """Axial (Ho et al. 2019): the tokens form a grid; each sees its own row, then its own column.

        te.patterns.axial(n=16, columns=4)

    Args:
        n: how many tokens.
        columns: the length of a row of the grid.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a positive whole number, or the grid is not full.
    """
    _size(n=n, columns=columns)
    if n % columns:
        raise InvalidInput(f"axial needs n to be a multiple of 'columns'; got n = {n} and columns = {columns}.")
    return _pattern("axial", n, [BlockBand(columns)], [Residue(columns)], columns=columns)


@register("butterfly", lambda n: {}, lambda n: n * n.bit_length(), listed=True)
def butterfly(n: int) -> Pattern:
    """Butterfly: step l pairs every token with the one whose number differs in bit l; n is a power of two.

        te.patterns.butterfly(n=16)

    Args:
        n: how many tokens.

    Returns:
        A pattern.

    Raises:
        InvalidInput: n is not a power of two.
    """
    _size(n=n)
    if n & (n - 1):
        raise InvalidInput(f"butterfly needs n to be a power of two; got n = {n}.")
    return _pattern("butterfly", n, *([[Xor(1 << l)] for l in range(int(n).bit_length() - 1)] or [[Band(0, 0)]]))


@register("alternating", lambda n: {"window": min(_root(n), n), "period": 2}, lambda n, period=2, **_: n * period)
def alternating(n: int, window: int, period: int = 2) -> Pattern:
    """Alternating local/global: ``period`` − 1 steps with a sliding window, then one that sees everything.

        te.patterns.alternating(n=16, window=2)

    Args:
        n: how many tokens.
        window: how many tokens on either side.
        period: how many steps, of which the last sees everything.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a positive whole number.
    """
    _size(n=n, window=window, period=period)
    if period > MOST_STEPS:
        raise InvalidInput(f"A cycle has at most {MOST_STEPS:,} steps here; got period = {shown(period)}.")
    steps: list[list[Part]] = [[Band(-window, window)] for _ in range(period - 1)]
    return _pattern("alternating", n, *steps, [Rect(range(n), range(n))], window=window, period=period)


def _random_pairs(n: int, degree: int | None = None, sparsity: float | None = None, **_: Any) -> int:
    share = min(16, n - 1) if degree is None else degree
    return _drawn(n, share if sparsity is None else round((1 - sparsity) * n))


@register("sink_window", lambda n: {"window": min(_root(n), n), "sinks": min(4, n)})
def sink_window(n: int, window: int, sinks: int = 4) -> Pattern:
    """Window with sinks (Xiao et al. 2023, StreamingLLM): a window, and the first ``sinks`` tokens, seen by all.

        te.patterns.sink_window(n=16, window=2)

    Args:
        n: how many tokens.
        window: how many tokens on either side.
        sinks: how many tokens, from the first on, are seen by all.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a positive whole number.
    """
    _size(n=n, window=window, sinks=sinks)
    parts = [Band(-window, window), Rect(range(n), range(min(sinks, n)))]
    return _pattern("sink_window", n, parts, window=window, sinks=sinks)


@register("prefix_lm", lambda n: {"prefix": max(n // 4, 1)})
def prefix_lm(n: int, prefix: int) -> Pattern:
    """Prefix-LM (Raffel et al. 2019): the first ``prefix`` tokens see each other, all others what came before.

        te.patterns.prefix_lm(n=16, prefix=4)

    Args:
        n: how many tokens.
        prefix: how many tokens see each other.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a positive whole number.
    """
    _size(n=n, prefix=prefix)
    first = range(min(prefix, n))
    return _pattern("prefix_lm", n, [Band(-n, 0), Rect(first, first)], prefix=prefix)


@register("documents", lambda n: {"lengths": _root(n)})
def documents(n: int, lengths: int | Sequence[int]) -> Pattern:
    """Packed documents that do not see each other: all of one length (the last may be shorter), or of given lengths.

        te.patterns.documents(n=16, lengths=4)

    Args:
        n: how many tokens.
        lengths: of all documents, or of each.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a length is not a positive whole number, or they do not add up to n.
    """
    lengths = int(lengths) if isinstance(lengths, np.integer) else lengths
    given = [lengths] if isinstance(lengths, int) else list(lengths)
    for length in given:
        _size(n=n, lengths=length)
    if not isinstance(lengths, int) and sum(given) != n:
        raise InvalidInput(f"The lengths of the documents must add up to n = {n}; got {sum(given)}.")
    starts = np.arange(0, n, lengths) if isinstance(lengths, int) else np.cumsum([0, *given[:-1]])
    return _pattern("documents", n, [Documents(starts)], lengths=lengths if isinstance(lengths, int) else given)


@register("neighbourhood", lambda n: {"shape": [n // _divisor(n), _divisor(n)], "window": 3})
def neighbourhood(n: int, shape: int | Sequence[int], window: int | Sequence[int] = 3) -> Pattern:
    """Neighbourhood (Hassani et al. 2023, NATTEN): a window in each direction of a grid, moved inwards at borders.

        te.patterns.neighbourhood(n=16, shape=4, window=3)

    ``shape`` has the sides of the grid; one number is the length of a row. Windows are odd.

    Args:
        n: how many tokens.
        shape: the sides of the grid, or the length of a row.
        window: its sides, odd numbers.

    Returns:
        A pattern.

    Raises:
        InvalidInput: the grid is not full, or a window is even or larger than the grid.
    """
    _size(n=n)
    if isinstance(shape, int | np.integer):
        _size(shape=shape)
        shape = [n // shape, shape]
    sides = list(shape)
    windows = [window] * len(sides) if isinstance(window, int | np.integer) else list(window)
    if not sides or len(windows) != len(sides) or int(np.prod([float(side) for side in sides])) != n:
        raise InvalidInput(f"'shape' must multiply to n = {n}, with a window for each side; got {sides} and {windows}.")
    for side, w in zip(sides, windows, strict=True):
        _size(shape=side, window=w)
        if w % 2 == 0:
            raise InvalidInput(
                f"'window' of a neighbourhood must be odd, so that it reaches equally far to either side; got {w}."
            )
    kept = tuple(min(w, side) for w, side in zip(windows, sides, strict=True))
    return _pattern("neighbourhood", n, [Neighbourhood(tuple(sides), kept)], shape=sides, window=windows)


@register("random", lambda n: {"degree": min(16, n - 1), "seed": 0}, _random_pairs)
def random(n: int, degree: int | None = None, sparsity: float | None = None, seed: int = 0) -> Pattern:
    """RANDOM (paper B): the token itself and ``degree`` others (or a given ``sparsity``), drawn by a seed.

        te.patterns.random(n=16, degree=3)

    Args:
        n: how many tokens.
        degree: how many others a token sees.
        sparsity: the share of pairs that are not connected, instead of ``degree``.
        seed: of the draw.

    Returns:
        A pattern.

    Raises:
        InvalidInput: a size is not a whole number in its range.
    """
    _size(n=n)
    seed_from(seed)
    if sparsity is not None:
        if degree is not None or not 0 <= sparsity <= 1:
            raise InvalidInput(f"Give either 'degree' or a 'sparsity' in [0, 1]; got {degree} and {sparsity}.")
        degree = min(max(round((1 - sparsity) * n) - 1, 0), n - 1)
    degree = min(16, n - 1) if degree is None else degree
    if not 0 <= degree < n:
        raise InvalidInput(f"'degree' must lie in 0..{n - 1} for n = {n}; got {degree}.")
    others = _random_rows(n, degree, seed)
    rows = np.sort(np.concatenate([np.arange(n)[:, None], others], axis=1), axis=1)
    parts = [Explicit(np.arange(n + 1) * (degree + 1), rows.ravel())]
    return _pattern("random", n, parts, degree=degree, seed=seed)


def _pattern(kind: str, n: int, *steps: Sequence[Part], **parameters: Any) -> Pattern:
    return Pattern(kind, tuple(Step(n, tuple(parts)) for parts in steps), parameters)


def _one(token: int) -> range:
    return range(token, token + 1)


def _hubs(n: int, tokens: range | np.ndarray) -> list[Part]:
    return [Rect(range(n), tokens), Rect(tokens, range(n))] if len(tokens) else []


def _random_rows(n: int, degree: int, seed: int) -> np.ndarray:
    """``degree`` distinct members of ``[n] \\ {k}`` for every ``k``, uniform, each row ascending."""
    rng = np.random.default_rng(seed_from(seed))
    if degree > (n - 1) // 8:  # many: the smallest of n − 1 random keys
        others = np.argsort(rng.random((n, n - 1)), axis=1)[:, :degree]
    else:  # few: draw again the rows that drew a token twice
        others = rng.integers(0, n - 1, (n, degree))
        while True:
            others.sort(axis=1)
            twice = np.flatnonzero((np.diff(others, axis=1) == 0).any(axis=1))
            if not len(twice):
                break
            others[twice] = rng.integers(0, n - 1, (len(twice), degree))
    others = np.sort(others, axis=1)
    return others + (others >= np.arange(n)[:, None])  # step over k itself


def _drawn(n: int, degree: int) -> int:
    """How many numbers ``_random_rows`` draws, and one's own."""
    return n * (n if degree > (n - 1) // 8 else degree + 1)


def _tokens(n: int, tokens: int | Sequence[int]) -> range | np.ndarray:
    """A number of leading tokens, or a list of tokens."""
    if isinstance(tokens, int):
        if not 0 <= tokens <= n:
            raise InvalidInput(f"'globals' must lie in 0..{n} for n = {n}; got {tokens}.")
        return range(tokens)
    out = np.unique(np.asarray(tokens, np.int64))
    if len(out) and not (out[0] >= 0 and out[-1] < n):
        raise InvalidInput(f"Global tokens must lie in 0..{n - 1}; got {int(out[0] if out[0] < 0 else out[-1])}.")
    return out


def _size(**sizes: int) -> None:
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InvalidInput(f"'{name}' must be a positive integer; got {shown(value)}.")
        if name == "n" and value > MOST_TOKENS:
            raise InvalidInput(f"A pattern has at most {MOST_TOKENS:,} tokens; got {shown(value)}.")
