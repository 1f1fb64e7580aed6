"""Numbers far too large: every command says so soon, and takes little memory to find out."""

import resource

import pytest

from tests.cli.fuzz import ctrl_c_after
from tests.cli.in_process import ran

BILLION, TRILLION = 10**9, 10**12
TOO_LARGE = [
    "plan sort --n 1000000 --delta 1/4",
    "plan sort --n 3 --d 1000000 --delta 1/4",
    "plan sort --n 1000000 --epsilon 0.1",
    f"plan sort --n {TRILLION} --delta 1/4",
    "build sort --n 3 --delta 1e-12 --out new",
    "build sort --n 2 --delta 1e-9 --construction compact --out new",
    "build sort --n 1000000 --delta 1/4 --pattern star --out new",
    "build sort --n 40 --delta 1/2 --shard-size 1MB --dry-run --out new",
    f"build 'regex:(ab)*' --alphabet ab --n {TRILLION} --out new",
    f"build 'regex:a{{{BILLION}}}' --alphabet ab --n 8 --out new",
    f"pattern check window --n {TRILLION}",
    f"pattern check longformer.json --n {BILLION}",
    f"pattern check mistral.json --n {BILLION}",
    "pattern compare --n 60000000",
    f"pattern draw star --n {TRILLION} --out new.png",
    f"attention explain star --n {TRILLION}",
    "attention explain random --n 60000000",
    f"attention bench --n {TRILLION} --patterns star --no-flex",
    f"heads random --length {10**14} --out new.npz",
    f"heads study --lengths {TRILLION} --k 1 --methods corrected",
    "memorise pairs.jsonl --n 100000 --out new",
    f"memorise pairs.jsonl --n {TRILLION} --out new",
    f"train copy --pattern star --length {TRILLION} --size tiny --steps 1 --out new",
    f"train copy --pattern star --layers {TRILLION} --length 8 --size tiny --steps 1 --out new",
    f"experiment copying --size tiny --seeds {TRILLION} --dry-run --out new",
    f"report star --n {TRILLION} --out new.html",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("huge")
    (made / "pairs.jsonl").write_text('{"input": ["a"], "output": ["b"]}\n')
    (made / "longformer.json").write_text(
        '{"model_type": "longformer", "attention_window": [512, 512], "num_hidden_layers": 2}'
    )
    (made / "mistral.json").write_text('{"model_type": "mistral", "sliding_window": 4096, "num_hidden_layers": 32}')
    return made


@pytest.mark.sampled(6)
@pytest.mark.parametrize("line", TOO_LARGE)
def test_a_number_that_is_far_too_large(folder, line):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with ctrl_c_after(60):
        done = ran(line, cwd=folder)
    assert done.code == 2, done
    assert done.stderr.strip()
    assert not list(folder.glob("*new*"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB: a gigabyte
