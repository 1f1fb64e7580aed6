"""One object for a command: its fields are the options, its groups too, and everything is as with plain parameters."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from thereexists.cli import _construction, app
from thereexists.cli._settings import _made, _options, command
from thereexists.cli._training import TrainOptions
from thereexists.cli.train import CausalOptions, ClassifyOptions, CopyOptions, MaskedOptions, TranslateOptions


@dataclass(frozen=True, kw_only=True)
class Group:
    size: Annotated[int, typer.Option(min=1, help="How large.")] = 3
    name: Annotated[str | None, typer.Option(help="Which.")] = None


@dataclass(frozen=True, kw_only=True)
class Options:
    place: Annotated[Path, typer.Argument(help="Where.")]
    group: Group = Group(size=5)
    loud: Annotated[bool, typer.Option("--loud", help="Shout.")] = False


@dataclass(frozen=True, kw_only=True)
class Larger(Group):
    more: Annotated[int, typer.Option()] = 0


@dataclass(frozen=True, kw_only=True)
class Twice:
    size: Annotated[int, typer.Option()] = 1
    group: Group


@dataclass(frozen=True, kw_only=True)
class Mistaken:
    group: Group = Larger()


def run(*arguments):
    seen = []
    made = typer.Typer()

    @command(made)
    def look(asked: Options) -> None:
        """Look at a place."""
        seen.append(asked)

    result = CliRunner().invoke(made, list(map(str, arguments)))
    return result, seen


def test_the_values_arrive_in_one_object_groups_and_all():
    result, seen = run("here", "--name", "x", "--loud")
    assert result.exit_code == 0
    assert seen == [Options(place=Path("here"), group=Group(size=5, name="x"), loud=True)]


def test_help_defaults_and_errors_are_those_of_typer():
    result, _ = run("--help")
    for words in ("Look at a place.", "Where.", "How large.", "[default: 5]", "--loud"):
        assert words in result.output
    for arguments in ([], ["here", "--size", "0"], ["here", "--size", "many"], ["here", "--bogus", "1"]):
        result, seen = run(*arguments)
        assert (result.exit_code, seen) == (2, [])


@pytest.mark.parametrize(("options", "words"), [(Twice, "declares size twice"), (Mistaken, "is Group, its default")])
def test_a_declaration_that_would_lose_an_option_is_refused(options, words):
    def body(asked): ...

    body.__annotations__ = {"asked": options, "return": None}
    with pytest.raises(TypeError, match=words):
        command(typer.Typer())(body)


@cache
def options_of(group, name):
    found = typer.main.get_command(app).commands[group].commands[name]
    return {parameter.name: parameter for parameter in found.params}


def test_the_five_train_commands_share_one_declaration():
    own = {
        "mlm": {"corpus", "valid", "vocabulary", "layers", "hybrid_blocks", "epochs"},
        "nli": {"data", "start", "epochs"},
        "copy": {"symbols", "layers"},
        "lm": {"corpus", "valid", "vocabulary", "layers", "hybrid_blocks", "epochs"},
        "mt": {"data", "source", "target", "vocabulary", "layers", "epochs"},
    }
    shared = {option.name for option in _options(TrainOptions)}
    for name, mine in own.items():
        assert set(options_of("train", name)) == shared | mine
    defaults = {name: [options_of("train", name)[x].default for x in ("length", "batch", "lr")] for name in own}
    assert defaults == {
        "mlm": [128, 128, 1e-3],
        "nli": [128, 128, 3e-4],
        "copy": [128, 128, 1e-3],
        "lm": [256, 64, 1e-3],
        "mt": [64, 256, 1e-3],
    }


PLAIN = {"norm_first": True, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@pytest.mark.parametrize(
    ("kind", "given", "model", "budget", "folder"),
    [
        (
            MaskedOptions,
            {"corpus": "c"},
            {"size": "mini", "mixer": "attention", **PLAIN},
            {"epochs": 1.0},
            "mlm-attention",
        ),
        (
            MaskedOptions,
            {"corpus": "c", "mixer": "hybrid", "hybrid_blocks": 2, "layers": 3, "tokens": "2M"},
            {"size": "mini", "mixer": "hybrid", "hybrid_blocks": 2, "num_hidden_layers": 3, **PLAIN},
            {"tokens": 2_000_000},
            "mlm-hybrid-3",
        ),
        (
            CopyOptions,
            {"pattern": "strided", "option": ["stride=4"], "steps": 5},
            {
                "size": "mini",
                "mixer": "sparse",
                "pattern": "strided",
                "pattern_config": "union",
                "pattern_options": {"stride": 4},
                "num_hidden_layers": 4,
                **PLAIN,
            },
            {"steps": 5},
            "copy-strided-union-4",
        ),
        (
            CausalOptions,
            {"corpus": "c"},
            {"size": "mini", "mixer": "attention", **PLAIN},
            {"epochs": 1.0},
            "lm-attention",
        ),
        (
            TranslateOptions,
            {"data": ["a", "b"]},
            {"size": "mini", "mixer": "attention", "norm_first": True},
            {"epochs": 10.0},
            "mt-attention",
        ),
        (ClassifyOptions, {"data": "d"}, {"size": "mini", "mixer": "attention"}, {"epochs": 3.0}, "nli-attention"),
    ],
)
def test_options_of_training_become_its_settings(kind, given, model, budget, folder):
    asked = made(kind, **given)
    record = asked.settings().record()
    assert record["model"] == model
    assert record["budget"] == budget
    assert asked.folder() == Path("runs") / folder


def test_a_run_to_begin_with_brings_its_own_model():
    asked = made(ClassifyOptions, data=Path("d"), start=Path("runs/a"), pattern="star")
    settings = asked.settings()
    assert (settings.start, settings.model) == ("runs/a", {"mixer": "sparse", "pattern": "star"})
    assert asked.folder() == Path("runs/a-nli")


def test_the_options_of_build_become_a_method():
    import thereexists as te
    from thereexists.functions.targets import builtin

    target = builtin("sort", n=2)
    faithful = _construction.BuildMethodOptions(delta="1/2", rho="sparsemax").method(target)
    compact = _construction.BuildMethodOptions(delta="1/2", construction="compact", max_width=64).method(target)
    assert faithful == te.Faithful(delta="1/2", rho="sparsemax", p=1.0)
    assert compact == te.Compact(delta="1/2", max_width=64, p=1.0)


def made(kind, **given):
    """The settings that a command would get, the options that are not given at their defaults."""
    return _made(kind, {option.name: given.get(option.name, option.default) for option in _options(kind)})
