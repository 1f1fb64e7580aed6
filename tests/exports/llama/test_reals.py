"""Programs over the reals by plain ``transformers``, with the code of their own cards, against the program itself."""

import contextlib
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import thereexists as te
from tests.command import thereexists
from thereexists import program as P
from thereexists.core.errors import ThereExistsError
from thereexists.exports import export_claim

pytest.importorskip("transformers")
from tests.certificates.llama.reals.real_programs import claim_of, drawn, everything
from thereexists.certificates.llama.reals.verify import drawn as inputs
from thereexists.certificates.program_numpy import run_reals

SCRIPT = Path(__file__).with_name("numbers_without_us.py")


def asked(folders, to):
    """The answers {(folder, dtype, attention, length): (batch, length, outputs)} for {folder: inputs}."""
    np.savez(to / "asked.npz", **{str(folder): X for folder, X in folders.items()})
    command = [sys.executable, str(SCRIPT), str(to / "asked.npz"), str(to / "answers.npz")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=to)
    assert run.returncode == 0, run.stderr
    return {tuple(name.split("|")): Y for name, Y in np.load(to / "answers.npz").items()}


@pytest.mark.slow
def test_random_programs_where_we_cannot_be_imported(tmp_path):
    rng, folders = random.Random(1), {}
    for k in range(12):
        with contextlib.suppress(ThereExistsError):  # a range that no operation takes
            claim = claim_of(drawn(rng) if k else everything())
            export_claim(claim, tmp_path / str(k))
            folders[tmp_path / str(k)] = inputs(claim, np.random.default_rng(k), 32)
    assert tmp_path / "0" in folders
    tried = 0
    for (folder, dtype, _, length), Y in asked(folders, tmp_path).items():
        claim = json.loads((Path(folder) / "thereexists_export.json").read_text())["claim"]
        wanted = run_reals(claim["program"], folders[Path(folder)])[:, : int(length)]
        if dtype in claim["bounds"]:
            assert np.abs(Y - wanted).max() <= claim["bounds"][dtype], (folder, dtype, length)
            tried += 1
    assert tried > 50


@pytest.mark.slow
def test_a_clip_with_a_far_end(tmp_path):
    (tmp_path / "far.py").write_text(
        "from thereexists import program as P\ny = P.clip(P.tokens(n=2, low=-1.0, high=1.0), 0.0, 1e9)\n"
    )
    thereexists("build", "far.py:y", "--out", "w", cwd=tmp_path)
    thereexists("export", "w", "--to", "llama", "--out", "stock", cwd=tmp_path)
    assert "off by at most" in thereexists("verify", "stock", cwd=tmp_path).stdout
    claim = json.loads((tmp_path / "stock" / "thereexists_export.json").read_text())["claim"]
    X = np.random.default_rng(0).uniform(-1, 1, (32, 2, 1))
    answers = asked({tmp_path / "stock": X}, tmp_path)
    for (_, dtype, _, length), Y in answers.items():
        assert np.abs(Y - np.maximum(X[:, : int(length)], 0)).max() <= claim["bounds"][dtype]
    assert {dtype for _, dtype, _, _ in answers} == {"float32", "bfloat16"}


def test_factors_that_no_checkpoint_can_hold_are_refused(tmp_path):
    witness = te.build(P.tokens(2) * np.array([[0.1], [1e-307]]), causal=True)
    with pytest.raises(ThereExistsError, match="too small or too large for a stock checkpoint"):
        te.export(witness, "llama", tmp_path / "w")
    assert not (tmp_path / "w").exists()


@pytest.mark.slow
def test_from_the_command_line(tmp_path):
    te.build(P.prefix_mean(P.relu(P.tokens(n=6, low=-1.0, high=1.0)))).save(tmp_path / "w")
    assert "layers" in thereexists("plan", "w", "--to", "llama", cwd=tmp_path).stdout
    thereexists("export", "w", "--to", "llama", "--layout", "phi3", "--out", "stock", cwd=tmp_path)
    assert "off by at most" in thereexists("verify", "stock", cwd=tmp_path).stdout
    config = json.loads((tmp_path / "stock" / "config.json").read_text())
    assert config["architectures"] == ["Phi3ForCausalLM"]
    te.build(P.flip(P.tokens(n=3))).save(tmp_path / "f")
    refused = thereexists("export", "f", "--to", "llama", "--out", "no", cwd=tmp_path, code=2)
    assert "'flip' looks at later tokens" in refused.stdout + refused.stderr
