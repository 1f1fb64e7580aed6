"""The one reader of a run's record: every field that tables, plots and pages use, checked once, where it is read.

A record may be cut off, edited or made up. ``checked`` refuses it in one sentence that names the file and the field;
what it returns has the types and the ranges that the rest of this package relies on. Numbers stay within ``LARGEST``,
so that a square of a square of them is still a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import visible
from thereexists.experiments.names import LONGEST_NAME, NAME, SLUG, is_name, is_slug
from thereexists.experiments.settings import TASKS

Record = dict[str, Any]
LARGEST = 1e50
MOST_TOKENS = 10**18
LONGEST_SEQUENCE = 1 << 20
MOST_TESTS = 64
UNHEARD_OF = 1e-12  # the probability of more luck than is believed
_BUDGETS = ("steps", "tokens", "seconds", "epochs")


def checked(record: Any, where: str) -> Record:
    """The record itself, if it is one of a run; ``where`` it stood, for messages."""
    top = Field(record, where)
    top["run"].name()
    experiment = top["experiment"].slug()
    top["size"].slug()
    top["seed"].whole(0)
    top["seconds"].number(0)
    top.optional("parallel", lambda given: given.whole(1))
    labels = top["labels"].object()
    stages = top["stages"].object()
    if not stages.value:
        raise stages.wrong("an object with at least one stage")
    for task, stage in stages.items():
        _stage(task, stage)
    if experiment == "table-a":  # the tables of these two are about one figure
        stages["mlm"]["metrics"]["accuracy"].number()
    if experiment == "copying":
        labels["run"].name()
        labels["layers"].whole(1, 10_000)
        stages["copy"]["metrics"]["accuracy"].number()
    return record


def _stage(task: str, stage: Field) -> None:
    if task not in TASKS:
        raise stage.wrong(f"a stage of one of the tasks {', '.join(TASKS)}")
    if stage["task"].text() != task:
        raise stage["task"].wrong(f"{task!r}, as the stage is called")
    stage["parameters"].whole(0)
    stage["steps"].whole(1)
    stage["tokens_seen"].whole(0)
    stage["tokens_per_second"].number(0)
    stage["seconds"].number(0)
    stage["device"].text()
    stage.optional("evaluation_seconds", lambda given: given.number(0))
    stage.optional("precision", Field.text)
    _settings(stage["settings"])
    _DATA[task](stage["data"])
    _metrics(stage["metrics"], stage["settings"]["length"].whole(1))
    for pair in stage["history"].list():
        step, loss = pair.list(2, 2)
        step.number(0)
        loss.number()
    stage.optional("curve", _curve)
    stage.optional("hypotheses", _hypotheses)


def _settings(settings: Field) -> None:
    for name, value in settings["budget"].items():
        if name not in _BUDGETS:
            raise value.wrong(f"one of {', '.join(_BUDGETS)}")
        value.number(0, MOST_TOKENS)
    settings["length"].whole(1, LONGEST_SEQUENCE)
    settings["batch"].whole(1)
    settings["lr"].number(0)
    settings["precision"].text()
    settings.optional("options", lambda given: given.optional("target", Field.slug))
    model = settings["model"].object()
    mixer = model.optional("mixer", Field.text)
    if mixer == "sparse":
        model["pattern"].text()
    model.optional("pattern_options", Field.object)
    model.optional("pattern_config", Field.text)


def _metrics(metrics: Field, length: int) -> None:
    given = {name for name, value in metrics.object().value.items() if value is not None}
    for name in given & {"accuracy", "accuracy_bound"}:
        metrics[name].number(0, 1)
    if "perplexity" in given:
        metrics["perplexity"].number()
    if given >= {"accuracy", "accuracy_bound"}:
        _within_bound(metrics, length)
    metrics.optional("bleu", _bleu)


def _within_bound(metrics: Field, length: int) -> None:
    """The bound is one of the expectation, and a sample of guesses may be luckier, but not by anything.

    Sequences are independent, and each has at most ``length`` of the predictions. So there are at least predictions /
    length of them, and by Hoeffding's inequality their mean is more than t above its expectation with a probability of
    at most exp(−2 t² predictions / length), which is ``UNHEARD_OF`` at the t below.
    """
    accuracy, bound = metrics["accuracy"].value, metrics["accuracy_bound"].value
    if accuracy > bound:
        luck = math.sqrt(math.log(1 / UNHEARD_OF) * length / (2 * metrics["predictions"].whole(1)))
        if accuracy > bound + luck:
            raise metrics["accuracy"].wrong(
                f"at most its accuracy_bound, {bound:.4g}, but for the luck of guesses, {luck:.2g}"
            )


def _bleu(bleu: Field) -> None:
    for name, score in bleu.items(MOST_TESTS):
        _name_of(score, name)
        score["score"].number(0, 1000)


def _hypotheses(hypotheses: Field) -> None:
    for name, lines in hypotheses.items(MOST_TESTS):
        _name_of(lines, name)
        if name.count("/") != 1:
            raise lines.wrong("of a test set FOLDER/NAME")
        for line in lines.list():
            line.text(1 << 20)


def _name_of(field: Field, name: str) -> None:
    if not is_name(name):
        raise field.wrong(f"of a test set whose name has {NAME}")


def _curve(curve: Field) -> None:
    for point in curve.list():
        point["tokens"].number(1)
        point.optional("loss", Field.number)


def _text_data(data: Field) -> None:
    for name in ("corpus", "valid"):
        data[name]["name"].text()
        data[name]["tokens"].whole(0)
    data["tokenizer"]["vocabulary"].whole(1)


def _nli_data(data: Field) -> None:
    data["train"]["name"].text()
    data["train"]["examples"].whole(0)
    data["dev"]["examples"].whole(0)
    data["labels"].list()


def _mt_data(data: Field) -> None:
    for source in data["train"].list():
        source["name"].text()
    data["pairs"].whole(0)
    data["pairs_left_out"].whole(0)


_DATA: dict[str, Callable[[Field], Any]] = {
    "mlm": _text_data,
    "lm": _text_data,
    "nli": _nli_data,
    "copy": lambda data: data["symbols"].whole(1),
    "mt": _mt_data,
}


@dataclass(frozen=True)
class Field:
    """A value in a file of records, and its name there: ``stages.mlm.steps``."""

    value: Any
    where: str
    path: str = ""
    what: str = "the record of a run"

    def wrong(self, wanted: str) -> InvalidInput:
        got = visible(repr(self.value)[:80]) if not isinstance(self.value, dict | list) else _kind(self.value)
        name = f"its {visible(self.path)[:120]!r}" if self.path else "it"
        return InvalidInput(f"{self.where} is not {self.what}: {name} must be {wanted}; got {got}.")

    def __getitem__(self, key: str) -> Field:
        if key not in self.object().value:
            raise InvalidInput(f"{self.where} is not {self.what}: it has no {self._below(key)!r}.")
        return replace(self, value=self.value[key], path=self._below(key))

    def optional(self, key: str, check: Callable[[Field], Any]) -> Any:
        return check(self[key]) if key in self.object().value else None

    def _below(self, key: Any) -> str:
        return f"{self.path}.{key}" if self.path else str(key)

    def object(self) -> Field:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return self

    def items(self, most: int = 10_000) -> Iterator[tuple[str, Field]]:
        if len(self.object().value) > most:
            raise self.wrong(f"an object of at most {most:,} entries")
        for key in self.value:
            yield key, self[key]

    def list(self, least: int = 0, most: int = 1_000_000) -> list[Field]:
        if not isinstance(self.value, list) or not least <= len(self.value) <= most:
            raise self.wrong(f"a list of {least:,} to {most:,} entries" if least else "a list")
        return [replace(self, value=value, path=self._below(i)) for i, value in enumerate(self.value)]

    def whole(self, least: int, most: int = MOST_TOKENS) -> int:
        if type(self.value) is not int or not least <= self.value <= most:
            raise self.wrong(f"a whole number from {least} to {most:,}")
        return self.value

    def number(self, least: float = -LARGEST, most: float = LARGEST) -> float:
        if type(self.value) not in (int, float) or not least <= self.value <= most:
            raise self.wrong(f"a number from {least:g} to {most:g}")
        return self.value

    def text(self, most: int = 1000) -> str:
        if not isinstance(self.value, str) or len(self.value) > most:
            raise self.wrong(f"a text of at most {most:,} characters")
        return self.value

    def slug(self) -> str:
        if not is_slug(self.text()):
            raise self.wrong(f"a plain name of {SLUG}")
        return self.value

    def name(self) -> str:
        if not is_name(self.text()):
            raise self.wrong(f"a name of at most {LONGEST_NAME} characters: {NAME}")
        return self.value


def _kind(value: Any) -> str:
    return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value):,} entries"
