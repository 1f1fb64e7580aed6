"""A step that is recorded and replayed does what the same step does when its kernels are launched singly."""

import pytest
import torch

from thereexists.experiments import update
from thereexists.experiments.settings import Budget, Settings
from thereexists.experiments.training import Execution, train

MODEL = {"hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128, "num_hidden_layers": 2}
SETTINGS = Settings(
    "copy", Budget(steps=60), MODEL | {"mixer": "attention"}, options={"symbols": 7}, length=16, batch=32, lr=3e-3
)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_recorded_steps_are_those_launched_singly(precision, monkeypatch, tmp_path):
    """Bit by bit, loss by loss, with kernels that add in a fixed order."""
    from dataclasses import replace

    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    settings = replace(SETTINGS, precision=precision)
    torch.use_deterministic_algorithms(True)
    try:
        histories = []
        for warm in (update._WARM, 10**9):
            monkeypatch.setattr(update, "_WARM", warm)
            out = tmp_path / str(warm)
            histories.append(
                train(settings, out, Execution("cuda", tmp_path, tensorboard=False, quiet=True))["history"]
            )
    finally:
        torch.use_deterministic_algorithms(False)
    assert histories[0] == histories[1]
    assert histories[0][-1][1] < histories[0][0][1]
