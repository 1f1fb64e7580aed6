"""Every operation of a causal program over the reals: what is written, where the result lies, how it carries errors.

An entry takes the network so far, the operation's settings, and its values feature by feature, and gives features. Let
x̃ be the number that the form of x is in a run, and |x̃ − x| ≤ e. What a row adds to a form is the operation *of x̃*, up
to what its layer does to it (``proof.py``); so the result is off by what the operation makes of e, ``grows``, and by
that. max(ã, b̃) = ã + ReLU(b̃ − ã) is off by max(e_a, e_b), though ã stands in it three times.

``lean``: a row is the result less a linear part of what is given; it lies where its ``span`` says, or further off by
what ``grows`` and the linear part make of the errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from thereexists.certificates.llama.reals.network import (
    CONSTANT,
    Fetched,
    Form,
    Hinge,
    Hinges,
    Network,
    Products,
    Real,
    check_numbers,
    size_of,
    summed,
    wider,
)
from thereexists.certificates.program_numbers import Number, above, exact, linear_weights
from thereexists.certificates.program_splines import Spline, spline_error
from thereexists.core.errors import NotProved
from thereexists.functions.target import Array

Features = list[Real]
_LEAST_EXPONENT = -30  # of an end of ``clip``: a value that is 0 has no size
_PER_KNOT = 32  # what an enclosure of the function between two knots counts for
_UP = 1 + 2.0**-40  # for errors that are computed here in float64


def network_of(program: dict[str, Any]) -> Network:
    """The whole program; ``NotProved`` with the operation that a checkpoint cannot run."""
    network, values = Network(program["n"]), []
    for node in program["nodes"]:
        if node["operation"] not in OPERATIONS:
            raise NotProved(f"'{node['operation']}' {_REASONS.get(node['operation'], _ALL)}")
        found = OPERATIONS[node["operation"]](network, node["settings"], *(values[k] for k in node["arguments"]))
        values.append(found)
    network.outputs = values[-1]
    return network


_ALL = "is taken over all tokens, and a head of Llama sees those up to its own."
_REASONS = {
    "attend": "weighs tokens by data, and no bound on such weights is proved here.",
    "soft_largest": "weighs tokens by data, and no bound on such weights is proved here.",
}


# --- linear: nothing is written -------------------------------------------------------------------------------------


def _tokens(network: Network, settings: dict[str, Any]) -> Features:
    return [network.input(float(settings["low"]), float(settings["high"])) for _ in range(settings["d"])]


def _constant(network: Network, settings: dict[str, Any]) -> Features:
    return [network.table(column) for column in np.array(settings["array"], dtype=np.float64).T.copy()]


def _linear(network: Network, settings: dict[str, Any], *values: Features) -> Features:
    weights = linear_weights(settings)
    return [network.combined(list(zip(weights, parts, strict=True))) for parts in zip(*values, strict=True)]


def _mix(network: Network, settings: dict[str, Any], x: Features) -> Features:
    rows = [[(exact(c), real) for c, real in zip(row, x, strict=True) if c] for row in settings["matrix"]]
    return [network.combined(parts) for parts in rows]


# --- hinges ---------------------------------------------------------------------------------------------------------


def _relu(network: Network, settings: dict[str, Any], x: Features) -> Features:
    return [_bent(network, (Hinge(1, v),), 0, (np.maximum(v.low, 0), np.maximum(v.high, 0))) for v in x]


def _abs(network: Network, settings: dict[str, Any], x: Features) -> Features:
    """ReLU(v) + ReLU(−v)."""
    ends = [(np.maximum(np.maximum(v.low, -v.high), 0), v.size) for v in x]
    return [_bent(network, (Hinge(1, v), Hinge(1, v, sign=-1)), 0, part) for v, part in zip(x, ends, strict=True)]


def _clip(network: Network, settings: dict[str, Any], x: Features) -> Features:
    """low + ReLU(v − low) − ReLU(v − high), with ends that are not far from where v is.

    An end beyond R > |v| is as good at R, wherever v is: the result is the same function of v there, and off that range
    still one that is 1 steep at most. No weight has to hold what is never reached.
    """
    least, most = exact(settings["low"]), exact(settings["high"])
    if least > most:
        raise NotProved("'clip' takes ends low ≤ high.")

    def one(v: Real) -> Real:
        R = exact(2.0 ** max(math.frexp(float(v.size.max()))[1], _LEAST_EXPONENT))  # a power of two above |v|
        if least > R or most < -R:
            return network.number(least if least > R else most)
        bottom, top = max(least, -R), min(most, R)
        low, high = (np.clip(end, float(bottom), float(top)) for end in (v.low, v.high))
        return _bent(network, (Hinge(1, v, -bottom), Hinge(-1, v, -top)), bottom, (low, high))

    return [one(v) for v in x]


def _interp(network: Network, settings: dict[str, Any], x: Features) -> Features:
    spline = Spline.of({**settings, "function": "", "curvature": 0.0})
    return [_splined(network, v, spline, 0.0) for v in x]


def _apply(network: Network, settings: dict[str, Any], x: Features) -> Features:
    """The spline, and how far it is from the function where v is."""
    if not settings["function"]:
        raise NotProved("'apply' of a function of your own: what is said of its curvature is only its author's word.")
    spline = Spline.of(settings)

    known: dict[tuple[Number, Number], float] = {}  # features of one range have one error

    def one(v: Real) -> Real:
        ends = _ends(v)
        if ends not in known:
            network.work(_PER_KNOT * len(settings["knots"]))
            error = spline_error(spline, 0.0, *ends)
            known[ends] = (error.own + (error.slope * error.outside if error.outside > 0 else 0.0)) * _UP
        if not np.isfinite(known[ends]):
            raise NotProved(f"'apply' of {spline.name} has an argument on which the function is not known.")
        return _splined(network, v, spline, known[ends])

    return [one(v) for v in x]


def _splined(network: Network, v: Real, spline: Spline, own: float) -> Real:
    """f(t_0) + Σ_k (change of slope)·ReLU(v − t_k)."""
    network.work(len(spline.knots))
    check_numbers(c for _, c in spline.jumps)
    low, high = (float(end) for end in spline.range(*_ends(v)))
    size = np.full(network.n, abs(low) + abs(high) + own)
    ends = wider(np.full(network.n, low - own), np.full(network.n, high + own), size, 2)
    if not spline.jumps:
        always = network.number(spline.values[0]).form
        return network.added(Real(always, *ends, (v,), lambda e: np.full(network.n, own)))
    parts = tuple(Hinge(c, v, -t) for t, c in spline.jumps)
    return _bent(network, parts, spline.values[0], ends, spline.steepest, own)


def _bent(
    network: Network, parts: tuple[Hinge, ...], constant: Number, ends: tuple[Array, Array], steep: float = 1.0,
    own: float = 0.0,
) -> Real:  # fmt: skip
    """constant + hinges of one number: a function of it that is ``steep`` at most, and ``own`` beside the program's."""

    def grows(e: Array) -> Array:
        return (steep * e + own) * _UP

    return _hinged(network, (parts[0].of,), parts, network.number(constant), (*ends, grows), (0.0,))


