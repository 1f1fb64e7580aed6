"""The weights, run symbolically: every row of the residual stream at every token becomes an exact form.

Nothing is known here of how the network was made. Weights are exact rationals; a head whose logits are constant is
proved to be one-hot (its best logit leads by 800 or more, so the computed softmax is exactly 0 elsewhere, in every
dtype) or a mean over the tokens that share the best logit; two units with opposite arguments become linear; and the
rest bends (``program_forms.py``). A row that equals a quantity named by the program gets that name.

Weights are floats, the program's coefficients rationals. So a form of the network may be only *near* one of the
program: then it is replaced, the difference is bounded over the whole box (``program_nearest.py``), and the bound is
carried on: nothing is replaced that is not paid for. What may be carried, |row − form| ≤ error, follows at a
feed-forward half z + Σ h_g(w_g·z) from

    |change|  ≤  max over slopes m of h_g of Σ_r |lin_r + m·w_r|·error_r   (one group g; the others by their slopes),

the gradient of a piecewise linear function along the segment between the two arguments. So min and max hand on the
larger of two errors, not their sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from thereexists.certificates.program_forms import (
    NO_BEND,
    SHORT,
    ZERO,
    Bent,
    Form,
    NotProved,
    Number,
    Soft,
    Terms,
    differing,
    exact,
    ratio,
)
from thereexists.certificates.program_nearest import UP, Nearest, distance, flattened
from thereexists.model import EmbeddedTransformer

ONE_HOT = 800.0
CLOSE = 2.0**-30  # forms that differ by more, relatively to their size, are different things
NOISE = exact(2.0**-40)  # what rounded weights may leave of a sum that ought to vanish, relatively to its parts


@dataclass
class Group:
    """Units that bend one direction w·z: (which, its sign, the weight to the target)."""

    weights: list[tuple[int, Number]]
    constants: list[int]  # rows of constants that they read
    units: list[tuple[int, int, Number]] = field(default_factory=list)


@dataclass
class WrittenRow:
    """One row written by a feed-forward half: linear part, constant, and groups."""

    row: int
    linear: dict[int, Number]
    constant: Number
    groups: list[Group]


@dataclass
class Execution:
    """The state after some half blocks: ``rows[r][i]``, and ``error[i, r]`` ≥ |row − form|."""

    terms: Terms
    n: int
    rows: list[list[Form]]
    error: np.ndarray
    constants: dict[int, np.ndarray]  # rows that do not depend on the input
    strange: list[str] = field(default_factory=list)  # what no operation of the program accounts for
    _near: Nearest | None = None

    @classmethod
    def begin(
        cls, terms: Terms, network: EmbeddedTransformer, features: int, length: int, padding: Number | None
    ) -> Execution:
        """The embedding, W_in x + E. With ``padding``, tokens from ``length`` on have that number in every feature, and

        a further feature, if there is one, is 1 at the tokens before them and 0 at them.
        """
        if network.W_in is None or network.E is None:
            raise NotProved("A program's network has features as input and a positional encoding.")
        W_in, E = (w.detach().to(torch.float64).numpy() for w in (network.W_in, network.E))
        n, d_model = E.shape
        flagged = padding is not None and W_in.shape[1] == features + 1
        if W_in.shape != (d_model, features + flagged):
            raise NotProved(f"The network reads {W_in.shape[1]} features; the program has {features}.")
        flags = [Form({}, {}, int(i < length)) for i in range(n)]
        missing = Form({}, {}, padding or 0)
        rows, constants = [], {}
        for r in range(d_model):
            read = [(f, exact(w)) for f, w in enumerate(W_in[r]) if w]
            if all(f == features for f, _ in read):
                flag = W_in[r, features] if flagged else 0.0
                constants[r] = E[:, r] + flag * (np.arange(n) < length)
            row = []
            for i in range(n):
                given = [(w, flags[i] if f == features else _token(terms, i, f, length, missing)) for f, w in read]
                row.append(terms.combine(given, exact(E[i, r])))
            if r in constants and any(exact(c) != form.constant for c, form in zip(constants[r], row, strict=True)):
                del constants[r]
            rows.append(row)
        return cls(terms, n, rows, np.zeros((n, d_model)), constants, _near=Nearest(terms))

    # --- attention -------------------------------------------------------------------------------------------------

    def attend(self, W_Q: Any, b_Q: Any, W_K: Any, W_V: Any, W_O: Any, where: str, mask: Any = None) -> None:
        written: dict[int, list[list[tuple[Number, Form]]]] = {}
        added = np.zeros_like(self.error)
        for head in range(len(W_V)):
            used = [v for v in range(W_V.shape[1]) if W_O[head, :, v].any() and W_V[head, v].any()]
            if not used:
                continue
            support = self._support(W_Q[head], b_Q[head], W_K[head], where, mask)
            for v in used:
                if support is None:
                    forms, error = self._soft(W_Q[head], b_Q[head], W_K[head], W_V[head, v], where, mask)
                else:
                    forms, error = self._attended(support, W_V[head, v])
                for row in np.flatnonzero(W_O[head, :, v]).tolist():
                    w = exact(W_O[head, row, v])
                    parts = written.setdefault(row, [[(1, form)] for form in self.rows[row]])
                    for part, form in zip(parts, forms, strict=True):
                        part.append((w, form))
                    added[:, row] += abs(float(w)) * error
        for row, parts in written.items():
            self._write(row, [self.terms.combine(part) for part in parts])
        self.error = self.error + added

    def _support(self, W_Q: Any, b_Q: Any, W_K: Any, where: str, mask: Any) -> list[np.ndarray] | None:
        """The tokens that token i attends to, all equally; None if data or small differences decide."""
        read = np.flatnonzero(W_Q.any(axis=0) | W_K.any(axis=0)).tolist()
        if any(r not in self.constants for r in read):
            return None
        (Q, whole_Q), (K, whole_K) = self._constant_rows(W_Q, b_Q), self._constant_rows(W_K, 0 * b_Q)
        most = np.abs(Q) @ np.abs(K).T
        whole = whole_Q and whole_K and float(most.max()) < 2.0**52
        logits = Q @ K.T if mask is None else np.where(mask, Q @ K.T, -np.inf)
        margin = 0.0 if whole else self._logit_margin(W_Q, b_Q, W_K)
        top = logits.max(axis=1, keepdims=True)
        equal = (logits == top) if whole else np.eye(self.n, dtype=bool)[logits.argmax(axis=1)]
        others = np.where(equal, -np.inf, logits).max(axis=1)
        if bool((top[:, 0] - others - 2 * margin < ONE_HOT).any()):
            return None
        return np.split(np.nonzero(equal)[1], np.cumsum(equal.sum(axis=1))[:-1])

    def _logit_margin(self, W_Q: Any, b_Q: Any, W_K: Any) -> float:
        """How far float64 logits may be from the exact ones: three sums of products, each relatively to its terms."""
        d_model = len(self.rows)
        z = np.zeros((self.n, d_model))
        for r, values in self.constants.items():
            z[:, r] = np.abs(values)
        most = (z @ np.abs(W_Q).T + np.abs(b_Q)) @ (z @ np.abs(W_K).T).T
        return float(most.max()) * (2 * d_model + len(W_Q) + 8) * 2.0**-52

    def _constant_rows(self, W: Any, b: Any) -> tuple[np.ndarray, bool]:
        """W z + b for rows z of constants, and whether all of it is whole numbers, so that float64 rounds nothing."""
        read = np.flatnonzero(W.any(axis=0)).tolist()
        if not read:
            return np.broadcast_to(b, (self.n, len(W))), bool((b == np.round(b)).all())
        z, W = np.stack([self.constants[r] for r in read], axis=1), W[:, read]
        whole = all(bool((part == np.round(part)).all()) for part in (z, W, b))
        return z @ W.T + b, whole and float((np.abs(z) @ np.abs(W).T + np.abs(b)).max()) < 2.0**52

    def _soft(self, W_Q: Any, b_Q: Any, W_K: Any, W_V: Any, where: str, mask: Any) -> tuple[list[Form], np.ndarray]:
        """A head whose logits are data: for every token a softmax term of the program with the same ingredients.

        If every logit is off by at most δ and every value by at most e, the output is off by at most
        δ·(spread of the values)/2 + e: its derivative along a change of the logits is a covariance under the softmax
        weights, at most the product of the standard deviations, δ and half the spread.
        """
        m = [k for k in range(len(W_Q)) if (W_Q[k].any() or b_Q[k]) and W_K[k].any()]
        queries = [self._read(W_Q[k], exact(b_Q[k])) for k in m]  # [dimension][token]
        keys, values = [self._read(W_K[k]) for k in m], self._read(W_V)
        off_q, off_k = (self.error @ np.abs(W[m]).T for W in (W_Q, W_K))  # (n, dimensions)
        off_v = self.error @ np.abs(W_V)
        forms, error = [], np.zeros(self.n)
        for i in range(self.n):
            seen = [j for j in range(self.n) if mask is None or mask[i, j]]
            seen = self._not_hidden(i, seen, queries, keys, off_q, off_k)
            kept = differing([q[i] for q in queries], [[k[j] for k in keys] for j in seen])
            soft = Soft(
                [queries[k][i] for k in kept], [[keys[k][j] for k in kept] for j in seen], [values[j] for j in seen]
            )
            form, away = self._nearest_soft(soft, where)
            ends = [self.terms.range(values[j]) for j in seen]
            size_q = np.array([self._size(form) for form in soft.query])
            size_k = np.array([[self._size(form) for form in key] for key in soft.keys]).reshape(len(seen), len(kept))
            q, k = off_q[i, kept], off_k[np.ix_(seen, kept)]
            delta = (q * size_k + size_q * k + q * k).sum(axis=1).max(initial=0.0)
            dropped = [d for d in range(len(m)) if d not in kept]  # equal for all tokens, but for errors
            size_d = np.array([[self._size(keys[d][j]) for d in dropped] for j in seen]).reshape(
                len(seen), len(dropped)
            )
            q, k = off_q[i, dropped], off_k[np.ix_(seen, dropped)]
            size_q = np.array([self._size(queries[d][i]) for d in dropped])
            delta += (q * size_d + size_q * k + q * k).sum(axis=1).max(initial=0.0)
            spread = float(max(high for _, high in ends) - min(low for low, _ in ends)) + 2 * float(off_v[seen].max())
            forms.append(form)
            error[i] = (delta * spread / 2 + float(off_v[seen].max())) * (1 + 2.0**-30) + away
        return forms, error

    def _not_hidden(
        self, i: int, seen: list[int], queries: list[list[Form]], keys: list[list[Form]], off_q: Any, off_k: Any
    ) -> list[int]:
        """The tokens that count. Constant parts of the logits may hide some: one whose constant part is lower by 800

        and twice the largest rest of a logit, errors included, has the weight 0 in every dtype.
        """
        every = range(len(queries))
        fixed = [k for k in every if queries[k][i].is_constant and all(keys[k][j].is_constant for j in seen)]
        if not fixed:
            return seen
        level = {j: sum((queries[k][i].constant * keys[k][j].constant for k in fixed), start=0) for j in seen}
        rest = 0.0
        for k in every:
            q, key = self._size(queries[k][i]), max(self._size(keys[k][j]) for j in seen)
            off = off_q[i, k] * key + (q + off_q[i, k]) * float(off_k[seen, k].max())
            rest += off + (0.0 if k in fixed else q * key)
        top = max(level.values())
        return [j for j in seen if float(top - level[j]) < ONE_HOT + 2 * rest * (1 + 2.0**-30)]

    def _read(self, W: Any, constant: Number = 0) -> list[Form]:
        read = [(r, exact(W[r])) for r in np.flatnonzero(W).tolist()]
        return [self.terms.combine([(w, self.rows[r][i]) for r, w in read], constant) for i in range(self.n)]

    def _nearest_soft(self, soft: Soft, where: str) -> tuple[Form, float]:
        """The program's softmax term with these ingredients, exactly or nearly; else a term that only we know."""
        terms = self.terms
        if not soft.query:
            return self._mean(soft.values)
        term = terms.known.get(terms.soft_key(soft))
        if term is not None:
            return Form({term: 1}), 0.0
        best: tuple[float, int] = (np.inf, -1)
        for term in self.near.softs(soft):
            best = min(best, (self._soft_distance(soft, terms.softs[term]), term))
        if best[1] >= 0 and best[0] <= CLOSE * max(self._size(Form({best[1]: 1})), CLOSE):
            return Form({best[1]: 1}), best[0]
        if len(self.strange) < 8:
            self.strange.append(where)
        return terms.soft(soft, "a softmax that the program does not have"), 0.0

    def _soft_distance(self, a: Soft, b: Soft) -> float:
        if len(a.query) != len(b.query) or len(a.keys) != len(b.keys):
            return np.inf
        away_q = [self._distance(p, q) for p, q in zip(a.query, b.query, strict=True)]
        delta = 0.0
        for key_a, key_b in zip(a.keys, b.keys, strict=True):
            away_k = [self._distance(p, q) for p, q in zip(key_a, key_b, strict=True)]
            parts = zip(a.query, key_b, away_q, away_k, strict=True)
            delta = max(delta, sum(self._size(q) * dk + self._size(k) * dq + dq * dk for q, k, dq, dk in parts))
        ends = [self.terms.range(form) for form in b.values]
        spread = float(max(high for _, high in ends) - min(low for low, _ in ends))
        away_v = max(self._distance(p, q) for p, q in zip(a.values, b.values, strict=True))
        return (delta * (spread + 2 * away_v) / 2 + away_v) * (1 + 2.0**-30)

    def _attended(self, support: list[np.ndarray], W_V: Any) -> tuple[list[Form], np.ndarray]:
        read = [(r, exact(W_V[r])) for r in np.flatnonzero(W_V).tolist()]
        cache: dict[int, Form] = {}
        own = self.error @ np.abs(W_V)

        def value(j: int) -> Form:
            if j not in cache:
                cache[j] = self.terms.combine([(w, self.rows[r][j]) for r, w in read])
            return cache[j]

        means: dict[bytes, tuple[Form, float]] = {}
        forms, error = [], np.zeros(self.n)
        for i, tokens in enumerate(support):
            if len(tokens) == 1:
                forms.append(value(int(tokens[0])))
                error[i] = own[tokens[0]]
                continue
            key = tokens.tobytes()
            if key not in means:
                form, off = self._mean([value(j) for j in tokens.tolist()])
                means[key] = (form, off + float(own[tokens].mean()) * (1 + len(tokens) * 2.0**-50))
            forms.append(means[key][0])
            error[i] = means[key][1]
        return forms, error

    def _mean(self, forms: list[Form]) -> tuple[Form, float]:
        """A mean that the program has too, exactly or nearly; else the sum of its parts."""
        terms = self.terms
        numbers = tuple(terms.number_of(form) for form in forms)
        if len(forms) <= SHORT or len(set(numbers)) == 1 or ("mean", numbers) in terms.known:
            return terms.mean(forms), 0.0
        best: tuple[float, int] = (np.inf, -1)
        for term in self.near.means(forms):
            if len(terms.means[term]) == len(forms):
                parts = zip(forms, terms.means[term], strict=True)
                best = min(best, (sum(self._distance(a, b) for a, b in parts) / len(forms), term))
        if best[1] >= 0 and best[0] <= CLOSE * max(self._size(Form({best[1]: 1})), CLOSE):
            return Form({best[1]: 1}), best[0] * UP
        return terms.combine([(ratio(1, len(forms)), form) for form in forms]), 0.0

    # --- feed-forward ----------------------------------------------------------------------------------------------

    def feed_forward(self, W_1: Any, b_1: Any, W_2: Any, b_2: Any, where: str) -> None:
        rows, errors, cache = {}, {}, {}
        for row in np.flatnonzero(W_2.any(axis=1) | (b_2 != 0)).tolist():
            target = self._written_row(row, W_1, b_1, W_2[row], b_2[row])
            rows[row], errors[row] = self._bend(target, W_1, b_1, cache)
        for row, forms in rows.items():
            named = [self._named(form, row, where) for form in forms]
            self._write(row, [form for form, _ in named])
            self.error[:, row] = errors[row] + np.array([off for _, off in named])

    def _written_row(self, row: int, W_1: Any, b_1: Any, c: Any, b_2: float) -> WrittenRow:
        """z_row + Σ c_u·ReLU(f_u) + b_2, with c·ReLU(f) + e·ReLU(−f) = c·f + (c + e)·ReLU(−f)."""
        linear: dict[int, Number] = {row: 1}
        constant = exact(b_2)
        seen: dict[bytes, int] = {}
        weight: dict[int, Number] = {}
        for u in np.flatnonzero(c).tolist():
            mirror = seen.pop(_bytes(-W_1[u], -b_1[u]), None)
            if mirror is None:
                seen[_bytes(W_1[u], b_1[u])] = u
                weight[u] = weight.get(u, 0) + exact(c[u])
                continue
            first = weight.pop(mirror)
            for r in np.flatnonzero(W_1[mirror]).tolist():
                linear[r] = linear.get(r, 0) + first * exact(W_1[mirror, r])
            constant = constant + first * exact(b_1[mirror])
            weight[u] = exact(first + exact(c[u]))
        varying = np.array([r not in self.constants for r in range(W_1.shape[1])])
        groups: dict[bytes, Group] = {}
        for u, w in weight.items():
            if w == 0:
                continue
            w_1 = np.where(varying, W_1[u], 0.0)
            used = np.flatnonzero(w_1)
            sign = -1 if len(used) and w_1[used[0]] < 0 else 1
            key = _bytes(sign * w_1, 0.0)
            if key not in groups:
                groups[key] = Group([(int(r), exact(sign * w_1[r])) for r in used], [])
            groups[key].units.append((u, sign, w))
        for group in groups.values():
            which = [u for u, _, _ in group.units]
            group.constants = [r for r in self.constants if W_1[which, r].any()]
        linear = {r: exact(w) for r, w in linear.items() if w != 0}
        return WrittenRow(row, linear, exact(constant), list(groups.values()))

    def _bend(self, target: WrittenRow, W_1: Any, b_1: Any, cache: dict) -> tuple[list[Form], np.ndarray]:
        parts = [[(w, self.rows[r][i]) for r, w in target.linear.items()] for i in range(self.n)]
        off = np.zeros(self.n)
        for group in target.groups:
            kinds, shifts = self._shifts(group, W_1, b_1)
            bents: dict[tuple, Bent] = {}
            steepest: float | None = None
            places = cache.setdefault(tuple(group.weights), {})
            for i in range(self.n):
                if i not in places:
                    places[i] = self._direction(group, i)
                s, factor, kappa, snapped = places[i]
                units = shifts[kinds[i]]
                if snapped:  # the units together are Lipschitz with their steepest slope
                    if steepest is None:
                        steepest = max(abs(slope) for slope in self._slopes(group, W_1, b_1)) * UP
                    off[i] += steepest * snapped
                if s is None:
                    self.terms.count(len(units))
                    value = sum((c * max(sign * kappa + b, 0) for c, sign, b in units), start=0)
                    parts[i].append((1, Form({}, {}, exact(value))))
                    continue
                ends = self.terms.directions[s]
                key = (int(kinds[i]), factor, kappa, ends.low, ends.high)
                if key not in bents:
                    bents[key] = self.terms.bent(s, [(c, sign * factor, sign * kappa + b) for c, sign, b in units])
                bent = bents[key]
                if bent.slope == 0:
                    bends = {s: bent.bend} if bent.bend != NO_BEND else {}
                    parts[i].append((1, Form({}, bends, bent.constant)))
                else:
                    parts[i].append((1, self.terms.apply(s, bent)))
        forms = [self.terms.combine(part, target.constant) for part in parts]
        return forms, off * (1 + 2.0**-30) + self._carried(target, W_1, b_1)

    def _direction(self, group: Group, i: int) -> tuple[int | None, Number, Number, float]:
        """w·z at token i as factor·s + constant, s a direction of the program if one is near; and how near."""
        terms = self.terms
        form = terms.combine([(w, self.rows[r][i]) for r, w in group.weights]) if group.weights else ZERO
        if form.is_constant:
            return None, 0, form.constant, 0.0
        key, factor = terms.split(form)
        s = terms.find_direction(key)
        if s is not None and s < self.near.directions:
            return s, factor, form.constant, 0.0
        scale = sum((abs(w) * terms.size(self.rows[r][i]) for r, w in group.weights), start=0)
        for k in self.near.directions_like(form):
            found = self._multiple(form, k, scale)
            if found is not None:
                return k, *found
        plain, error = flattened(terms, form)
        moving = Form(plain.linear, plain.bends)
        if terms.size(moving) + error <= NOISE * scale:  # what rounding has left of a sum that vanishes
            return None, 0, plain.constant, float(terms.size(moving) + error) * UP
        return terms.direction(key), factor, form.constant, 0.0

    def _multiple(self, form: Form, k: int, scale: Number) -> tuple[Number, Number, float] | None:
        """form = factor·direction + constant ± error, or None if the error is not small."""
        terms, direction = self.terms, self.terms.as_form(k)
        factor = _leading_ratio(terms, form, direction)
        if factor is None:
            return None
        rest, error = flattened(terms, terms.combine([(1, form), (-factor, direction)]))
        away = terms.size(Form(rest.linear, rest.bends)) + error
        ends = terms.directions[k]
        if away > max(exact(CLOSE) * abs(factor) * (ends.high - ends.low), NOISE * scale):
            return None
        return factor, rest.constant, float(away) * UP

    def _shifts(self, group: Group, W_1: Any, b_1: Any) -> tuple[np.ndarray, list[list[tuple[Number, int, Number]]]]:
        """What the units add to w·z: b_1 and rows of constants, which may differ from token to token."""
        which = [u for u, _, _ in group.units]
        if not group.constants:
            return np.zeros(self.n, dtype=int), [[(c, sign, exact(b_1[u])) for u, sign, c in group.units]]
        columns = np.stack([self.constants[r] for r in group.constants], axis=1)
        distinct, kinds = np.unique(columns, axis=0, return_inverse=True)
        self.terms.count(len(distinct) * len(which) * (1 + len(group.constants)))
        weights = [[exact(W_1[u, r]) for r in group.constants] for u in which]
        shifts = []
        for values in distinct:
            numbers = [exact(v) for v in values]
            shifts.append(
                [
                    (c, sign, exact(sum((a * v for a, v in zip(row, numbers, strict=True)), start=exact(b_1[u]))))
                    for (u, sign, c), row in zip(group.units, weights, strict=True)
                ]
            )
        return kinds.reshape(-1), shifts

    def _carried(self, target: WrittenRow, W_1: Any, b_1: Any) -> np.ndarray:
        """The rows' errors through the half block: the gradient bound at the head of this file."""
        if not self.error.any():
            return np.zeros(self.n)
        d_model = self.error.shape[1]
        lin = np.zeros(d_model)
        for r, w in target.linear.items():
            lin[r] = float(w)
        ways, alone = [], []
        for group in target.groups:
            w = np.zeros(d_model)
            for r, a in group.weights:
                w[r] = float(a)
            steepest = sum(abs(float(c)) for _, _, c in group.units)
            alone.append(self.error @ np.abs(w) * steepest)
            ways.append((w, self._slopes(group, W_1, b_1)))
        plain = self.error @ np.abs(lin)
        total = sum(alone, start=np.zeros(self.n))
        best = plain + total
        for (w, slopes), own in zip(ways, alone, strict=True):
            self.terms.count(len(slopes) * self.n >> 4)
            along = np.max([self.error @ np.abs(lin + m * w) for m in slopes], axis=0)
            rounded = 2.0**-48 * (plain + total)  # lin + m·w was
            best = np.minimum(best, along + (total - own) + rounded)
        return best * (1 + 2.0**-30)

    def _slopes(self, group: Group, W_1: Any, b_1: Any) -> list[float]:
        """All slopes of Σ c·ReLU(±v + b) over the whole line, for every token's b."""
        found: set[float] = set()
        for units in self._shifts(group, W_1, b_1)[1]:
            slope: Number = sum((c * sign for c, sign, _ in units if sign < 0), start=0)  # far on the left
            found.add(float(slope))
            for _, c in sorted(((-sign * b, c) for c, sign, b in units), key=lambda pair: pair[0]):
                slope = slope + c  # opening adds c, closing takes away −c
                found.add(float(slope))
        return sorted(found)

    # --- names -----------------------------------------------------------------------------------------------------

    def _named(self, form: Form, row: int, where: str) -> tuple[Form, float]:
        if not form.bends:
            return form, 0.0
        terms = self.terms
        term = terms.names.get(terms.key(form))
        if term is not None:
            return Form({term: 1}), 0.0
        close = CLOSE * self._size(form)
        best: tuple[float, int] = (np.inf, -1)
        for term in self.near.names(form):
            best = min(best, (self._distance(form, terms.made[term]), term))
        if best[0] <= close:
            return Form({best[1]: 1}), best[0]
        plain, error = flattened(terms, form)
        if not plain.bends and float(error) <= close:
            return plain, float(error) * UP
        if len(self.strange) < 8:
            self.strange.append(f"{where}, row {row}")
        return form, 0.0

    def outputs(self, W_out: Any) -> tuple[list[list[Form]], np.ndarray]:
        """W_out z: forms [feature][token], and errors (features, n)."""
        forms = []
        for weights in W_out:
            read = [(r, exact(weights[r])) for r in np.flatnonzero(weights).tolist()]
            forms.append([self.terms.combine([(w, self.rows[r][i]) for r, w in read]) for i in range(self.n)])
        return forms, np.abs(W_out) @ self.error.T * (1 + 2.0**-30)

    def _write(self, row: int, forms: list[Form]) -> None:
        self.terms.weigh(forms)
        self.rows[row] = [ZERO if form.is_constant and form.constant == 0 else form for form in forms]
        self.constants.pop(row, None)

    @property
    def near(self) -> Nearest:
        """The program's quantities; the first to ask is ``begin``, before the network adds its own."""
        if self._near is None:
            self._near = Nearest(self.terms)
        return self._near

    def _distance(self, a: Form, b: Form) -> float:
        return distance(self.terms, a, b)

    def _size(self, form: Form) -> float:
        return float(self.terms.size(form))


