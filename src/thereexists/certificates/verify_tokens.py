"""Re-check a saved table or data set: every stored pair again, from the weights in the file.

Every claimed dtype is proved from the weights (``float_run.py``, ``token_forms.py``): the run in it gives every input
the answer of exact arithmetic, so what is recalled in one of them is recalled in all. All pairs are answered by key
where the weights prove that this is what the network gives (``recall.py``), else by the plain network, and a random
sample, drawn anew each time, by the plain network, every weight of it. That a table is symmetric is proved by its
counts, or tried in all orders; that an input which is no row of a table gets nothing, by trying all of them where
they are few. Padding is tried too: what stands in a padded position must not change an answer. What is tried is bounded
by what the file holds (``_is_too_much``).
"""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from thereexists.certificates.check import Asked, Check, Wanted, as_claimed
from thereexists.certificates.stored_tokens import StoredTokens, read_tokens, sums_of
from thereexists.core.dtypes import dtype_name
from thereexists.core.errors import InvalidInput
from thereexists.core.verdict import Verdict
from thereexists.evaluate.recall import index_of, run_first, run_padded, work_of_one
from thereexists.functions.vocabulary import FIRST, NOTHING

_SAMPLE = 64
_MOST_WORK = 1 << 39  # multiplications
_MOST_ORDERS = 1 << 16  # inputs, all orders counted, that are tried one by one


def token_checks(asked: Asked) -> Iterator[Check]:
    """The checks, one after the other."""
    asked.without_a_function()
    record = asked.record
    witness = read_tokens(asked.folder, record, asked.weights)
    yield Check("files", True, "record and weights are whole and match their digests")
    claimed, actual = record.get("class"), witness.network.shape() | {"positional": witness.network.E is not None}
    small = claimed == actual and witness.network.depth <= 4
    yield Check("class", small, f"{as_claimed(claimed, actual)}; {witness.network.depth} blocks")
    if not small:
        return  # more blocks than a memory has are not run
    yield check_dtypes(record["dtype"], witness.network.safe, witness.verdicts())
    pairs = _check_pairs(witness)
    yield pairs
    if not pairs.passed:
        return  # numbers that no vocabulary has cannot be asked for
    if index_of(witness.network) is None and _is_too_much(witness, len(witness.inputs)):
        yield Check("recall", False, "undecided: to run all stored pairs is more work than their weights justify")
        return
    exact = witness.exact()
    how = "by key" if index_of(witness.network) is not None else "by the plain network"
    yield Check("recall", bool(exact.all()), f"{int(exact.sum()):,} of {len(exact):,} stored pairs {how}")
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(len(exact), min(_SAMPLE, len(exact)), replace=False))
    dense = witness.run(witness.inputs[rows], "dense")
    right = bool((dense == witness.outputs[rows]).all())
    yield Check("plain network", right, f"{len(rows)} random pairs (seed {seed}) by every weight")
    if witness.symmetric:
        yield _check_symmetry(witness)
    if witness.purpose == "table":
        yield _check_missing(witness)
    if not witness.fixed:
        yield Check("padding", _padding_is_inert(witness, rows, rng), f"other embeddings behind {len(rows)} inputs")


def check_dtypes(stored: str, claimed: tuple[str, ...], proved: dict[str, Verdict]) -> Check:
    """Every dtype called safe, and the one of the file, must be proved."""
    names = dict.fromkeys((stored, *claimed))
    wrong = [f"{name}: {proved[name].reasons[0]}" for name in names if not proved[name].holds]
    unsaid = [] if stored in claimed else [f"the weights are in {stored}, which is not among the dtypes called safe"]
    detail = "; ".join(f"not proved safe in {what}" for what in wrong) or "; ".join(unsaid)
    return Check("dtypes", not wrong and not unsaid, detail or f"proved safe in {', '.join(claimed)}")


def _check_symmetry(witness: StoredTokens) -> Check:
    """Proved where the attention counts tokens and nothing else sees them; else all orders are tried, or undecided."""
    name = dtype_name(witness.network.dtype)
    if witness.fixed and sums_of(witness.network) == "counts" and witness.verdicts()[name].holds:
        return Check("symmetry", True, "the weights see the number of each token and the position, nothing else")
    amount = sum(_orders(row) for row in witness.inputs.tolist())
    if amount > _MOST_ORDERS or _is_too_much(witness, amount):
        too_many = f"{_told(amount)} orders are too many"
        return Check("symmetry", False, f"undecided: the weights do not prove it, and {too_many}")
    orders = [_all_orders(row) for row in witness.inputs]
    every = np.concatenate(orders)
    wanted = np.repeat(witness.outputs, [len(some) for some in orders], axis=0)
    wrong = (witness.run(every, "dense") != wanted).any(axis=1)
    if wrong.any():
        return Check(
            "symmetry", False, f"{int(wrong.sum())} of {amount:,} orders have another answer: {every[wrong][0]}"
        )
    return Check("symmetry", True, f"all {amount:,} orders of the stored inputs, by every weight")