def _maximum(network: Network, settings: dict[str, Any], a: Features, b: Features) -> Features:
    return _extreme(network, a, b, 1)


def _minimum(network: Network, settings: dict[str, Any], a: Features, b: Features) -> Features:
    return _extreme(network, a, b, -1)


def _extreme(network: Network, a: Features, b: Features, sign: int) -> Features:
    """a + ReLU(b − a), or a − ReLU(a − b)."""
    better = np.maximum if sign > 0 else np.minimum

    def one(v: Real, w: Real) -> Real:
        parts = (Hinge(sign, network.combined([(sign, w), (-sign, v)])),)
        known = better(v.low, w.low), better(v.high, w.high), lambda e_v, e_w: np.maximum(e_v, e_w)
        return _hinged(network, (v, w), parts, v, known, (1.0, 0.0))

    return [one(v, w) for v, w in zip(a, b, strict=True)]


def _where(network: Network, settings: dict[str, Any], g: Features, a: Features, b: Features) -> Features:
    """l + ReLU(a − l − R(1 − g)) + ReLU(b − l − R g); for a flag of zeros and ones that is known, the choice itself.

    Where a or b may leave [l, l + R], by v below and w above, formula and choice differ by at most v + w.
    """
    least, R = exact(settings["bottom"]), exact(settings["height"])
    l, height = float(least), abs(float(R))

    def one(flag: Real, v: Real, w: Real) -> Real:
        bottom, top = exact(min(v.low.min(), w.low.min())), exact(max(v.high.max(), w.high.max()))
        missed = above(exact(max(least - bottom, 0) + max(top - least - R, 0)))
        if flag.known and np.isin(flag.low, (0.0, 1.0)).all():
            return _chosen(network, flag.low == 1, v, w, missed)
        first, second = network.combined([(1, v), (R, flag)]), network.combined([(1, w), (-R, flag)])
        parts = Hinge(1, first, -least - R), Hinge(1, second, -least)
        most = np.zeros(network.n)
        for end in (flag.low, flag.high):
            open_v, open_w = v.high - l - float(R) * (1 - end), w.high - l - float(R) * end
            most = np.maximum(most, np.maximum(open_v, 0) + np.maximum(open_w, 0))

        def grows(e_g: Array, e_v: Array, e_w: Array) -> Array:
            return (e_v + e_w + height * e_g + missed) * _UP

        size = 4 * (abs(l) + height * (1 + flag.size)) + v.size + w.size + missed
        known = *wider(np.full(network.n, l - missed), l + most + missed, size, 16), grows
        return _hinged(network, (flag, v, w), parts, network.number(least), known, (0.0, 0.0, 0.0))

    return [one(*parts) for parts in zip(g, a, b, strict=True)]


