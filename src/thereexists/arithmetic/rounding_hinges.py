"""What a feed-forward half does to intervals and errors: rule 4 of ``rounding.py``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thereexists.arithmetic.dtype_sums import Arithmetic, State, exact_sum, quantum
from thereexists.arithmetic.outward import added, enlarged, own_error, product_up, sum_down, sum_up
from thereexists.functions.target import Array


def feed_forward(arithmetic: Arithmetic, state: State, weights: dict[str, Array]) -> State:
    W_1, b_1, W_2, b_2 = (weights[k] for k in ("W_1", "b_1", "W_2", "b_2"))
    f, f_rounding = arithmetic.matmul(state, W_1, b_1)
    closed = f.high <= 0
    high = np.maximum(f.high, 0.0)
    hidden = State(np.maximum(f.low, 0.0), high, np.minimum(f.error, high), np.where(closed, np.inf, f.quantum))
    f_rounding = np.where(closed, 0.0, f_rounding)
    written, rounding = arithmetic.matmul(hidden, W_2, b_2)
    plain, last = arithmetic.add(state, written)
    rounding = enlarged(rounding + last + product_up(f_rounding, np.abs(arithmetic.rounded(W_2)[0]).T))
    low, high, error = plain.low.copy(), plain.high.copy(), plain.error.copy()
    for row in np.flatnonzero(W_2.any(axis=1)).tolist():
        line, units = _folded(W_1, b_1, W_2[row], float(b_2[row]), row)
        tight = _hinge(state, hidden, line, units, W_1, b_1)
        r = rounding[:, row]
        low[:, row] = np.maximum(low[:, row], sum_down(tight[0], -r))
        high[:, row] = np.minimum(high[:, row], sum_up(tight[1], r))
        error[:, row] = np.minimum(error[:, row], sum_up(tight[2], r))
    return arithmetic.with_quantum(State(low, high, np.minimum(error, sum_up(high, -low)), plain.quantum))


@dataclass(frozen=True)
class Line:
    """Coefficients of the rows, the last one of 1, as float64; each is off by at most ``off`` from what is meant."""

    coefficients: Array
    off: Array

    @classmethod
    def of(cls, w: Array, b: float) -> Line:
        return cls(np.append(w, b), np.zeros(len(w) + 1))

    def plus(self, c: float, other: Line) -> Line:
        """One more multiple of a line that is not off."""
        return Line(*added(self.coefficients, self.off, c, other.coefficients))


def _folded(W_1: Array, b_1: Array, c: Array, b_2: float, row: int) -> tuple[Line, list[tuple[int, float]]]:
    """z_row + Σ c_u ReLU(f_u) + b_2 as a line and units: c·ReLU(f) + e·ReLU(−f) = c·f + (c + e)·ReLU(−f).

    Two units whose c + e is no float64 stay two units.
    """
    line = Line.of(np.eye(1, W_1.shape[1], row)[0], b_2)
    seen: dict[bytes, int] = {}
    units: dict[int, float] = {}
    for u in np.flatnonzero(c):
        key = (-W_1[u] + 0.0).tobytes() + np.float64(-b_1[u] + 0.0).tobytes()
        opposite = seen.pop(key, None)
        if opposite is None or not exact_sum(np.array([units[opposite]]), c[[u]]).all():
            seen[(W_1[u] + 0.0).tobytes() + np.float64(b_1[u] + 0.0).tobytes()] = int(u)
            units[int(u)] = float(c[u])
            continue
        first = units.pop(opposite)
        line = line.plus(first, Line.of(W_1[opposite], float(b_1[opposite])))
        if first + c[u] != 0.0:
            units[int(u)] = first + float(c[u])
    return line, list(units.items())


def _hinge(
    state: State, hidden: State, line: Line, units: list[tuple[int, float]], W_1: Array, b_1: Array
) -> tuple[Array, Array, Array]:
    """Interval and inherited error of line + Σ c·ReLU(f), rule 4 applied to each unit in turn, the best of all."""
    low, high, error = _form(state, line)
    if not units:
        return low, high, error
    which, c_all = [u for u, _ in units], np.array([c for _, c in units])
    below, above = (f(c_all * hidden.low[:, which], c_all * hidden.high[:, which]) for f in (np.minimum, np.maximum))
    wrong = enlarged(np.abs(c_all) * hidden.error[:, which], touched=hidden.error[:, which] != 0)
    all_below, all_above, all_wrong = (part.sum(axis=1) for part in (below, above, wrong))
    size = np.maximum(np.abs(below), np.abs(above)).sum(axis=1)
    short = np.minimum(quantum(hidden.low[:, which]), quantum(hidden.high[:, which])) * quantum(c_all)
    own = own_error(float(len(units)), size, short.min(axis=1)) * (len(units) > 1)  # x − x is 0 in any arithmetic
    own = np.where(size + hidden.high[:, which].sum(axis=1) == 0, 0.0, own)
    own_wrong = np.where(all_wrong != 0, own_error(float(len(units)), all_wrong, 0.0), 0.0) * (len(units) > 1)
    lows, highs, errors = [], [], []
    for k, (u, c) in enumerate(units):
        other = _form(state, line.plus(c, Line.of(W_1[u], float(b_1[u]))))
        larger = np.maximum if c > 0 else np.minimum
        shut, open_ = hidden.high[:, u] <= 0, hidden.low[:, u] > 0
        one_low = np.where(shut, low, np.where(open_, other[0], larger(low, other[0])))
        one_high = np.where(shut, high, np.where(open_, other[1], larger(high, other[1])))
        one_error = np.where(shut, error, np.where(open_, other[2], np.maximum(error, other[2])))
        lows.append(sum_down(one_low, sum_down(all_below - below[:, k], -own)))
        highs.append(sum_up(one_high, sum_up(all_above - above[:, k], own)))
        rest = np.maximum(all_wrong - wrong[:, k], 0.0)
        errors.append(enlarged(one_error + rest + own_wrong))
    found = _along_one_line(state, line, units, W_1, b_1)
    for bounds, one in zip((lows, highs, errors), found or ((), (), ()), strict=True):
        bounds += [one] if found else []
    return np.max(lows, axis=0), np.min(highs, axis=0), np.min(errors, axis=0)


def _along_one_line(
    state: State, line: Line, units: list[tuple[int, float]], W_1: Array, b_1: Array
) -> tuple[Array, Array, Array] | None:
    """If all units read the same s, or −s: rest + h(s), h piecewise linear; its ends, and its largest slope × error.

    h is a sum of k + 1 products of at most 2·(|c| + |α|)·(|s| + |b|), three roundings each: ``own_error`` of 8·k terms.
    """
    w = W_1[units[0][0]]
    signs = [1.0 if np.array_equal(W_1[u], w) else -1.0 if np.array_equal(W_1[u], -w) else 0.0 for u, _ in units]
    if 0.0 in signs or not w.any():
        return None
    pivot = int(np.abs(w).argmax())
    alpha = float(line.coefficients[pivot] / w[pivot])
    if not np.isfinite(alpha):
        return None
    rest = line.plus(-alpha, Line.of(w, 0.0))  # whatever α is, this is what remains
    c, sign, b = np.array([c for _, c in units]), np.array(signs), np.array([b_1[u] for u, _ in units])
    s_low, s_high, s_error = _form(state, Line.of(w, 0.0))
    ends, position = np.unique(np.stack([s_low, s_high], axis=1), axis=0, return_inverse=True)
    points = np.clip(-b / sign, ends[:, :1], ends[:, 1:])  # (ranges, units): the breakpoints
    points = np.concatenate([points, ends], axis=1)
    h = alpha * points
    for c_u, sign_u, b_u in zip(c, sign, b, strict=True):
        h += c_u * np.maximum(sign_u * points + b_u, 0.0)
    steep = np.abs(c).sum() + abs(alpha)
    margin = own_error(8.0 * len(c), 2 * steep * (np.abs(points).max() + np.abs(b).max()), 0.0)
    left = alpha - c[sign < 0].sum()  # far on the left; at its break every unit, open or closing, adds c
    slopes = np.concatenate([[left], left + np.cumsum(c[np.argsort(-b / sign, kind="stable")])])
    low, high, error = _form(state, rest)
    where = position.reshape(-1)
    steepest = np.abs(slopes).max() + own_error(8.0 * len(c), 2 * steep, 0.0)
    low = sum_down(low, sum_down(h.min(axis=1)[where], -margin))
    high = sum_up(high, sum_up(h.max(axis=1)[where], margin))
    return low, high, enlarged(error + steepest * s_error, touched=s_error != 0)


def _form(state: State, line: Line) -> tuple[Array, Array, Array]:
    """Interval and inherited error of a line over the rows."""
    linear, constant = line.coefficients[:-1], line.coefficients[-1]
    plus, minus = np.maximum(linear, 0.0), np.maximum(-linear, 0.0)
    low = state.low @ plus - state.high @ minus + constant
    high = state.high @ plus - state.low @ minus + constant
    total = state.largest @ (plus + minus) + abs(constant)
    used = linear != 0
    ends = np.minimum(quantum(state.low[:, used]), quantum(state.high[:, used])) * quantum(linear[used])
    shortest = np.minimum(ends.min(axis=1, initial=np.inf), quantum(np.array(constant)))
    margin = own_error(2.0 * used.sum() + 2, total, shortest)
    size = plus + minus
    if line.off.any():
        margin = sum_up(margin, enlarged(product_up(state.largest, line.off[:-1]) + line.off[-1]))
        size = sum_up(size, line.off[:-1])
    return sum_down(low, -margin), sum_up(high, margin), product_up(state.error, size)
