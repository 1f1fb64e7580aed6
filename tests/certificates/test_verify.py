"""An option, or the caller's own code, says nothing of the files: a verdict of False is for what they hold."""

import numpy as np
import pytest

import thereexists as te
from tests.kinds import EXAMPLES


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return EXAMPLES["faithful"].saved(tmp_path_factory.mktemp("whole") / "w")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workers": 2}, "'workers' must be te.parallel.Workers"),
        ({"workers": None}, "'workers' must be te.parallel.Workers"),
        ({"progress": None}, "'progress' must be called as"),
    ],
)
def test_options_that_are_none_are_refused_at_every_door(folder, options, said):
    witness = te.load(folder)
    for ask in (lambda: te.verify(folder, **options), lambda: te.certify(witness, **options)):
        with pytest.raises(te.ThereExistsError, match=said) as refused:
            ask()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("options", [{"job": 3}, {"sample": "half"}, {"sample": True}, {"opinions": 1.5}])
def test_what_only_verify_takes_is_refused_too(folder, options):
    with pytest.raises(te.ThereExistsError, match=f"{next(iter(options.values()))}"):
        te.verify(folder, **options)


def test_numbers_of_numpy_are_numbers(folder):
    assert te.verify(folder, opinions=np.int64(3)).holds
    assert te.verify(folder, sample=np.float32(1.0)).holds is not False


@pytest.mark.parametrize("error", [RuntimeError("my bar broke"), te.ThereExistsError("mine"), MemoryError("mine")])
def test_an_error_of_the_callers_own_progress_is_the_callers(folder, error):
    def bar(done, total):
        raise error

    for ask in (lambda: te.verify(folder, progress=bar), lambda: te.certify(te.load(folder), progress=bar)):
        with pytest.raises(type(error)) as raised:
            ask()
        assert raised.value is error
    assert te.verify(folder).holds
