"""A target: the sequence function to approximate, with everything the constructions and certificates ask about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from thereexists.core.errors import InvalidInput, InvalidTarget, ThereExistsError
from thereexists.core.memory import unless_memory
from thereexists.core.plain_text import in_full
from thereexists.core.printed import printed_to_stderr
from thereexists.core.user_file import function_of, read_user_file
from thereexists.functions.anywhere import placed
from thereexists.functions.asking import answered, phase
from thereexists.functions.domains.domain import Domain, shortly
from thereexists.functions.domains.stored import wherever_it_lies
from thereexists.functions.float32 import in_float32
from thereexists.functions.given import enclosed, ends_of_box, real, size_or_none
from thereexists.functions.modulus import Modulus

Array = np.ndarray
LARGEST = 1e100  # squares and sums of values must not overflow
LONGEST = 1 << 27  # numbers of a sequence: what is asked of f, and every grid, is far beyond any machine before
BATCH = 4096  # sequences that f is given at once, at most: ``check_one_by_one`` tries batches of that size
BESIDE = 4  # times that the rounding of f is tried, a last place away
SIZES = 4  # of smaller batches drawn over the whole range; twice as many over its logarithm
EVALUATION_ERROR = 2.0**-40  # f in float64 is taken to be within this times max(1, |f|): certificates state it


@dataclass(frozen=True)
class Target:
    """A function on sequences of ``n`` tokens with ``d`` features.

        target = te.Target(lambda X: np.sort(X, axis=1), n=3, lipschitz=1.0)

    Args:
        f: maps arrays (batch, n, d) to arrays (batch, n, d), NumPy or torch.
        n: how many tokens a sequence has.
        d: how many features a token has.
        lipschitz: the constant from the entrywise maximum norm to the entrywise maximum norm:
            max|f(X) − f(Y)| ≤ lipschitz · max|X − Y|.
        equivariant: claims f(XP) = f(X)P for every permutation of the tokens.
        domain: a box (low, high), each a number or one number per feature, or another compact set (``te.domains``):
            then f is asked at points of it alone, and low and high are the ends of a box around it.
        modulus: a general modulus of continuity ω, in place of ``lipschitz``: |f(X) − f(Y)| ≤ ω(r) for all X and Y no
            farther apart than r. So ω does not decrease; one that does is refused.
        interval: for certificates, maps boxes (low, high) of sequences to boxes that contain f of them (of
            their part in the domain).
        bound: the largest |f|; allows a statistical certificate.
        compact_support: the function of all of R^{d×n} that is f on the box and 0 outside. Its witness takes any finite
            input. f is asked about the box alone; where it is not 0 at the edge, that function is not continuous there.
        name: what it is called.
        description: what it does, in words.
        origin: where it comes from, for the record.

    Raises:
        InvalidTarget: a claim is false at some point that was tried, or an argument is not what it must be.
    """

    built_by: ClassVar = {"faithful": "faithful", "compact": "compact"}  # see ``constructions/build.py``

    f: Callable[[Any], Any]
    n: int
    d: int = 1
    lipschitz: float | None = None
    equivariant: bool = False
    domain: tuple[float | Sequence[float], float | Sequence[float]] | Domain = (0.0, 1.0)
    modulus: Callable[[float], float] | None = None
    interval: Callable[[Array, Array], tuple[Array, Array]] | None = None
    bound: float | None = None
    compact_support: bool = False
    name: str = "function"
    description: str = ""
    origin: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("n", "d"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
                raise InvalidInput(f"The '{name}' of a target must be an integer of at least 1; got {value!r} instead.")
            object.__setattr__(self, name, int(value))
        if self.n * self.d > LONGEST:
            raise InvalidInput(
                f"A sequence of a target must have at most {LONGEST:,} numbers; got n = {self.n}, d = {self.d} instead."
            )
        if not callable(self.f):
            raise InvalidInput(f"The function of a target must be callable; got {type(self.f).__name__} instead.")
        for name in ("lipschitz", "bound"):
            object.__setattr__(self, name, size_or_none(name, getattr(self, name)))
        for name in ("equivariant", "compact_support"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InvalidInput(f"'{name}' must be True or False; got {getattr(self, name)!r} instead.")
            object.__setattr__(self, name, bool(getattr(self, name)))
        if not isinstance(self.name, str) or any("\ud800" <= letter <= "\udfff" for letter in self.name):
            raise InvalidInput(f"The name of a target must be a text; got {self.name!r} instead.")
        if isinstance(self.domain, Domain):
            plain = self.domain.plain(self.d)
            object.__setattr__(self, "domain", self.domain.bound(self.n, self.d) if plain is None else plain)
            self._check_region()
        if self.region is None:  # our own numbers: the caller may go on with the arrays
            object.__setattr__(self, "domain", ends_of_box(self.domain, self.d))
        low, high = self.low, self.high
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise InvalidInput(f"'domain' must be a box with finite low < high; got {self.domain!r} instead.")

    @property
    def low(self) -> Array:
        return self._corner(0)  # (d,)

    @property
    def high(self) -> Array:
        return self._corner(1)  # (d,)

    @property
    def has_modulus(self) -> bool:
        return self.modulus is not None or self.lipschitz is not None

    @property
    def provable(self) -> bool:
        """Whether anything is stated that bounds f between the points at which it is asked."""
        return self.has_modulus or self.interval is not None

    @property
    def region(self) -> Domain | None:
        """The domain, as a set of vectors of n·d numbers, where it is not a box."""
        return self.domain if isinstance(self.domain, Domain) else None

    @property
    def volume(self) -> float:
        """Of the box of a whole sequence (of a region: of what its points are drawn from, ``Domain.mass``); 0 or
        infinity where float64 does not hold it."""
        if self.region is not None:
            return self.region.mass
        with np.errstate(over="ignore", under="ignore"):
            return float(np.prod(self.high - self.low) ** self.n)

    def contains(self, X: Array) -> Array:
        """Which sequences lie in the domain: (batch,)."""
        if self.region is not None:
            return self.region.contains(X.reshape(len(X), -1))
        return np.asarray(((self.low <= X) & (self.high >= X)).all(axis=(1, 2)))

    def drawn(self, unit: Array, fine: Array) -> tuple[Array, Array]:
        """Sequences made of numbers in [0, 1] and of their next bits, (batch, n, d) like these, and which of them lie
        in the domain.

        Uniform numbers give uniform sequences of a set of measure ``volume`` that holds the domain.
        """
        if self.region is None:
            return placed(self.low, self.high, unit, fine), np.ones(len(unit), dtype=bool)
        X, inside = self.region.drawn(unit.reshape(len(unit), -1), fine.reshape(len(fine), -1))
        return X.reshape(unit.shape), inside

    def points(self, rng: np.random.Generator, count: int) -> Array:
        """Random sequences of the domain, not always uniform: those drawn beside it are replaced by near ones of it."""
        shape = (count, self.n, self.d)
        X, inside = self.drawn(rng.random(shape), rng.random(shape))
        return X if inside.all() else self.nearest(X)

    def nearest(self, X: Array) -> Array:
        """Sequences of the domain near these: the nearest ones, of a box."""
        if self.region is None:
            return np.clip(X, self.low, self.high)
        return self.region.nearest(X.reshape(len(X), -1)).reshape(X.shape)

    def _check_region(self) -> None:
        if self.region is None:
            return
        if self.equivariant and not self.region.symmetric:
            raise InvalidInput(
                "An equivariant function needs a domain in which tokens may change places: one of tokens, described by "
                f"{self.d} numbers. {self.region.words()[:1].upper()}{self.region.words()[1:]} is one of whole "
                "sequences: leave the claim out (Theorem 2, positional encoding)."
            )
        if self.compact_support:
            raise InvalidInput(
                "Only a function on a box can be built to be 0 outside: a network changes along the grid, and "
                f"{self.region.words()} does not end there. Leave 'compact_support' out: inputs outside are refused."
            )

    def _corner(self, side: int) -> Array:
        if isinstance(self.domain, Domain):
            ends = self.domain.ends[side].reshape(self.n, self.d)
            return ends.max(axis=0) if side else ends.min(axis=0)
        return np.broadcast_to(np.asarray(self.domain[side]), (self.d,))

    def variation(self, radius: float) -> float | None:
        """An upper bound on max|f(X) − f(Y)| over max|X − Y| ≤ radius, or None if the caller stated none."""
        if self.modulus is not None:
            return self._modulus.at(radius)
        return None if self.lipschitz is None else self.lipschitz * radius

    @cached_property
    def _modulus(self) -> Modulus:
        assert self.modulus is not None  # or nobody asks
        return Modulus(self.modulus, self.name, float((self.high - self.low).max()))

    def __call__(self, X: Array) -> Array:
        """``f`` on a NumPy batch, checked: the shape it must have, every entry finite."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        if len(X) > BATCH:
            return np.concatenate([self(X[start : start + BATCH]) for start in range(0, len(X), BATCH)])
        Y = self._call(X)
        answered(len(X))
        if Y.shape != X.shape:
            raise InvalidTarget(
                f"{self.name} must return an array of shape {X.shape} for an input of that shape; "
                f"it returned {Y.shape} instead."
            )
        sane = np.abs(Y) <= LARGEST  # False for NaN
        if not sane.all():
            worst = X[~sane.all(axis=(1, 2))][0]
            raise InvalidTarget(
                f"{self.name} returns NaN, infinity or numbers beyond {in_full(LARGEST)}, for example at X = "
                f"{worst.tolist()}."
            )
        return Y

    def _call(self, X: Array) -> Array:
        """Try NumPy first; a function written for torch gets tensors."""
        try:
            with printed_to_stderr():  # what f prints is not our output
                return real(self.f(X.copy()))
        except ThereExistsError:
            raise
        except (Exception, SystemExit) as first:
            reason = unless_memory(first)
            try:
                import torch

                with printed_to_stderr():
                    Y = self.f(torch.from_numpy(X.copy()))
                if isinstance(Y, torch.Tensor):
                    return real(Y.detach().numpy())
            except (Exception, SystemExit) as second:  # the NumPy failure is the one worth reporting
                unless_memory(second)
            raise InvalidTarget(f"{self.name} failed on an input of shape {X.shape}: {reason}") from first

    def enclosure(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The interval extension on boxes (batch, n, d), checked: two arrays of that shape (or numbers), low ≤ high."""
        if self.interval is None:
            raise InvalidTarget(f"{self.name} has no interval extension.")
        return enclosed(self.name, self.interval, low, high, low.shape)

    def describe(self) -> dict[str, Any]:
        """All that is claimed of the function, as plain data: what a witness and a certificate store of it."""
        return {
            "name": self.name,
            "description": self.description,
            "n": self.n,
            "d": self.d,
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "lipschitz": self.lipschitz,
            "equivariant": self.equivariant,
            **({"compact_support": True} if self.compact_support else {}),
            **({} if self.region is None else {"domain": self.region.describe()}),
            "origin": self.origin,
        }

    def check_equivariance(self, trials: int = 64, seed: int = 0) -> None:
        """Refuse a false claim of equivariance, with the counterexample."""
        rng = np.random.default_rng(seed)
        X = self.points(rng, trials)
        permutation = rng.permuted(np.tile(np.arange(self.n), (trials, 1)), axis=1)[:, :, None]
        with phase(f"is {self.name} equivariant", (2 + BESIDE) * trials):
            Y = self(X)
            permuted_after = np.take_along_axis(Y, permutation, axis=1)
            permuted_before = self(np.take_along_axis(X, permutation, axis=1))
            tolerance = self._rounding(X, Y, rng)
        gap = np.abs(permuted_after - permuted_before).max(axis=(1, 2))
        if gap.max() > tolerance:
            worst = int(gap.argmax())
            raise InvalidTarget(
                f"{self.name} is not permutation equivariant: for X = {X[worst].tolist()} and the permutation "
                f"{permutation[worst, :, 0].tolist()}, f(XP) and f(X)P differ by {gap[worst]:.3g}. "
                "Build it without the claim (Theorem 2, positional encoding)."
            )

    def _rounding(self, X: Array, Y: Array, rng: np.random.Generator) -> float:
        """How far f may be off if it sums over the tokens in another order: by the rounding of n·d terms, no more.

        How large the terms are is not known, since they may cancel; but one more unit in the last place of the inputs
        moves f by about as much as its own rounding does, and that is measured. The claims of the target are not asked:
        a large Lipschitz constant would excuse anything. Nor is rounding an excuse for f altogether: a function whose
        rounding shows in its first three digits has no symmetry that could be checked.
        """
        largest = float(np.abs(Y).max())
        moved = largest * np.finfo(np.float64).eps
        for _ in range(BESIDE):
            beside = self.nearest(np.nextafter(X, np.where(rng.random(X.shape) < 0.5, self.low, self.high)))
            moved = max(moved, float(np.abs(self(beside) - Y).max()))
        return min(64 * self.n * self.d * moved, 2.0**-10 * largest)

    def check_one_by_one(self, seed: int = 0, alone: int = 16) -> None:
        """Refuse a function whose answer to a sequence depends on the batch it comes in, or on when it is asked.

        A batch of ``BATCH`` sequences, the most that f is ever given, is asked for twice, in another order, beside
        other sequences, in parts of a dozen random sizes (some even over the range, some over its logarithm), and
        ``alone`` of them one by one. f is computed to within EVALUATION_ERROR, or so it is assumed everywhere: two
        answers to one sequence may differ by twice that.
        """
        rng = np.random.default_rng(seed)
        X, other = self.points(rng, 2 * BATCH).reshape(2, BATCH, self.n, self.d)
        order, single = rng.permutation(BATCH), rng.choice(BATCH, alone, replace=False)
        sizes = [int(2 ** rng.uniform(1, np.log2(BATCH))) for _ in range(2 * SIZES)]
        sizes += [int(rng.integers(2, BATCH)) for _ in range(SIZES)]
        starts = [int(rng.integers(BATCH - size)) for size in sizes]
        beside = np.where(rng.random((BATCH, 1, 1)) < 0.5, X, other)
        kept = (beside == X).all(axis=(1, 2))
        with phase(f"is {self.name} a function of one sequence", 4 * BATCH + sum(sizes) + alone):
            Y = self(X)
            if in_float32(Y):
                raise InvalidTarget(
                    f"{self.name} computes in float32 (or less): all its answers are float32 numbers, though it is "
                    "given float64 ones. Compute in float64: certificates assume that."
                )
            again = self(X)
            asked = {
                "when it is asked again": (again, Y),
                "in another order": (self(X[order]), Y[order]),
                "beside other sequences": (self(beside)[kept], Y[kept]),
                **{
                    f"in a batch of {k}": (self(X[i : i + k]), Y[i : i + k]) for i, k in zip(starts, sizes, strict=True)
                },
                "alone": (self.alone(X[single]), Y[single]),
            }
        for how, (found, before) in asked.items():
            if not same_answers(found, before):
                off = float(np.abs(found - before).max())
                if how == "when it is asked again":
                    raise InvalidTarget(
                        f"{self.name} is not deterministic: asked twice about the same sequences, its answers differ "
                        f"by up to {off:.3g}. A target must be a function; take the randomness out of it."
                    )
                raise InvalidTarget(
                    f"{self.name} must answer every sequence by itself, but {how} its answers differ by up to "
                    f"{off:.3g} from those in a batch of {BATCH}: it mixes the sequences of a batch (a sum, mean or "
                    "maximum over axis 0), or it computes in less than float64."
                )

    def alone(self, X: Array) -> Array:
        """f of every sequence by itself."""
        return np.concatenate([self(X[i : i + 1]) for i in range(len(X))])


def check_is_target(given: Any) -> None:
    """Refuse what is given as a function and is none of ours; None is none given."""
    if given is not None and not isinstance(given, Target):
        raise InvalidInput(f"'target' must be a te.Target; got {type(given).__name__} instead.")


def standing_in(given: Any, own: Target) -> Target:
    """The function given for a witness's own, or its own if none is. One of other sequences is refused: the cells, and
    whatever is summed over them, are those of its own, and say nothing of what lies beside them."""
    check_is_target(given)
    if given is None:
        return own
    told, wanted = _sequences_of(given), _sequences_of(own)
    differing = [f"{k} = {shortly(told[k])} in place of {shortly(wanted[k])}" for k in told if told[k] != wanted[k]]
    if differing:
        raise InvalidInput(
            f"A function given for a witness must have the shape, domain and symmetry of its own; {given.name} has "
            f"{', '.join(differing)}."
        )
    return given


def _sequences_of(target: Target) -> dict[str, Any]:
    """What a function says of the sequences that it is defined on."""
    told = {name: getattr(target, name) for name in ("n", "d", "equivariant", "compact_support")}
    domain = None if target.region is None else wherever_it_lies(target.region.describe())
    return {**told, "low": target.low.tolist(), "high": target.high.tolist(), "domain": domain}


def same_answers(found: Array, before: Array) -> bool:
    """Whether two computations of f agree, each being within EVALUATION_ERROR of it."""
    return bool((np.abs(found - before) <= 2 * EVALUATION_ERROR * np.maximum(1.0, np.abs(before))).all())


def from_file(reference: str, n: int, d: int = 1, **properties: Any) -> Target:
    """``path/to/file.py:function`` as a target. The hash of the bytes that were run goes into the witness."""
    file, name = read_user_file(reference, "function")
    f = function_of(file, name)
    origin = {"kind": "file", "reference": f"{Path(file.path).resolve()}:{name}", "sha256": file.sha256}
    description = (f.function.__doc__ or "").strip().split("\n")[0]
    return Target(f, n=n, d=d, name=name, description=description, origin=origin, **properties)
