"""Everything that decides a training run, in one frozen record that is written beside what the run saves."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_numbers import seed_from

TASKS = ("mlm", "nli", "copy", "lm", "mt")
PRECISIONS = ("bf16", "fp32")
MOST = 1 << 24  # tokens of a sequence that a model has positions for, and sequences of a step
MOST_BUDGET, MOST_RATE = 1e18, 1e30


@dataclass(frozen=True)
class Budget:
    """How long to train; exactly one is given. Seconds depend on the machine: steps, tokens and epochs do not.

        te.experiments.Budget(steps=100)

    Args:
        steps: of the optimiser.
        tokens: that are read.
        seconds: on this machine.
        epochs: passes over the data.
    """

    steps: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    epochs: float | None = None

    def __post_init__(self) -> None:
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        if len(given) != 1:
            raise InvalidInput(
                "A budget must be given in exactly one of steps, tokens, seconds and epochs; "
                f"got {', '.join(given) or 'none'}."
            )
        ((name, value),) = given.items()
        if name in ("steps", "tokens") and not isinstance(value, int):
            raise InvalidInput(f"A budget of {name} must be a whole number; got {value!r:.80}.")
        if not _is_number(value) or not 0 < value <= MOST_BUDGET:
            raise InvalidInput(f"A budget of {name} must be positive, and at most {MOST_BUDGET:g}; got {value!r:.80}.")

    def in_steps(self, tokens_per_step: int, steps_per_epoch: int | None) -> int | None:
        """The number of steps, or None for a budget in seconds."""
        if self.steps is not None:
            return self.steps
        if self.tokens is not None:
            return max(1, round(self.tokens / tokens_per_step))
        if self.epochs is not None:
            if steps_per_epoch is None:
                raise InvalidInput("This task draws fresh data and has no epochs; give steps, tokens or seconds.")
            return max(1, round(self.epochs * steps_per_epoch))
        return None


@dataclass(frozen=True)
class Settings:
    """Everything that decides a training run.

        budget = te.experiments.Budget(steps=100)
        te.experiments.Settings("copy", budget, {"size": "tiny", "mixer": "sepconv"}, length=32)

    Args:
        task: mlm, nli, copy, lm or mt.
        budget: how long to train.
        model: the ``size`` and the fields of a mixer configuration.
        data: the paths of the corpora.
        options: what only some tasks have.
        start: the folder of a run whose weights to start from; None for random weights.
        length: tokens of a sequence.
        batch: sequences per step.
        lr: the largest learning rate.
        warmup: the share of the budget in which it rises.
        weight_decay: of AdamW.
        clip: the largest norm of a gradient.
        precision: bf16 or fp32.
        seed: of weights, data and dropout.
        compile: whether the model is compiled.

    Raises:
        InvalidInput: a number is outside its range, or there is no such task or precision.
    """

    task: str
    budget: Budget
    model: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    start: str | None = None
    length: int = 128
    batch: int = 256
    lr: float = 1e-3
    warmup: float = 0.06
    weight_decay: float = 0.01
    clip: float = 1.0
    precision: str = "bf16"
    seed: int = 0
    compile: bool = False

    def __post_init__(self) -> None:
        _one_of("task", self.task, TASKS)
        _one_of("precision", self.precision, PRECISIONS)
        if not isinstance(self.budget, Budget):
            raise InvalidInput(f"A budget is steps, tokens, seconds or epochs; got {self.budget!r:.80}.")
        for name in ("model", "data", "options"):
            if not isinstance(value := getattr(self, name), Mapping):
                raise InvalidInput(f"'{name}' must be a table of names and values; got {value!r:.80}.")
        _check_options(self.options)
        for name, low, high in (("length", 2, MOST), ("batch", 1, MOST)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value:
                raise InvalidInput(f"'{name}' must be an integer, at least {low}; got {value!r}.")
            if value > high:
                raise InvalidInput(f"'{name}' must be at most {high:,}; got {value!r}.")
        object.__setattr__(self, "seed", seed_from(self.seed))
        rates = (self.lr, self.clip, self.weight_decay, self.warmup)
        right = all(_is_number(rate) and rate <= MOST_RATE for rate in rates)
        if not (right and self.lr > 0 and self.clip > 0 and self.weight_decay >= 0 and 0 <= self.warmup < 1):
            raise InvalidInput(
                f"'lr' and 'clip' must be positive, 'weight_decay' at least 0, none above {MOST_RATE:g}, and 'warmup' "
                f"in [0, 1); got {', '.join(f'{rate!r:.80}' for rate in rates)}."
            )

    def record(self) -> dict[str, Any]:
        """Plain JSON; the budget without its empty fields."""
        record = asdict(self)
        record["budget"] = {name: value for name, value in record["budget"].items() if value is not None}
        return record

    def differing(self, other: Mapping[str, Any]) -> str | None:
        """The first field in which a stored record differs; where the data lies does not matter, only what it is."""
        mine = self.record()
        names = [name for name in mine if name not in ("data", "start")]
        return next((name for name in names if mine[name] != other.get(name)), None)

    @staticmethod
    def portable(record: Mapping[str, Any]) -> dict[str, Any]:
        """A stored record without the paths of the machine it ran on; ``data`` of the result says what was read."""
        return {name: value for name, value in record.items() if name not in ("data", "start")}

    def with_(self, **changes: Any) -> Settings:
        return replace(self, **changes)


def from_record(record: Mapping[str, Any]) -> Settings:
    known = {f.name for f in fields(Settings)}
    unknown = sorted(set(record) - known)
    if unknown:
        raise InvalidInput(f"A training run has no setting {unknown[0]!r}; it takes {', '.join(sorted(known))}.")
    return Settings(**{**record, "budget": Budget(**record["budget"])})


def learning_rate(settings: Settings, progress: float) -> float:
    """Linear warm-up to the peak, then linear decay to 0; ``progress`` is the share of the budget that is spent."""
    if progress < settings.warmup:
        return settings.lr * progress / settings.warmup
    return settings.lr * max(0.0, 1 - progress) / (1 - settings.warmup)


def count(text: str) -> int:
    """``40M``, ``2.5k``, ``1e6`` or ``300`` as a number."""
    match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([kKmMbBgG]?)\s*", text)
    scale = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9}
    try:
        value = float(match[1]) * scale[match[2].lower()] if match else math.nan
    except ValueError:
        value = math.nan
    if not value >= 1:
        raise InvalidInput(f"A number such as 300, 20k or 40M is wanted; got {text!r}.")
    return round(value)


def _check_options(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if name not in _OPTIONS:
            raise InvalidInput(f"A training run has no option {name!r:.80}; there are {', '.join(sorted(_OPTIONS))}.")
        wanted, is_right = _OPTIONS[name]
        if not is_right(value):
            raise InvalidInput(f"The option '{name}' must be {wanted}; got {value!r:.80}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_WHOLE = (f"a whole number from 1 to {MOST:,}", lambda v: type(v) is int and 0 < v <= MOST)
_LANGUAGE = ("the ending of the files of a language", _is_text)
_OPTIONS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "vocabulary": _WHOLE,
    "evaluate": _WHOLE,
    "symbols": _WHOLE,
    "dropout": ("a number in [0, 1)", lambda v: _is_number(v) and 0 <= v < 1),
    "source": _LANGUAGE,
    "target": _LANGUAGE,
    "tests": ("a list of names", lambda v: v is None or (isinstance(v, list | tuple) and all(map(_is_text, v)))),
}


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidInput(f"'{name}' must be one of {', '.join(known)}; got {value!r}.")


@dataclass(frozen=True)
class Execution:
    """How a run is carried out; none of it changes a figure, except by the machine's rounding.

        te.experiments.Execution(device="cpu", quiet=True)

    Args:
        device: ``cpu`` or ``cuda``; None for the one that is there.
        cache: the folder for tokenised data; None for the user's own.
        checkpoint_seconds: the time between checkpoints; with 0 there is one only when the run is interrupted.
        stop_at: when to write a checkpoint and stop, as ``time.time()`` gives it; None for never.
        tensorboard: whether curves are logged for TensorBoard.
        quiet: whether the progress bar is left out.
    """

    device: str | None = None
    cache: Path | None = None
    checkpoint_seconds: float = 60.0
    stop_at: float | None = None
    tensorboard: bool = True
    quiet: bool = False
