"""Files of a stranger, every digest redone: refused in a sentence, whatever sizes they state, before any work.

A few digits can ask for more memory than any machine has. The cases run in one process with 500 MB above what the
program needs for an honest folder, and two seconds of the processor each.
"""

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

import thereexists as te
from tests import hostile
from thereexists.certificates import certificate as certificates
from thereexists.constructions.faithful.sharded import build_sharded
from thereexists.core import json_files, storage
from thereexists.core.errors import BadWitnessFile, InvalidInput
from thereexists.core.json_files import parse_json
from thereexists.functions.targets import builtin
from thereexists.witness.verbs import certify


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    root = tmp_path_factory.mktemp("originals")
    made = {
        "faithful": te.build(builtin("sort", n=2), delta=1 / 4),
        "equivariant": te.build(builtin("distance-to-mean", n=2), delta=1 / 2),
        "compact": te.build(builtin("sort", n=2), delta=1 / 2, construction="compact"),
        "counted": te.build(builtin("deep-sets", n=2), delta=1 / 2, construction="compact"),
        "sparse": te.build(builtin("sort", n=3), delta=1 / 2, pattern=te.patterns.star(n=3)),
    }
    for name, witness in made.items():
        witness.save(root / name)
        certify(witness, opinions=1).save(root / name)
    te.memorise([["a", "dog"], ["a"]], [["pes"], ["x", "y"]]).save(root / "tokens")
    build_sharded(builtin("sort", n=2), root / "shards", 1 / 4, shard_bytes=1500)
    te.heads.fit(te.heads.random_matrix(32, 2, 2.0, 0), method="moments").save(root / "head")
    return root


def both(**fields):
    """The same sizes for the grid, the function and the plan."""

    def change(folder):
        def record(r):
            for part in ("grid", "target", "plan"):
                r[part].update({k: v for k, v in fields.items() if k in r[part]})

        hostile.forge_record(folder, record)
        if (folder / certificates.FILE).is_file():
            cells = fields.get("N", 2) ** 4
            hostile.forge_certificate(folder, lambda r: (r["grid"].update(fields), r.update(cells=cells)))

    return change


def stated(*path, value):
    def change(folder):
        def record(r):
            for key in path[:-1]:
                r = r[key]
            r[path[-1]] = value

        hostile.forge_record(folder, record)

    return change


def careful(n):
    """Without positions n is not in the weights: everything that is claimed of n tokens fits, only the work is long."""

    def change(folder):
        both(n=n)(folder)

        def target(r):
            r["target"].update(n=n, lipschitz=2 * (n - 1) / n)

        hostile.forge_record(folder, target)
        told = [f"f has the Lipschitz constant {2 * (n - 1) / n:g} (maximum norm to maximum norm)"]
        hostile.forge_certificate(
            folder, lambda r: (target(r), r.update(cells=2**n, splits=1, assumptions=[*told, *r["assumptions"]]))
        )

    return change


def statistical(**fields):
    """A certificate of the other kind, with exactly its fields."""

    def change(r):
        for name in ("parts", "undecided", "splits", "blocks_sha256"):
            r.pop(name, None)
        r.update(kind="statistical", **fields)

    return lambda folder: hostile.forge_certificate(folder, change)


def wide(d):
    """d features, with a side for none of them."""
    return lambda folder: (
        both(d=d)(folder),
        hostile.forge_record(folder, lambda r: r["target"].update(low=0.0, high=1.0)),
    )


def emptied(name):
    """A stage of no layers, and the description with it."""

    def change(folder):
        def weights(w):
            for key in [k for k in w if k.startswith(f"stages.{name}.")]:
                w[key] = w[key][:0].clone()

        hostile.forge_weights(folder, weights, lambda r: r["structure"]["stages"][name].update(depth=0))

    return change


def without_stages(folder):
    def weights(w):
        for key in [k for k in w if k.startswith("stages.")]:
            del w[key]

    hostile.forge_weights(folder, weights, lambda r: r["structure"].update(stages={}))


def hollow(folder):
    """Stages that have neither half."""

    def record(r):
        for stage in r["structure"]["stages"].values():
            stage.update(attention=False, feed_forward=False, pattern=False, phi=False)

    hostile.forge_weights(folder, lambda w: [w.pop(k) for k in list(w) if k.startswith("stages.")], record)