def _hinged(
    network: Network, given: tuple[Real, ...], parts: tuple[Hinge, ...], beside: Real,
    known: tuple[Array, Array, Callable[..., Array]], lean: tuple[float, ...],
) -> Real:  # fmt: skip
    """``beside`` + the row of these hinges; ``known``: the ends of that, and how errors grow."""
    low, high, grows = known
    span = size_of(*wider(low - beside.high, high - beside.low, size_of(low, high) + beside.size, 2))
    network.work(sum(1 + len(part.of.form) for part in parts))
    row, layer, units = network.unit_row([part.form for part in parts], len(parts), span)
    write = Hinges(row, layer, lean, units, parts)
    return network.added(Real(summed([(1, beside.form), (1, {row: 1})]), low, high, given, grows, write))


# --- products -------------------------------------------------------------------------------------------------------


def _scale(network: Network, settings: dict[str, Any], x: Features) -> Features:
    """A factor for every position: gates that are open by so much, those of a negative factor apart."""

    def one(v: Real, factors: Array) -> Real:
        if (factors == factors[0]).all():
            return network.combined([(exact(factors[0]), v)])
        parts = [
            (sign, _gate(network, np.maximum(sign * factors, 0.0)), v) for sign in (1, -1) if (sign * factors > 0).any()
        ]
        ends = factors * v.low, factors * v.high
        return _multiplied(network, parts, factors, (np.minimum(*ends), np.maximum(*ends)), 0.0)

    return [one(v, column) for v, column in zip(x, np.array(settings["factors"], dtype=np.float64).T, strict=True)]


def _gate(network: Network, factors: Array) -> Real:
    """Factors ≥ 0, and below 0 where they are 0: a gate of that is shut."""
    return network.table(np.where(factors > 0, factors, -factors[factors > 0].min()))


def _chosen(network: Network, first: Array, v: Real, w: Real, missed: float) -> Real:
    """v where ``first``, w elsewhere."""
    if first.all() or not first.any():
        one = v if first.all() else w
        ends = wider(one.low - missed, one.high + missed, one.size + missed, 2)
        return network.added(Real(one.form, *ends, (one,), lambda e: (e + missed) * _UP)) if missed else one
    flags = [(v, first * 1.0), (w, 1.0 - first)]
    parts = [(1, _gate(network, flag), real) for real, flag in flags if real.form or not real.exact]
    if not parts:
        return network.number(0)
    ends = np.where(first, v.low, w.low) - missed, np.where(first, v.high, w.high) + missed
    return _multiplied(network, parts, np.ones(network.n), ends, missed)


def _multiplied(
    network: Network, parts: list[tuple[int, Real, Real]], factors: Array, ends: tuple[Array, Array], missed: float
) -> Real:
    """Σ ± gate·real, gates being tables that are never open together. Off by |f|e + |x|e_f + e e_f where one is."""
    size = np.abs(factors)

    def grows(*errors: Array) -> Array:
        total = np.full(network.n, missed)
        for k, (_, gate, real) in enumerate(parts):
            e_gate, e = errors[2 * k], errors[2 * k + 1]
            total = total + np.where(gate.low > 0, size * e + (real.size + e) * e_gate, 0.0)
        return total * _UP

    given = tuple(real for _, gate, real in parts for real in (gate, real))
    return _produced(
        network, given, list(parts), {}, (*wider(*ends, size_of(*ends) + missed, 2), grows), (0.0,) * len(given)
    )