def _leading_ratio(terms: Terms, form: Form, direction: Form) -> Number | None:
    """The ratio of two forms at the part of the direction that counts most."""
    sizes = {t: abs(c) * (terms.high[t] - terms.low[t]) for t, c in direction.linear.items()}
    lead = max(sizes, key=lambda t: sizes[t], default=None)
    if lead is not None and lead in form.linear:
        return ratio(form.linear[lead], direction.linear[lead])
    if lead is not None:
        return None
    shared = [s for s in direction.bends if s in form.bends]
    if not shared:
        return None
    (_, a), (_, b) = (max(terms.jumps(f.bends[shared[0]]), key=lambda jump: abs(jump[1])) for f in (form, direction))
    return ratio(a, b)


def _bytes(weights: Any, bias: float) -> bytes:
    return (weights + 0.0).tobytes() + np.float64(bias + 0.0).tobytes()


def _token(terms: Terms, i: int, f: int, length: int, missing: Form) -> Form:
    return Form({terms.known["token", i, f]: 1}) if i < length else missing


def execute(
    terms: Terms, network: EmbeddedTransformer, features: int, length: int, padding: Number | None = None
) -> tuple[list[list[Form]], np.ndarray, list[str]]:
    """Outputs as forms [feature][token], their errors, and the places that the program does not account for."""
    state = Execution.begin(terms, network, features, length, padding)
    for name, stage in network.stages.items():
        if stage.attention is not None:
            pattern = stage.attention.pattern
            mask = None if pattern is None else pattern[0].numpy()
            if mask is not None and mask.shape != (state.n, state.n):
                raise NotProved(f"{name}: the mask has the shape {mask.shape}.")
            weights = [w[0].detach().to(torch.float64).numpy() for w in stage.attention.parameters_list()]
            state.attend(*weights, where=f"{name}, attention", mask=mask)
        if stage.feed_forward is not None:
            weights = [w[0].detach().to(torch.float64).numpy() for w in stage.feed_forward.parameters_list()]
            state.feed_forward(*weights, where=f"{name}, feed-forward")
    outputs, error = state.outputs(network.W_out.detach().to(torch.float64).numpy())
    return outputs, error, state.strange
