"""Options without a use are refused in one sentence, whatever their value; nothing is left behind."""

import pytest

from tests.cli import fuzz
from tests.cli.in_process import ran

CONFIG = '{"model_type": "gemma3_text", "num_hidden_layers": 8, "sliding_window": 4, "max_position_embeddings": 32}'
FUNCTION = "import numpy as np\n\ndef f(X):\n    return X\n"
TABLE = "x0,y0\na,b\nb,a\n"

IGNORED = [  # a request, and the option that it has no use for
    ("build regex:a --alphabet ab --n 2 --out new", "--p 1"),
    ("build regex:a --alphabet ab --n 2 --out new", "--d 2"),
    ("build regex:a --alphabet ab --n 2 --out new", "--domain 0,1"),
    ("build regex:a --alphabet ab --n 2 --out new", "--samples 64"),
    ("build regex:a --alphabet ab --n 2 --out new", "--no-certify"),
    ("build regex:a --alphabet ab --n 2 --out new", "--workers 1"),
    ("build regex:a --alphabet ab --n 2 --out new", "--shard-size 1MB"),
    ("build regex:a --alphabet ab --n 2 --out new", "--rho softmax"),
    ("build p.py:p --out new", "--p 2"),
    ("build p.py:p --out new", "--construction compact"),
    ("build p.py:p --out new", "--modified"),
    ("build p.py:p --out new", "--seed 3"),
    ("build p.py:p --out new", "--pool loky"),
    ("plan p.py:p", "--d 3"),
    ("build table.csv --out new", "--d 2"),
    ("build table.csv --out new", "--p 2"),
    ("build table.csv --out new", "--rho sparsemax"),
    ("build table.csv --out new", "--seed 1"),
    ("build table.csv --out new", "--no-certify"),
    ("build sort --n 2 --delta 1/2 --no-certify --out new", "--workers 1"),
    ("run w --input '0.3 0.1'", "--force"),
    ("run p --input '0.3 0.1'", "--engine skip"),
    ("run m --input a", "--engine auto"),
    ("certify w", "--samples 30"),
    ("certify w", "--confidence 0.9"),
    ("certify w", "--bound 1"),
    ("certify p", "--p 2"),
    ("certify p", "--workers 1"),
    ("verify p", "--sample 0.5"),
    ("verify p", "--workers 1"),
    ("verify m", "--job elsewhere"),
    ("heads fit t.npz --method corrected", "--factoring svd"),
    ("heads fit t.npz --method corrected", "--effort thorough"),
    ("heads fit t.npz --method moments", "--retries 4"),
    ("heads fit t.npz --method corrected", "--force"),
    ("heads bound --target t.npz", "--length 9"),
    ("heads bound --target t.npz", "--gamma 3"),
    ("heads study --lengths 8 --k 1 --methods corrected", "--longest convex=4"),
    ("pattern check star --n 8", "--heads 4"),
    ("pattern draw star --n 8", "--force"),
    ("attention explain star --n 8", "--heads 4"),
    ("train copy --layers 1 --size tiny --length 8 --batch 4 --steps 1 --out new", "--option stride=2"),
    ("train copy --layers 1 --size tiny --length 8 --batch 4 --steps 1 --out new", "--config union"),
    ("train mlm --corpus text.txt --size tiny --steps 1 --out new", "--hybrid-blocks 1"),
    ("train nli --data nli --from r --steps 1 --out new", "--size tiny"),
    ("experiment copying --dry-run --pool ray", "--parallel 2"),
    ("explore w --json", "--browser"),
]


@pytest.fixture(scope="module")
def folder(artefacts):
    (artefacts / "config.json").write_text(CONFIG)
    (artefacts / "table.csv").write_text(TABLE)
    yield artefacts
    (artefacts / "config.json").unlink()
    (artefacts / "table.csv").unlink()