def reshaped(key, shape):
    return lambda folder: hostile.forge_weights(
        folder, lambda w: w.update({key: torch.zeros(shape, dtype=w[key].dtype)})
    )


def text(name, content):
    return lambda folder: (folder / name).write_bytes(content)


DEEP = b'{"a":' * 100_000
BROKEN = {
    "deep": DEEP + b"1" + b"}" * 100_000,
    "not closed": DEEP,
    "NaN": b'{"format_version": NaN}',
    "infinity": b'{"format_version": 1e999}',
    "twice": b'{"format_version": 1, "format_version": 1}',
    "digits": b'{"format_version": ' + b"9" * 5000 + b"}",
    "no text": b'{"format_version": "\xff\xfe"}',
    "a list": b"[]",
    "a number": b"7",
}
DESCRIBED = {**builtin("sort", n=2).describe(), "low": 0.0, "high": 1.0}
SIZES = {
    "N 1e8": both(N=10**8),
    "N 4096": both(N=4096),
    "n 1e9": both(n=10**9),
    "n 30": both(n=30),
    "n 60": both(n=60),
    "d 1e9": both(d=10**9),
    "d 1e9 without sides": wide(10**9),
    "d 1e9 of the function": stated("target", value={**DESCRIBED, "d": 10**9}),
    "no stages": without_stages,
    "hollow stages": hollow,
    "stages are a list": stated("structure", "stages", value=[1]),
    "origin is a list": stated("target", "origin", value=[]),
    "sides are words": stated("target", "low", value=["0"]),
    "slots 1e9": stated("grid", "slots", value=[10**9]),
    "plan of words": stated("plan", "parameters", value="many"),
    "samples 1e12": statistical(samples=10**12, confidence=0.9),
    "splits 1e9": hostile.certified(splits=10**9),
    "parts are a list": hostile.certified(parts=[]),
}
TOKENS = {
    "n 1e9": stated("tokens", "n", value=10**9),
    "base 1e60": stated("tokens", "base", value=10**60),
    "digits 1e9": stated("tokens", "digits", value=10**9),
    "pairs are empty": reshaped("pairs.inputs", (0, 2)),
    "pairs are a line": reshaped("pairs.inputs", (4,)),
    "no stages": without_stages,
    "info is a list": stated("info", value=[]),
    "words twice": stated("vocabulary", value=["a", "a"]),
}
MORE = {
    ("faithful", "empty stage"): emptied("value"),
    ("compact", "empty stage"): lambda folder: emptied(
        next(iter(json.loads((folder / "witness.json").read_text())["structure"]["stages"]))
    )(folder),
    ("equivariant", "n 30 with care"): careful(30),
    ("sparse", "cycle 1e9"): stated("plan", "pattern", "cycle", value=10**9),
    ("sparse", "depth 1e9"): stated("plan", "pattern", "depth", value=10**9),
    ("sparse", "path of a word"): stated("plan", "pattern", "path", value="abc"),
    ("head", "eps is a word"): lambda f: hostile.forge_record(f, lambda r: r.update(eps1="a"), "head.json"),
    ("head", "no verification"): lambda f: hostile.forge_record(f, lambda r: r.update(verification=[]), "head.json"),
}
ACCEPTED = {  # what says nothing about the weights is found by those who read it
    "samples 1e12": {"load", "show", "report", "explore", "certify"},
    "n 30 with care": {"load", "show", "report", "explore"},
    "n 30": {"load", "show", "report", "explore"},  # without positions, few cells: few layers and many cubes
    "splits 1e9": {"load", "show", "report", "explore", "certify"},
    "parts are a list": {"load", "show", "certify"},
    "cycle 1e9": {"load", "show", "report", "explore", "certify"},
    "depth 1e9": {"load", "show", "report", "explore", "certify"},
    "path of a word": set(),
}


FUNCTIONS = ("faithful", "equivariant", "compact", "counted", "sparse")
FILES = (
    ("faithful", "record", "witness.json"),
    ("faithful", "certificate", certificates.FILE),
    ("head", "record", "head.json"),
    ("shards", "index", "model.safetensors.index.json"),
)


