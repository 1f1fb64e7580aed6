"""An export is used without this package: with its words, its base and its own script; rows of any length."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

import thereexists as te

pytest.importorskip("onnxruntime")
pytest.importorskip("transformers")

ASK = """
import json, sys
for name in ("thereexists", *sys.argv[1].split()):
    sys.modules[name] = None  # importing it fails
sys.path.insert(0, ".")
import use
print(json.dumps(use.answer(json.loads(sys.argv[2]))))
"""


@pytest.fixture(scope="module")
def memory():
    """130 answers, so two digits; a string and an integer that are written alike; an empty answer; three lengths."""
    inputs = [["a", "dog"], ["a", "1"], ["a", 1, "cat"], ["cat"], *([i] for i in range(2, 132))]
    outputs = [["pes"], ["text"], ["číslo", 1], [], *([f"w{i}", "a", i] for i in range(2, 132))]
    return te.memorise(inputs, outputs)


@pytest.fixture(scope="module")
def exported(memory, tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    for to, dtype in (("onnx", "float16"), ("torch", "bfloat16"), ("hf", "float32")):
        te.export(memory, to, folder / to, dtype=dtype)
    return folder


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("to", "absent"),
    [
        ("onnx", "torch safetensors transformers"),
        ("torch", "transformers onnxruntime"),
        pytest.param("hf", "", marks=pytest.mark.slow),
    ],
)
def test_the_script_in_the_folder_answers_where_we_are_not_installed(memory, exported, tmp_path, to, absent):
    asked = [["a", "dog"], ["a", "1"], ["a", 1, "cat"], ["cat"], [131], [2], ["dog", "a"]]
    environment = os.environ | {"HF_MODULES_CACHE": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ASK, absent, json.dumps(asked)],
        cwd=exported / to,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == memory(asked)
    assert memory(asked)[:4] == [["pes"], ["text"], ["číslo", 1], []]
    assert memory(asked)[-1] is None


def test_the_vocabulary_and_the_base_are_in_every_folder(memory, exported):
    for to in ("onnx", "torch", "hf"):
        told = json.loads((exported / to / "tokens.json").read_text(encoding="utf-8"))
        assert told["vocabulary"] == list(memory.vocabulary.tokens)
        assert told["output_vocabulary"] == list(memory.output_vocabulary.tokens)
        assert (told["base"], told["digits"]) == (memory.digits.base, 2)
        code = "".join(file.read_text(encoding="utf-8") for file in (exported / to).glob("*.py"))
        assert "from thereexists" not in code


def test_the_script_as_a_command(memory, exported, monkeypatch, capsys):
    from thereexists.exports.alone.words import Words

    words = Words(exported / "onnx")
    for typed, answer in (("a 1", '["text"]'), ("a 1 cat", "null"), ("131", '["w131", "a", 131]')):
        monkeypatch.setattr(sys, "argv", ["use.py", *typed.split()])
        words.command(memory)
        assert capsys.readouterr().out.strip() == answer
    for typed, reason in (("cow", "The token 'cow' is not in"), ("", "1 to 3 tokens; got 0"), ("a a a a", "got 4")):
        monkeypatch.setattr(sys, "argv", ["use.py", *typed.split()])
        with pytest.raises(SystemExit) as ended:
            words.command(lambda asked: words.answers(lambda numbers: numbers, asked))
        assert ended.value.code == 2
        assert reason in capsys.readouterr().err


# --- rows of any length ----------------------------------------------------------------------------------------------


def loaded(folder):
    from transformers import AutoModel

    import thereexists.exports.hf_format  # noqa: F401  (registers the model)

    return AutoModel.from_pretrained(folder, local_files_only=True)


def answers(memory, output):
    numbers = memory.digits.join(output.last_hidden_state.double().numpy())
    return [memory._decode(row) for row in numbers]


@torch.no_grad()
def test_rows_of_all_lengths_are_padded_on_either_side(memory, exported):
    model = loaded(exported / "hf")
    number = {token: i for i, token in enumerate(memory.vocabulary.tokens, 1)}
    a, dog, cat, one = (number[token] for token in ("a", "dog", "cat", 1))
    assert answers(memory, model(torch.tensor([[cat], [number[7]]]))) == memory([["cat"], [7]])
    assert answers(memory, model(torch.tensor([[a, dog], [cat, 0]]))) == [["pes"], []]
    wanted = [["pes"], [], ["číslo", 1]]
    right = [[a, dog, 0, 0, 0], [cat, 0, 0, 0, 0], [a, one, cat, 0, 0]]  # wider than the network
    left = [[0, 0, 0, a, dog], [0, 0, 0, 0, cat], [0, 0, a, one, cat]]
    for rows in (right, left):
        ids = torch.tensor(rows)
        assert answers(memory, model(ids)) == wanted
        assert answers(memory, model(ids, attention_mask=(ids > 0).long())) == wanted
        filled = torch.where(ids > 0, ids, dog)  # whatever the mask hides
        assert answers(memory, model(filled, attention_mask=(ids > 0).long())) == wanted


@torch.no_grad()
@pytest.mark.parametrize("hidden", [-100, 1 << 40, "vocabulary"], ids=str)
def test_what_a_mask_hides_may_be_any_number(memory, exported, hidden):
    model = loaded(exported / "hf")
    rows = torch.tensor([[1, 2, 0], [3, 0, 0]])
    mask = rows > 0
    filled = torch.where(mask, rows, model.config.vocab_size if hidden == "vocabulary" else hidden)
    for turned in (filled, filled.flip(1)):
        seen = mask if turned is filled else mask.flip(1)
        shown = torch.where(seen, turned, 0)
        wanted = model(shown).last_hidden_state
        assert torch.equal(model(turned, attention_mask=seen.long()).last_hidden_state, wanted)
    assert torch.equal(model.network(filled, mask), model.network(rows))  # the code of the torch export


@torch.no_grad()
def test_rows_that_nobody_can_answer_are_refused(memory, exported, tmp_path):
    model = loaded(exported / "hf")
    with pytest.raises(te.ThereExistsError, match="1 to 3 tokens; row 1 has 4"):
        model(torch.tensor([[1, 0, 0, 0], [1, 1, 1, 1]]))
    with pytest.raises(te.ThereExistsError, match=r"number 50256 is no token: they are 1 to \d+"):
        model(torch.tensor([[1, 50256]]))
    with pytest.raises(te.ThereExistsError, match="1 to 3 tokens; row 0 has 0"):
        model(torch.tensor([[0, 0, 0], [1, 1, 1]]))
    te.export(te.build(te.Table.of(sorted, range(2), n=3), construction="compact"), "hf", tmp_path / "t")
    with pytest.raises(te.ThereExistsError, match="exactly 3 tokens; row 0 has 2"):
        loaded(tmp_path / "t")(torch.tensor([[1, 2, 0]]))


@torch.no_grad()
@pytest.mark.parametrize("seen", [None, [[1, 1, 1]]], ids=["no mask", "a mask"])
@pytest.mark.parametrize("row", [[1, -5, 3], [-5, 1, 3], [1, 3, -100]], ids=str)
def test_a_negative_number_that_is_seen_is_refused(exported, row, seen):
    mask = None if seen is None else torch.tensor(seen)
    with pytest.raises(te.ThereExistsError, match=f"The number {min(row)} is no token: they are 1 to"):
        loaded(exported / "hf")(torch.tensor([row]), attention_mask=mask)


@torch.no_grad()
@pytest.mark.parametrize("row", [[1, 0, 3], [1, 3, 0], [0, 1, 3]], ids=str)
def test_a_zero_that_a_mask_shows_is_refused(exported, row):
    with pytest.raises(te.ThereExistsError, match="The number 0 is no token: they are 1 to"):
        loaded(exported / "hf")(torch.tensor([row]), attention_mask=torch.ones(1, 3))


@torch.no_grad()
def test_padding_between_tokens_is_refused(exported):
    model = loaded(exported / "hf")
    rows = torch.tensor([[1, 3, 0, 0], [0, 1, 0, 3]])
    with pytest.raises(te.ThereExistsError, match="on either side of the tokens; row 1 has some between them, at 2"):
        model(rows)
    with pytest.raises(te.ThereExistsError, match="on either side of the tokens; row 1 has some between them, at 2"):
        model(rows.clamp(min=1), attention_mask=rows > 0)


@torch.no_grad()
def test_torch_and_onnx_mask_what_is_no_token_where_it_stands(memory, exported):
    """They take n numbers, the tokens first, and check nothing; there all three say the same."""
    import onnxruntime

    ids = memory.inputs[:8]
    session = onnxruntime.InferenceSession(exported / "onnx" / "model.onnx", providers=["CPUExecutionProvider"])
    hf = loaded(exported / "hf")
    for fill in (0, -100):
        filled = np.where(ids > 0, ids, fill)
        plain = hf.network(torch.from_numpy(filled)).double().numpy()  # the code of the torch export
        assert np.array_equal(session.run(None, {"input_ids": filled})[0], plain)
        assert np.array_equal(plain, hf(torch.from_numpy(ids)).last_hidden_state.double().numpy())


@torch.no_grad()
def test_tokens_and_numbers_are_not_taken_for_each_other(exported, tmp_path):
    sorts = te.build(te.program.sort(te.program.tokens(3)))
    te.export(sorts, "hf", tmp_path / "sort", dtype="float32")
    model = loaded(tmp_path / "sort")
    numbers = torch.tensor([[[0.5], [0.25], [0.75]]])
    with pytest.raises(te.ThereExistsError, match=r"as inputs_embeds= of the shape \(batch, 3, 1\)"):
        model(numbers)
    assert model(inputs_embeds=numbers).last_hidden_state.shape == (1, 3, 1)
    with pytest.raises(te.ThereExistsError, match=r"as input_ids of the shape \(batch, length\)"):
        loaded(exported / "hf")(inputs_embeds=numbers)


@torch.no_grad()
def test_strings_shorter_than_the_network_of_an_automaton(tmp_path):
    witness = te.build(te.automata.regex("(ab)*", alphabet="ab"), n=6)
    te.export(witness, "hf", tmp_path / "a")
    wanted = witness.run([np.array([0, 1]), np.array([0, 1, 0, 1])])
    for short in ([1, 2, 3, 0, 0], [0, 0, 1, 2, 3]):  # 1 begins a string, a is 2, b is 3
        found = loaded(tmp_path / "a")(torch.tensor([short, [1, 2, 3, 2, 3]])).last_hidden_state.numpy()
        assert np.array_equal(found[0, :3], wanted[0, :3])
        assert np.array_equal(found[1, :5], wanted[1])


def test_a_saved_copy_of_the_model_brings_its_code(exported, tmp_path):
    loaded(exported / "hf").save_pretrained(tmp_path / "copy")
    assert {"modeling_compact.py", "network.py"} <= {file.name for file in (tmp_path / "copy").iterdir()}


# --- what is compared ------------------------------------------------------------------------------------------------


def test_a_weight_that_changes_no_answer_is_compared_too(memory, tmp_path, monkeypatch):
    from thereexists.exports import stock, torch_format

    def forged(network):
        state = stock.stock_state(network)
        state["embed.weight"][0, 0] = 1.0  # of the padding, which nobody attends to
        return state

    honest = stock.stock_state
    monkeypatch.setattr(torch_format, "stock_state", forged)
    with pytest.raises(te.ThereExistsError, match="does not agree"):
        te.export(memory, "torch", tmp_path / "e")
    assert stock.stock_state is honest
    assert list(tmp_path.iterdir()) == []


def test_a_large_data_set_is_compared_on_pairs_that_nobody_foresees(memory, monkeypatch):
    from thereexists.exports import check

    monkeypatch.setattr(check, "MOST_WORK", 20 * memory.n * memory.network.parameter_count)
    seen = []

    def run(ids):
        seen.append(ids)
        return memory.digits.split(memory.run(ids))

    assert check.compare(memory, run) == (20, "pairs")
    first = np.concatenate(seen)
    seen.clear()
    check.compare(memory, run)
    assert len(np.unique(first, axis=0)) == 20
    assert not np.array_equal(first, np.concatenate(seen))


@pytest.mark.slow
def test_five_thousand_pairs_in_bfloat16_take_seconds(tmp_path):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 2000, (5000, 16)).tolist() for _ in range(2))
    witness = te.memorise(x, y)
    te.export(te.memorise([["a"]], [["b"]]), "hf", tmp_path / "small")  # not counted: to import transformers
    start = time.process_time()
    te.export(witness, "hf", tmp_path / "large", dtype="bfloat16")
    assert time.process_time() - start < 30
