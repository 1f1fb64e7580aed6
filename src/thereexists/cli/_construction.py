"""What ``plan`` and ``build`` are asked for: which function, and by which method."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from thereexists.cli import _complete
from thereexists.cli._applies import take_only
from thereexists.core.errors import InvalidInput

if TYPE_CHECKING:
    from thereexists.functions.target import Target
    from thereexists.patterns import Pattern
    from thereexists.witness.method import Method


@dataclass(frozen=True, kw_only=True)
class FunctionOptions:
    """Which function, on which domain, with which claims."""

    target: Annotated[
        str,
        typer.Argument(
            help="A built-in target (see `thereexists targets`); file.py:name, a function of arrays (batch, n, d), a "
            "program or an automaton; table.csv, with the header x1,…,xn,y1,…,yn and a row for every input; or "
            "regex:PATTERN. There are small ones in examples/data.",
            autocompletion=_complete.names(_complete.TARGETS),
        ),
    ]
    n: Annotated[
        int | None, typer.Option("--n", help="Number of tokens in a sequence; tables and programs know their own.")
    ] = None
    d: Annotated[int, typer.Option("--d", help="Number of features of a token.")] = 1
    lipschitz: Annotated[
        float | None,
        typer.Option(help="Lipschitz constant of your function, from the maximum norm to the maximum norm."),
    ] = None
    equivariant: Annotated[
        bool | None,
        typer.Option("--equivariant/--no-equivariant", help="Theorem 1 (claim checked first) or Theorem 2."),
    ] = None
    domain: Annotated[
        str | None,
        typer.Option(
            help="Range of every entry, as -2,5 (default 0,1), or of each feature, as '0,1;-2,5'; or simplex, "
            "'simplex whole', 'ball 0.5,0.5 0.3', 'ellipsoid 0.5,0.5 0.3,0.1', file.py:domain."
        ),
    ] = None
    compact_support: Annotated[
        bool,
        typer.Option("--compact-support", help="f is 0 outside its box: every input is accepted, on all of R^{d×n}."),
    ] = False
    alphabet: Annotated[
        str | None, typer.Option(help="The symbols of an automaton: characters, as ab01, or words separated by spaces.")
    ] = None

    def resolve(self) -> Target:
        from thereexists.functions.targets import resolve

        if self.n is None:
            raise InvalidInput("How many tokens does a sequence have? Say it with --n.")
        target = resolve(self.target, self.n, self.d, domain_of(self.domain, self.d))
        claims: dict[str, Any] = {"lipschitz": self.lipschitz, "equivariant": self.equivariant}
        claims["compact_support"] = self.compact_support or None
        return dataclasses.replace(target, **_said(claims))


def domain_of(text: str | None, d: int) -> Any:
    """What --domain names: a box by its numbers, or a set by its name."""
    from thereexists.functions.domains.stored import parsed

    first = next(iter((text or "").split()), "")
    return parsed(text or "") if ":" in (text or "") or first.isalpha() else box(text, d)


def box(text: str | None, d: int) -> tuple[Any, Any]:
    """The low and the high end that a domain names: one pair of numbers, or one for each feature."""
    if text is None:
        return 0.0, 1.0
    each = "" if d == 1 else f", or {d} such pairs with semicolons between"
    wanted = f"--domain takes two numbers, as -2,5, for all features{each}; got {text!r} instead."
    try:
        pairs = [[float(end) for end in pair.replace(",", " ").split()] for pair in text.split(";")]
    except ValueError:
        raise InvalidInput(wanted) from None
    if any(len(pair) != 2 for pair in pairs) or len(pairs) not in (1, d):
        raise InvalidInput(wanted)
    low, high = ([pair[k] for pair in pairs] for k in (0, 1))
    return (low[0], high[0]) if len(pairs) == 1 else (low, high)


class WithDomain(TyperCommand):
    """A command that also reads ``--domain -2 5``, in two words."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        from thereexists.cli._input import is_number

        place = args.index("--domain") + 1 if "--domain" in args else len(args)
        ends = args[place : place + 2]
        if len(ends) == 2 and all(map(is_number, ends)):
            args = [*args[:place], ",".join(ends), *args[place + 2 :]]
        return super().parse_args(ctx, args)


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """How it is constructed."""

    delta: Annotated[str | None, typer.Option(help="Grid width, such as 1/8.")] = None
    epsilon: Annotated[
        float | None, typer.Option(help="Required d_p: takes the coarsest grid of 1/2, 1/4, … proved to reach it.")
    ] = None
    p: Annotated[float, typer.Option("--p", help="The p of d_p.")] = 1.0
    pattern: Annotated[
        str | None,
        typer.Option(
            "--pattern",
            help="Sparse attention: a pattern's name (see `pattern list`) or an .npz mask.",
            autocompletion=_complete.names(_complete.PATTERNS),
        ),
    ] = None
    sizes: Annotated[list[str] | None, typer.Option("--set", help="A size of the pattern, as name=value.")] = None
    construction: Annotated[
        str | None,
        typer.Option(
            help="faithful (the default: the proof's own network, deep and narrow) or compact (for any runtime: four "
            "standard blocks for a function, three for a table). For an automaton: doubling or counting; by default "
            "the one with fewer blocks.",
            autocompletion=_complete.names(_complete.CONSTRUCTIONS),
        ),
    ] = None
    max_width: Annotated[
        int | None, typer.Option(help="Compact: spread feed-forward layers over blocks of at most this many units.")
    ] = None
    dtype: Annotated[str | None, typer.Option("--dtype", help="The dtype of a program or an automaton.")] = None

    def method(self, target: Target) -> Method:
        """``te.Faithful`` or ``te.Compact`` with what was said, and nothing else: it refuses what it does not have."""
        from thereexists.constructions.build import the_method

        return the_method(target, None, self.options(target.n))

    def options(self, n: int) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in ("construction", "max_width", "delta", "epsilon")}
        return _said(named | {"pattern": self.chosen_pattern(n)}) | {"p": self.p}

    def chosen_pattern(self, n: int) -> Pattern | None:
        if self.pattern is None:
            if self.sizes:
                raise InvalidInput("--set gives the sizes of a pattern; say which one with --pattern.")
            return None
        from thereexists.cli.pattern import assignment, load_pattern

        given = dict(assignment(text) for text in self.sizes or [])
        return load_pattern(self.pattern, None if Path(self.pattern).suffix == ".npz" else n, given)