def _check_missing(witness: StoredTokens) -> Check:
    """An input that is no row must get nothing. All are tried where they are few; else it is said to be unproved.

    The inputs of a table are those of exactly n tokens (``read_tokens`` refuses a table that takes others): V^n. Its
    rows are distinct and among them, so that many rows are all of them.
    """
    n, V, rows = witness.n, len(witness.vocabulary), len(witness.inputs)
    if rows == (math.comb(V + n - 1, n) if witness.symmetric else V**n):
        return Check("missing rows", True, f"there are none: every input of exactly {n} tokens is a row")
    if V**n > _MOST_ORDERS:
        return Check("missing rows", True, f"nothing is claimed about them: {_told(V**n)} inputs are too many to try")
    if _is_too_much(witness, V**n - rows, first=True):
        return Check("missing rows", True, f"nothing is claimed about them: to try {_told(V**n)} is too much work")
    every = 1 + np.stack(np.unravel_index(np.arange(V**n), (V,) * n), axis=1)  # (inputs, n)
    place = np.sort(every, axis=1) if witness.symmetric else every
    known = np.sort(witness.inputs, axis=1) if witness.symmetric else witness.inputs
    numbers = (V + 1) ** np.arange(n)
    strangers = every[~np.isin(place @ numbers, known @ numbers)]
    found = witness.digits.join(run_first(witness.network, strangers))
    doubtful = strangers[_is_answer(witness, found)]  # whoever gets nothing at the first position has no answer
    if len(doubtful) and _is_too_much(witness, len(doubtful)):
        return Check("missing rows", False, f"undecided: to try {len(doubtful):,} of them further is too much work")
    answered = _is_answer(witness, witness.run(doubtful, "dense")) if len(doubtful) else np.zeros(0, dtype=bool)
    if answered.any():
        return Check("missing rows", False, f"{int(answered.sum()):,} inputs have no row and get an answer, such as {doubtful[answered][0]}")  # noqa: E501  # fmt: skip
    return Check("missing rows", True, f"all {len(strangers):,} inputs of {n} tokens that have no row get nothing")


def _is_answer(witness: StoredTokens, numbers: np.ndarray) -> np.ndarray:
    """Which rows of output numbers are words throughout."""
    return ((numbers != NOTHING) & (numbers < FIRST + len(witness.output_vocabulary))).all(axis=1)


def _is_too_much(witness: StoredTokens, inputs: int, first: bool = False) -> bool:
    """Whether so many inputs are more work than the file justifies: every weight at each position of its pairs, twice,
    or what takes a minute or two. A file of megabytes must not ask for hours.
    """
    there = len(witness.inputs) * witness.n * witness.network.parameter_count
    return inputs * work_of_one(witness.network, first) > max(_MOST_WORK, 2 * there)


def _orders(x: list[int]) -> int:
    return math.factorial(len(x)) // math.prod(map(math.factorial, Counter(x).values()))


def _told(amount: int) -> str:
    """A number in digits, or its size: Python writes no more than 4,300 digits."""
    return f"{amount:,}" if amount < 10**18 else f"about 10^{math.log10(amount):.0f}"


def _all_orders(x: np.ndarray) -> np.ndarray:
    """All distinct orders of a row, one token after the other."""
    numbers, counts = np.unique(x, return_counts=True)
    rows, left = np.zeros((1, 0), dtype=x.dtype), counts[None]
    for _ in x:
        way, kind = np.nonzero(left)
        rows = np.concatenate([rows[way], numbers[kind][:, None]], axis=1)
        left = left[way]
        left[np.arange(len(kind)), kind] -= 1
    return rows


def _check_pairs(witness: StoredTokens) -> Check:
    """Stored pairs must be what they say: distinct inputs, numbers within the vocabularies."""
    x, y = witness.inputs, witness.outputs
    shaped = x.shape == y.shape and x.ndim == 2 and x.shape[1] == witness.n and len(x) > 0
    ranged = shaped and bool((x >= 0).all() and (x <= len(witness.vocabulary)).all() and (x[:, 0] > 0).all())
    ranged = ranged and (not witness.fixed or bool((x > 0).all()))  # nobody can ask for a padded row
    ranged = ranged and bool((y >= 1).all() and (y < 2 + len(witness.output_vocabulary)).all())
    ranged = ranged and not bool(((x[:, 1:] > 0) & (x[:, :-1] == 0)).any())  # padding stands at the end
    distinct = ranged and len(np.unique(np.sort(x, axis=1) if witness.symmetric else x, axis=0)) == len(x)
    return Check("pairs", distinct, f"{len(x):,} pairs of {witness.n} positions" + ("" if distinct else ", not sound"))


def _padding_is_inert(witness: StoredTokens, rows: np.ndarray, rng: np.random.Generator) -> bool:
    """Random tokens written behind the end, masked as padding: the answers must be the same."""
    ids = witness.inputs[rows]
    noise = rng.integers(1, len(witness.vocabulary) + 1, ids.shape)
    answers = witness.digits.join(run_padded(witness.network, np.where(ids == 0, noise, ids), ids > 0))
    return bool((answers == witness.outputs[rows]).all())


def nothing_to_certify(witness: Any, wanted: Wanted) -> NoReturn:
    """What ``certify`` says of a table or a data set."""
    raise InvalidInput(
        "A table or a data set is recalled exactly or not at all: there is no distance to certify. "
        "`thereexists verify` runs every stored pair again."
    )