def plant(originals, root):
    shutil.copytree(originals / "faithful", root / "honest")
    cases = dict(MORE)
    cases |= {(kind, name): change for kind in FUNCTIONS for name, change in SIZES.items()}
    cases |= {("tokens", name): change for name, change in TOKENS.items()}
    for kind, what, file in FILES:
        cases |= {(kind, f"{what}: {name}"): text(file, content) for name, content in BROKEN.items()}
    for (kind, name), change in cases.items():
        folder = root / f"{kind}, {name}"
        shutil.copytree(originals / kind, folder)
        change(folder)


def test_stated_sizes_are_compared_with_the_weights_before_any_work(originals, tmp_path, fresh):
    plant(originals, tmp_path)
    program = Path(__file__).with_name("hostile_runs.py")
    ran = fresh(program, tmp_path, timeout=280, warm=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    said = json.loads(ran.stdout)
    assert len(said) > 100
    for case, ways in said.items():
        name = case.partition(", ")[2]
        allowed = ACCEPTED.get(name, {"load", "show", "certify"} if name.startswith("certificate: ") else set())
        wrong = {way for way, what in ways.items() if what == "accepted"} - allowed
        assert not wrong, (case, wrong)


HEADERS = {
    "length": struct.pack("<Q", 1 << 63) + b"{}",
    "no object": struct.pack("<Q", 2) + b"[]",
    "deep": struct.pack("<Q", 200_001) + b"[" * 200_001,
    "tensor is a number": b'{"x": 7}',
    "dtype is a list": b'{"x": {"dtype": [], "shape": [1], "data_offsets": [0, 8]}}',
    "shape is a word": b'{"x": {"dtype": "F64", "shape": "1", "data_offsets": [0, 8]}}',
    "shape 1e18": b'{"x": {"dtype": "F64", "shape": [1000000000000000000], "data_offsets": [0, 8]}}',
    "a shape beyond any": b'{"x": {"dtype": "F64", "shape": [1' + b"0" * 30 + b', 0, 1], "data_offsets": [0, 0]}, '
    b'"y": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}',
    "a size beyond any": b'{"x": {"dtype": "F64", "shape": [4000000000000000000, 0, 9], "data_offsets": [0, 0]}, '
    b'"y": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}',
    "negative": b'{"x": {"dtype": "F64", "shape": [-1], "data_offsets": [0, -8]}}',
    "offsets are words": b'{"x": {"dtype": "F64", "shape": [1], "data_offsets": ["0", "8"]}}',
    "one offset": b'{"x": {"dtype": "F64", "shape": [1], "data_offsets": [0]}}',
    "over the same bytes": b'{"x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}, '
    b'"y": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}',
    "bytes of nobody": b'{"x": {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}}',
    "beyond the end": b'{"x": {"dtype": "F64", "shape": [9], "data_offsets": [0, 72]}}',
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_of_wrong_types_are_refused_in_a_sentence(originals, tmp_path, name):
    folder = tmp_path / "w"
    shutil.copytree(originals / "shards", folder)
    header = HEADERS[name]
    if header.startswith(b"{"):
        header = struct.pack("<Q", len(header)) + header + np.zeros(1).tobytes()
    shard = sorted(folder.glob("model-*.safetensors"))[1]
    shard.write_bytes(header)
    hostile.forge_record(folder, lambda r: r["shards_sha256"].update({shard.name: storage.file_sha256(shard)}))
    with pytest.raises(BadWitnessFile) as refused:
        te.load(folder)
    assert "\n" not in str(refused.value)
    assert "frame #" not in str(refused.value)


def test_a_data_set_of_broken_lines_is_refused_in_a_sentence(tmp_path):
    from thereexists.functions.pairs import read_jsonl

    for content in (BROKEN["deep"], BROKEN["twice"], b'{"input": NaN, "output": []}'):
        (tmp_path / "pairs.jsonl").write_bytes(content)
        with pytest.raises(InvalidInput, match="line 1"):
            read_jsonl(tmp_path / "pairs.jsonl")


def test_what_we_write_is_read_as_it_is():
    value = {"a": [1, -2.5, 1e-300, 10**20, None, True, "ü\u202e"], "b": {}}
    assert parse_json(json.dumps(value), "it") == value


def test_a_record_of_empty_lists_is_refused_before_it_is_made():
    """Three characters that would take a hundred bytes: 80 MB of them took 2.7 GB."""
    with pytest.raises(BadWitnessFile, match="lists and objects"):
        parse_json(b"[" + b"[]," * (json_files.MOST_CONTAINERS + 1) + b"[]]", "it")
