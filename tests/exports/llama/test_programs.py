"""Causal programs over symbols by ``generate``, in a process of plain transformers, against the program itself."""

import pytest

import thereexists as te
from tests.certificates.llama.small_programs import programs, strings
from tests.command import thereexists
from tests.exports.llama.asking import DTYPES, completed
from thereexists import program as P
from thereexists.core.errors import CannotBuild

pytest.importorskip("transformers")


def prompts():
    return [word for m in range(1, 5) for word in strings("ab", m)]


def meant(program):
    """The symbol at the last token of every prompt, by the interpreter, whatever follows."""
    answers = P.interpret(program, [(prompt + "abab")[:4] for prompt in prompts()])
    return [answer[len(prompt) - 1] for prompt, answer in zip(prompts(), answers, strict=True)]


@pytest.mark.slow
def test_induction_from_the_command_line(fresh, tmp_path):
    program = programs()["induction"]
    te.build(program).save(tmp_path / "w")
    thereexists("export", "w", "--to", "llama", "--out", "stock", "--dtype", "bfloat16", cwd=tmp_path)
    thereexists("verify", "stock", cwd=tmp_path)
    card = (tmp_path / "stock" / "README.md").read_text()
    assert "In float32 and in bfloat16, for every prompt of 1 to 4 symbols" in card
    found = completed(fresh, {tmp_path / "stock": prompts()}, tmp_path, caches=(True, False))
    assert found == dict.fromkeys(found, meant(program))


@pytest.mark.slow
def test_all_small_programs(fresh, tmp_path):
    for k, program in enumerate(programs().values()):
        te.export(te.build(program, dtypes=("float64",)), "llama", tmp_path / str(k))
        verdict = te.verify(tmp_path / str(k))
        assert verdict.holds, verdict.reasons
    found = completed(fresh, {tmp_path / str(k): prompts() for k in range(len(programs()))}, tmp_path)
    for k, program in enumerate(programs().values()):
        for dtype in DTYPES:
            assert found[tmp_path / str(k), dtype, True] == meant(program), k


def test_networks_that_see_all_tokens_are_refused_with_the_reason(tmp_path):
    with pytest.raises(CannotBuild, match="'sort' is taken over all tokens"):
        te.build(P.sort(P.tokens(n=2)), dtypes=("float64",)).lowerable()
    with pytest.raises(CannotBuild, match="heads see all n tokens"):
        te.export(
            te.build(te.targets.builtin("sort", n=2), delta="1/2", construction="compact"), "llama", tmp_path / "no"
        )