@pytest.mark.sampled(11)
@pytest.mark.parametrize(
    ("request_", "option"), IGNORED, ids=[f"{r.split()[0]} {r.split()[1]} {o}" for r, o in IGNORED]
)
def test_an_option_without_a_use_is_refused(request_, option, folder):
    before = fuzz.everything(folder)
    with fuzz.ctrl_c_after(20):
        done = ran(f"{request_} {option}", cwd=folder)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: {option.split()[0]} does not apply here: ")
    assert done.stderr.count("\n") == 1
    assert option != "--force" or "a folder of ours is replaced without it" in done.stderr
    assert fuzz.everything(folder) == before


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pattern check config.json --globals 2", "'globals' is for longformer and led"),
        ("pattern check config.json --seed 2", "'seed' is for big_bird"),
        ("report w --n 4 --out new.html", "--n and --set are for patterns"),
        ("report m --set stride=3 --out new.html", "--n and --set are for patterns"),
        ("report config.json --set window=3 --out new.html", "has its own 'window'"),
        ("heads fit t.npz --method moments --hidden-size 6", "finds its hidden size itself"),
        ("heads study --lengths 8 --k 1 --methods corrected --longest nonsense=4", "Unknown method 'nonsense'"),
        ("build sort --n 2 --delta 1/2 --construction compact --pattern star --out new", "'pattern' is not an option"),
        ("build sort --n 2 --delta 1/2 --construction compact --modified --out new", "'modified' is not an option of"),
        ("build sort --n 2 --delta 1/2 --max-width 8 --out new", "'max_width' is not an option of"),
    ],
)
def test_what_a_thing_brings_itself_is_not_said_again(line, words, folder):
    done = ran(line, cwd=folder)
    assert done.code == 2
    assert words in done.stderr


def test_a_statistical_certificate_has_nothing_to_sample_or_to_share(tmp_path):
    (tmp_path / "f.py").write_text(FUNCTION)
    assert ran("build f.py:f --n 1 --delta 1/2 --no-certify --out w", cwd=tmp_path).code == 0
    certify = "certify w --function f.py:f --bound 1 --samples 200"
    assert "--workers does not apply" in ran(f"{certify} --workers 1", cwd=tmp_path).stderr
    assert ran(certify, cwd=tmp_path).code == 0
    assert ran("verify w --function f.py:f", cwd=tmp_path).code == 0
    done = ran("verify w --function f.py:f --sample 0.5", cwd=tmp_path)
    assert (done.code, "leave --sample and --job out" in done.stderr) == (2, True)


def test_the_default_is_no_excuse_and_what_applies_is_taken(folder):
    assert ran("run w --input '0.3 0.1' --engine reference", cwd=folder).code == 0
    assert ran("attention explain strided --n 16 --config multihead --heads 4", cwd=folder).code == 0
    assert ran("plan sort --n 2 --d 1 --p 1 --delta 1/2", cwd=folder).code == 0


WRITES = [  # outputs in folders that do not exist, each with something else wrong
    "run w --input nonsense --out new/deep/y.npy",
    "report nowhere --out new/deep/r.html",
    "pattern check nonsense --n 8 --picture new/deep/p.png",
    "pattern check block_local --n 9 --block 3 --path-out new/deep/p.npy",
    "pattern draw nonsense --n 8 --out new/deep/p.svg",
    "heads random --length 8 --k 99 --out new/deep/t.npz",
    "heads fit garbage.npz --plot new/deep/p.png",
    "heads fit garbage.npz --out new/deep/h",
    "heads study --lengths x --out new/deep/s.json --plot new/other/s.png",
    "results nowhere --report new/deep/r.md",
    "build sort --n 2 --delta nonsense --out new/deep/w",
    "build sort --n 2 --delta 1/2 --pool nonsense --out new/deep/w",
    "build regex:( --alphabet ab --n 2 --out new/deep/w",
    "memorise empty.csv --out new/deep/w",
    "export m --to torch --dtype nonsense --out new/deep/e",
    "train copy --pattern star --layers 1 --size nonsense --steps 1 --out new/deep/r",
]


@pytest.mark.parametrize("number", range(len(WRITES)), ids=[" ".join(line.split()[:2]) for line in WRITES])
def test_bad_arguments_leave_no_folder(number, folder):
    before = fuzz.everything(folder)
    done = ran(WRITES[number].replace(" new/", f" new-{number}/"), cwd=folder)
    assert done.code == 2
    assert done.stderr.startswith("Error: ")
    assert fuzz.everything(folder) == before


def test_a_good_request_makes_its_folder(folder, tmp_path):
    assert ran("pattern draw star --n 8 --out new/deep/p.svg", cwd=tmp_path).code == 0
    assert (tmp_path / "new/deep/p.svg").is_file()
    assert ran("build sort --n 1 --delta 1/2 --no-certify --out deeper/still/w", cwd=tmp_path).code == 0
    assert (tmp_path / "deeper/still/w/witness.json").is_file()
    assert ran(f"run {folder / 'w'} --input '1 0' --out a/b/y.npy", cwd=tmp_path).code == 0
    assert (tmp_path / "a/b/y.npy").is_file()