@dataclass(frozen=True, kw_only=True)
class BuildMethodOptions(MethodOptions):
    """Also what a plan does not depend on."""

    rho: Annotated[str, typer.Option(help="Probability map of the attention: softmax or sparsemax.")] = "softmax"
    modified: Annotated[bool, typer.Option(help="Stop at the modified class: hardmax, three-piece φ.")] = False

    def options(self, n: int) -> dict[str, Any]:
        other = {"rho": None if self.rho == "softmax" else self.rho, "modified": self.modified or None}
        return super().options(n) | _said(other)


def is_program(function: FunctionOptions, method: MethodOptions) -> bool:
    """Whether a program is named; it takes --epsilon and --dtype, a function everything but --dtype."""
    from thereexists.cli.kinds import programs

    if not programs.is_program(function.target, function.n):
        if method.dtype is not None:
            raise InvalidInput("--dtype is for programs (file.py:name, without --n); a function is built in float64.")
        return False
    others = (method.delta, method.pattern, method.sizes, method.max_width)
    others += (function.lipschitz, function.equivariant, function.domain, function.compact_support or None)
    if any(option is not None for option in others):
        raise InvalidInput(
            "A program is built with --epsilon and --dtype; the other options are for functions, with --n."
        )
    take_only(
        ("target", "epsilon", "dtype", "out", "certify", "dry_run"), "a program takes --epsilon, --dtype and --out"
    )
    return True


def says_what_a_table_says(function: FunctionOptions, method: MethodOptions) -> bool:
    """Whether an option is given that a table brings itself, or has no use for."""
    others = (function.lipschitz, function.equivariant, function.n, function.domain, function.compact_support or None)
    if any(x is not None for x in (method.pattern, method.delta, method.epsilon, method.max_width, *others)):
        return True
    take_only(
        ("target", "construction", "out"), "a table takes --construction and --out: it has its own n, and no grid"
    )
    return False


def _said(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
