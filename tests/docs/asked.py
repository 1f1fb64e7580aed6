"""Questions to every command, for the worker, which has already imported what they take."""

import json
import shlex

from tests.command import thereexists
from thereexists.cli import _complete

CHEAP = {  # a request for every command that answers in a moment; in order, each may use what those before it wrote
    "targets": "",
    "plan": "sort --n 2 --delta 1/4",
    "build": "sort --n 2 --delta 1/4 --out w",
    "run": "w --input '0.3 0.1'",
    "show": "w",
    "trace": "w --input '0.3 0.1'",
    "certify": "w",
    "verify": "w",
    "report": "w --out report.html",
    "memorise": "pairs.jsonl --out m",
    "export": "m --to torch",
    "gallery": "",
    "heads random": "--length 8 --k 1 --out t.npz",
    "heads fit": "t.npz --method corrected --out h",
    "heads verify": "h",
    "heads bound": "--length 8 --k 1",
    "heads study": "--lengths 8 --k 1 --methods corrected",
    "pattern list": "",
    "pattern check": "star --n 8",
    "pattern compare": "--n 8",
    "pattern draw": "star --n 8",
    "attention explain": "star --n 8",
    "attention bench": "--n 16 --patterns star --no-flex --repetitions 1",
    "mixers": "",
    "train copy": "--pattern star --layers 1 --size tiny --length 8 --batch 4 --steps 1 --out r",
}


def ask_all_for_json():
    for name, arguments in CHEAP.items():
        done = thereexists(*name.split(), *shlex.split(arguments), "--json", cwd=".")
        assert isinstance(json.loads(done.stdout), dict), name
        assert done.stderr == "", name


def compare_names():
    from thereexists.evaluate import ENGINES
    from thereexists.experiments import EXPERIMENTS
    from thereexists.exports import FORMATS
    from thereexists.functions.targets import BUILTINS
    from thereexists.heads.fit import METHODS
    from thereexists.mixers import MIXERS, SIZES
    from thereexists.patterns import REGISTRY

    assert set(BUILTINS) == set(_complete.TARGETS)
    assert set(REGISTRY) == set(_complete.PATTERNS)
    assert set(MIXERS) == set(_complete.MIXERS)
    assert set(SIZES) == set(_complete.SIZES)
    assert set(METHODS) == set(_complete.METHODS)
    assert {"auto", *ENGINES} == set(_complete.ENGINES)
    assert set(FORMATS) == set(_complete.FORMATS)
    assert set(EXPERIMENTS) == set(_complete.EXPERIMENTS)
    assert _complete.names(_complete.PATTERNS)("st") == ["strided", "star"]