def _multiply(network: Network, settings: dict[str, Any], a: Features, b: Features) -> Features:
    """(a + s)·b − s·b, with s so large that the gate a + s is open: the product itself, and no spline."""

    def one(v: Real, w: Real) -> Real:
        most = float(v.size.max())
        if v.exact or w.exact:
            number, other = (v, w) if v.exact else (w, v)
            return network.combined([(number.form.get(CONSTANT, 0), other)])
        s = exact(2.0 ** (np.ceil(np.log2(max(most, 2.0**-30))) + 1))
        gate = network.combined([(1, v)], s)
        corners = np.stack([v.low * w.low, v.low * w.high, v.high * w.low, v.high * w.high])
        ends = wider(corners.min(axis=0), corners.max(axis=0), v.size * w.size, 1)

        def grows(e_gate: Array, e_w: Array) -> Array:
            return (v.size * e_w + w.size * e_gate + e_gate * e_w) * _UP

        form = {row: exact(-s * c) for row, c in w.form.items()}
        return _produced(network, (gate, w), [(1, gate, w)], form, (*ends, grows), (0.0, float(s)))

    return [one(v, w) for v, w in zip(a, b, strict=True)]


def _produced(
    network: Network, given: tuple[Real, ...], parts: list[tuple[Number, Real, Real]], beside: Form,
    known: tuple[Array, Array, Callable[..., Array]], lean: tuple[float, ...],
) -> Real:  # fmt: skip
    low, high, grows = known
    span = np.sum([abs(float(a)) * np.maximum(gate.high, 0) * of.size for a, gate, of in parts], axis=0) * _UP
    forms = [form for _, gate, of in parts for form in (gate.form, of.form)]
    network.work(sum(map(len, forms)))
    row, layer, units = network.unit_row(forms, len(parts), span)
    write = Products(row, layer, lean, units, tuple(parts))
    return network.added(Real(summed([(1, beside), (1, {row: 1})]), low, high, given, grows, write))


# --- other tokens ---------------------------------------------------------------------------------------------------


def _take(network: Network, settings: dict[str, Any], x: Features) -> Features:
    source = np.array(settings["source"])
    if (source > np.arange(network.n)).any():
        raise NotProved(
            f"'{settings['called'][:40]}' looks at later tokens, and a head of Llama at those up to its own."
        )
    if (source == np.arange(network.n)).all():
        return x
    return [_looked(network, v, tuple(source.tolist()), lambda part: part[source]) for v in x]


def _prefix_mean(network: Network, settings: dict[str, Any], x: Features) -> Features:
    return [_looked(network, v, None, means) for v in x]


def means(part: Array) -> Array:
    """Of the tokens up to each: (n, …)."""
    count = np.arange(1, len(part) + 1.0)
    return np.cumsum(part, axis=0) / count.reshape(-1, *([1] * (part.ndim - 1)))


def _looked(network: Network, v: Real, source: tuple[int, ...] | None, moved: Callable[[Array], Array]) -> Real:
    if v.exact:
        return v
    low, high = wider(moved(v.low), moved(v.high), moved(v.size), network.n)
    row, layer, head, slot = network.fetched_row(v.form, source, size_of(low, high))
    write = Fetched(row, layer, (0.0,), head, slot, v, source)
    return network.added(Real({row: 1}, low, high, (v,), lambda e: moved(e) * _UP, write))


def _ends(v: Real) -> tuple[Number, Number]:
    return exact(float(v.low.min())), exact(float(v.high.max()))


OPERATIONS: dict[str, Callable[..., Features]] = {
    "tokens": _tokens,
    "constant": _constant,
    "linear": _linear,
    "mix": _mix,
    "scale": _scale,
    "take": _take,
    "prefix_mean": _prefix_mean,
    "relu": _relu,
    "abs": _abs,
    "clip": _clip,
    "maximum": _maximum,
    "minimum": _minimum,
    "where": _where,
    "interp": _interp,
    "apply": _apply,
    "multiply": _multiply,
}
