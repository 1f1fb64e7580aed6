"""A saved program on numbers: its forms evaluated in long double, term by term, with splines in place of functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from thereexists.certificates.program_forms import Form, Soft, Terms
from thereexists.certificates.program_meaning import Meaning, Meant


def values_of(meaning: Meaning, meant: Meant, X: np.ndarray) -> tuple[np.ndarray, float]:
    """Inputs (batch, n, d) to outputs (batch, n, features), and a generous allowance for what this rounds itself."""
    terms = meaning.terms
    tokens = {number: (key[1], key[2]) for key, number in terms.known.items() if key[0] == "token"}
    named = {number: Form(dict(key[0]), dict(key[1]), key[2]) for key, number in terms.names.items()}
    values: list[np.ndarray] = []
    for number in range(len(terms.labels)):  # a term is made of earlier ones
        if number in tokens:
            i, f = tokens[number]
            values.append(X[:, i, f].astype(np.longdouble))
        elif number in named:
            values.append(_value(terms, named[number], values, len(X)))
        elif number in terms.softs:
            values.append(_soft(terms, terms.softs[number], values, len(X)))
        else:
            parts = [_value(terms, form, values, len(X)) for form in terms.means[number]]
            values.append(np.mean(parts, axis=0))
    outputs = [[_value(terms, form, values, len(X)) for form in row] for row in meant.forms]
    largest = max((float(np.abs(value).max()) for value in values), default=0.0)
    return np.array(outputs, dtype=np.longdouble).transpose(2, 1, 0), largest * 2.0**-58 * meaning.n


def _soft(terms: Terms, soft: Soft, values: list[np.ndarray], batch: int) -> np.ndarray:
    query = [_value(terms, form, values, batch) for form in soft.query]
    logits = np.zeros((len(soft.keys), batch), dtype=np.longdouble)
    for row, key in zip(logits, soft.keys, strict=True):
        for q, form in zip(query, key, strict=True):
            row += q * _value(terms, form, values, batch)
    weights = np.exp(logits - logits.max(axis=0))
    parts = np.array([_value(terms, form, values, batch) for form in soft.values])
    return (weights * parts).sum(axis=0) / weights.sum(axis=0)


def _value(terms: Terms, form: Form, values: list[np.ndarray], batch: int) -> np.ndarray:
    total = np.full(batch, _long(form.constant), dtype=np.longdouble)
    for term, c in form.linear.items():
        total = total + _long(c) * values[term]
    for s, bend in form.bends.items():
        along = _value(terms, terms.as_form(s), values, batch)
        for t, jump in terms.jumps(bend):
            total = total + _long(jump) * np.maximum(along - _long(t), 0)
    return total


def _long(number: Any) -> np.longdouble:
    if isinstance(number, int):
        return np.longdouble(number)
    return np.longdouble(int(number.p)) / np.longdouble(int(number.q))
