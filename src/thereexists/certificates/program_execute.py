"""The weights, run symbolically: every row of the residual stream at every token becomes an exact form.

Nothing is known here of how the network was made. Weights are exact rationals; a head whose logits are constant is
proved to be one-hot (its best logit leads by 800 or more, so the computed softmax is exactly 0 elsewhere, in every
dtype) or a mean over the tokens that share the best logit; two units with opposite arguments become linear; and the
rest bends (``program_forms.py``). A row that equals a quantity named by the program gets that name.

Weights are floats, the program's coefficients rationals. So a form of the network may be only *near* one of the
program: then it is replaced, the difference is bounded over the whole box (``program_nearest.py``), and the bound is
carried on: nothing is replaced that is not paid for. This file has the rows and the heads; what a feed-forward half
makes of rows and of their errors is in ``program_bends.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from thereexists.certificates.program_bends import bend, written_row
from thereexists.certificates.program_forms import (
    SHORT,
    TRACE,
    ZERO,
    Form,
    NotProved,
    Number,
    Soft,
    Terms,
    differing,
    exact,
    ratio,
)
from thereexists.certificates.program_nearest import CLOSE, UP, Nearest, distance, flattened
from thereexists.certificates.program_numbers import SMALLEST, TINY, above, carried
from thereexists.model import EmbeddedTransformer

ONE_HOT = 800.0


@dataclass
class Execution:
    """The state after some half blocks: ``rows[r][i]``, and ``error[i, r]`` ≥ |row − form|."""

    terms: Terms
    n: int
    rows: list[list[Form]]
    error: np.ndarray
    constants: dict[int, np.ndarray]  # rows that do not depend on the input
    strange: list[str] = field(default_factory=list)  # what no operation of the program accounts for
    traces: float = 0.0  # what rounded weights may leave, however small a row is: ``Terms.traces``
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
        error = np.zeros((n, d_model))
        return cls(terms, n, rows, error, constants, traces=float(terms.traces), _near=Nearest(terms))

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
                    added[:, row] += abs(float(w)) * error + np.where(error > 0, TINY, 0.0)
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
        off_q, off_k = (carried(self.error, W[m]) for W in (W_Q, W_K))  # (n, dimensions)
        off_v = carried(self.error, W_V)
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
            delta += 8 * len(m) * SMALLEST if off_q.any() or off_k.any() else 0.0  # what underflowed
            spread = above(max(high for _, high in ends) - min(low for low, _ in ends)) + 2 * float(off_v[seen].max())
            forms.append(form)
            error[i] = (delta * spread / 2 + float(off_v[seen].max())) * (1 + 2.0**-30) + away
            error[i] += TINY if delta > 0 else 0.0
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
        if best[1] >= 0 and best[0] <= max(self._close(best[1]), self._logit_traces(terms.softs[best[1]])):
            return Form({best[1]: 1}), best[0]
        if len(self.strange) < 8:
            self.strange.append(where)
        return terms.soft(soft, "a softmax that the program does not have"), 0.0

    def _close(self, term: int) -> float:
        return max(CLOSE * max(self._size(Form({term: 1})), CLOSE), self.traces)

    def _logit_traces(self, soft: Soft) -> float:
        """What rounded weights may do by logits that are rounded relatively to their size."""
        sizes = (max(self._size(key[k]) for key in soft.keys) * self._size(q) for k, q in enumerate(soft.query))
        ends = [self.terms.range(form) for form in soft.values]
        return TRACE * sum(sizes) * float(max(high for _, high in ends) - min(low for low, _ in ends))

    def _soft_distance(self, a: Soft, b: Soft) -> float:
        if len(a.query) != len(b.query) or len(a.keys) != len(b.keys):
            return np.inf
        away_q = [self._distance(p, q) for p, q in zip(a.query, b.query, strict=True)]
        delta = 0.0
        for key_a, key_b in zip(a.keys, b.keys, strict=True):
            away_k = [self._distance(p, q) for p, q in zip(key_a, key_b, strict=True)]
            parts = zip(a.query, key_b, away_q, away_k, strict=True)
            delta = max(delta, sum(self._size(q) * dk + self._size(k) * dq + dq * dk for q, k, dq, dk in parts))
            delta += 4 * len(away_k) * SMALLEST if any(away_q) or any(away_k) else 0.0
        ends = [self.terms.range(form) for form in b.values]
        spread = above(max(high for _, high in ends) - min(low for low, _ in ends))
        away_v = max(self._distance(p, q) for p, q in zip(a.values, b.values, strict=True))
        return (delta * (spread + 2 * away_v) / 2 + away_v) * (1 + 2.0**-30) + (TINY if delta > 0 else 0.0)

    def _attended(self, support: list[np.ndarray], W_V: Any) -> tuple[list[Form], np.ndarray]:
        read = [(r, exact(W_V[r])) for r in np.flatnonzero(W_V).tolist()]
        cache: dict[int, Form] = {}
        own = carried(self.error, W_V)

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
        if best[1] >= 0 and best[0] <= self._close(best[1]):
            return Form({best[1]: 1}), best[0] * UP
        return terms.combine([(ratio(1, len(forms)), form) for form in forms]), 0.0

    # --- feed-forward ----------------------------------------------------------------------------------------------

    def feed_forward(self, W_1: Any, b_1: Any, W_2: Any, b_2: Any, where: str) -> None:
        rows, errors, cache = {}, {}, {}
        for row in np.flatnonzero(W_2.any(axis=1) | (b_2 != 0)).tolist():
            target = written_row(self, row, W_1, b_1, W_2[row], b_2[row])
            rows[row], errors[row] = bend(self, target, W_1, b_1, cache)
        for row, forms in rows.items():
            named = [self._named(form, row, where) for form in forms]
            self._write(row, [form for form, _ in named])
            self.error[:, row] = errors[row] + np.array([off for _, off in named])

    # --- names -----------------------------------------------------------------------------------------------------

    def _named(self, form: Form, row: int, where: str) -> tuple[Form, float]:
        if not form.bends:
            return form, 0.0
        terms = self.terms
        term = terms.names.get(terms.key(form))
        if term is not None:
            return Form({term: 1}), 0.0
        close = max(CLOSE * self._size(form), self.traces)
        best: tuple[float, int] = (np.inf, -1)
        for term in self.near.names(form):
            best = min(best, (self._distance(form, terms.made[term]), term))
        if best[0] <= close:
            return Form({best[1]: 1}), best[0]
        plain, error = flattened(terms, form)
        if not plain.bends and float(error) <= close:
            return plain, above(error) * UP
        if len(self.strange) < 8:
            self.strange.append(f"{where}, row {row}")
        return form, 0.0

    def outputs(self, W_out: Any) -> tuple[list[list[Form]], np.ndarray]:
        """W_out z: forms [feature][token], and errors (features, n)."""
        forms = []
        for weights in W_out:
            read = [(r, exact(weights[r])) for r in np.flatnonzero(weights).tolist()]
            forms.append([self.terms.combine([(w, self.rows[r][i]) for r, w in read]) for i in range(self.n)])
        return forms, carried(self.error, W_out).T * (1 + 2.0**-30)

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
        return above(self.terms.size(form))


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
