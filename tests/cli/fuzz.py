"""Every command with every option, one of them given something that no option should be given.

``prepare`` makes a folder, ``requests`` draws command lines, ``complaint`` sends one and says what is wrong with the
answer. A mistake is told in one sentence with exit code 2; there is never a traceback, and nothing is left behind.
"""

import json
import os
import random
import shlex
import shutil
import signal
import traceback
from contextlib import contextmanager
from pathlib import Path

import typer

from tests.cli.in_process import ran
from tests.docs.asked import CHEAP
from tests.experiments.small_data import article, nli_lines
from thereexists.cli import app

HUGE = "99999999999999999999999"
NUMBERS = ("-1", "0", "1", "nan", "inf", "-inf", "1e308", "1e-320", "1000000000000", HUGE, f"-{HUGE}", "1/0", "1/3")
WORDS = (
    "",
    " ",
    "snow☃\u202eman",
    "[red]x[/nope]",
    "x" * 300,
    "a:b",
    "{",
    "null",
    "0.3,0.1",
    "0.3 0.1",
    "star",
    "sort",
)
NOWHERE = ("no-such-file.json", "no/such/folder/file.npz", "../..", "/dev/null", "/", "/proc/self/mem", "/proc/new")
FILES = ("a_folder", "garbage.npz", "garbage.json", "garbage.py", "empty.csv", "deep.json", "wrong.json", "w", "h", "p")
NOT_HERE = {"--help", "--compile"}  # torch's compiler and the tests' own type checks do not go together
HOSTILE = (*NUMBERS, *WORDS, *NOWHERE, *FILES)

SMALL = "--size tiny --length 8 --batch 2 --steps 1 --out new"
SENSIBLE = {  # for every command a request that answers in a moment
    **CHEAP,
    "build": "sort --n 2 --delta 1/4 --out new/w",
    "report": "w --out new/r.html",
    "memorise": "pairs.jsonl --out new/w",
    "export": "m --to torch --out new/w",
    "heads random": "--length 8 --k 1 --out new/t.npz",
    "heads fit": "t.npz --method corrected --out new/w",
    "train mlm": f"--corpus text.txt --vocabulary 300 {SMALL}/r",
    "train lm": f"--corpus text.txt --vocabulary 300 {SMALL}/r",
    "train nli": f"--data nli {SMALL}/r",
    "train mt": f"--data both --vocabulary 300 {SMALL}/r",
    "train copy": f"--pattern star --layers 1 {SMALL}/r",
    "experiment": "copying --size tiny --steps 1 --dry-run --out new/w",
    "results": "r",
    "explore": "w --no-browser --port 0",
    "suite verifier": "--count 1 --out new/s",
    "suite circuits": "--count 1 --out new/c",
    "suite check": "s",
    "suite floor": "s --out new/f.csv",
    "suite score": "s answers.csv",
}
MADE = (
    "build sort --n 2 --delta 1/4 --certify --out w",
    "build p.py:p --out p",
    "memorise pairs.jsonl --out m",
    "heads random --length 8 --k 1 --out t.npz",
    "heads fit t.npz --method corrected --out h",
    "suite verifier --count 1 --out s",
    "train copy --pattern star --layers 1 --size tiny --length 8 --batch 4 --steps 1 --out r",
)
LONG = (
    "train",
    "experiment",
    "explore",
    "heads study",
    "heads fit",
    "attention bench",
    "certify",
    "suite",
)  # may go on: Ctrl-C


def _walk(command, path=()):
    for name, below in getattr(command, "commands", {}).items():
        yield from _walk(below, (*path, name))
    if not hasattr(command, "commands"):
        yield " ".join(path), command


COMMANDS = dict(_walk(typer.main.get_command(app)))


def prepare(folder: Path) -> None:
    """What the sensible requests read, and what no request should be given."""
    rng = random.Random(0)
    (folder / "a_folder").mkdir()
    (folder / "both").mkdir()
    (folder / "garbage.npz").write_bytes(bytes(range(256)) * 4)
    (folder / "garbage.json").write_bytes(b"\xff\xfe{")
    (folder / "garbage.py").write_text("def f(:\n")
    (folder / "empty.csv").write_text("")
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "wrong.json").write_text(json.dumps({"model_type": ["mistral"], "layer_types": 7, "n": "many"}))
    (folder / "pairs.jsonl").write_text('{"input": ["a"], "output": ["b"]}\n')
    (folder / "text.txt").write_text("\n\n".join(article(rng) for _ in range(20)))
    (folder / "nli").mkdir()
    for name in ("train", "dev_matched"):
        (folder / f"nli/{name}.jsonl").write_text(nli_lines(rng, 20))
    for name in ("train.en", "train.cs", "test.en", "test.cs"):
        (folder / "both" / name).write_text("\n".join(article(rng, 4) for _ in range(12)))
    (folder / "p.py").write_text("from thereexists import program as P\np = P.sort(P.tokens(2))\n")
    for line in MADE:
        done = ran(line, cwd=folder)
        assert done.code == 0, (line, done.stderr)
    row = (folder / "s" / "instances.csv").read_text().split(",")
    (folder / "answers.csv").write_text(f"{row[0]},{row[1]},unknown,1\n")


def requests(rng: random.Random, count: int, names=tuple(sorted(COMMANDS))):
    """Sensible requests with one thing wrong: an argument or an option with another value, or a flag more."""
    for _ in range(count):
        name = rng.choice(names)
        wrong = rng.choice([p for p in COMMANDS[name].params if not NOT_HERE & {*p.opts}])
        words, options = shlex.split(SENSIBLE[name]), [o for o in wrong.opts if o.startswith("--")]
        if not options:  # an argument: the first word
            words[:1] = [rng.choice(HOSTILE)]
        elif getattr(wrong, "is_flag", False):
            words.append(rng.choice([*wrong.opts, *wrong.secondary_opts]))
        else:
            if options[0] in words:
                place = words.index(options[0])
                del words[place : place + 2]
            words += [options[0], rng.choice(HOSTILE)]
        yield [*name.split(), *words]


def everything(folder: Path) -> set[str]:
    """Every file and folder below one."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def complaint(words: list[str], folder: Path, seconds: int = 20) -> str | None:
    """What is wrong with the answer to a request, if anything."""
    before, line = set(os.listdir(folder)), shlex.join(words)
    try:
        with ctrl_c_after(2 if words[0] == "explore" else seconds):
            done = ran("", *words, cwd=folder)
    except BaseException as error:  # whatever gets out of `main` is a traceback to a user
        return f"{line}: " + "".join(traceback.format_exception(error)[-3:])
    finally:
        new = sorted(set(os.listdir(folder)) - before)
        for name in new:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    text = f"{line} → {done.code}: {(done.stderr or done.stdout)[-300:]}"
    diverged = "smaller --lr" in done.stderr  # a good request, with the record of what came of it
    if new if done.code == 2 and not diverged else [name for name in new if name.startswith(".")]:
        return f"left {new}: {text}"
    if "Traceback" in done.stderr or done.code not in (0, 1, 2, 130):
        return text
    if done.code == 2 and not done.stderr.strip():
        return f"says nothing: {text}"
    if done.code == 130 and not line.startswith(LONG):
        return f"took more than {seconds} s: {text}"
    return None


@contextmanager
def ctrl_c_after(seconds: int):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
