"""Folders as a stranger would send them: every digest and hash redone, so that only looking closely can notice."""

import json
import subprocess
import sys

import torch
from safetensors.torch import load_file, save_file

import thereexists as te
from thereexists.certificates import certificate as certificates
from thereexists.certificates.program_certificate import program_sha256
from thereexists.core import storage
from thereexists.core.json_files import record_digest
from thereexists.functions.target import from_file
from thereexists.model import Transformer
from thereexists.model.digest import weights_sha256
from thereexists.witness.verbs import certify

FUNCTION = 'import numpy as np\n\ndef f(X):\n    """In increasing order."""\n    return np.sort(X, axis=1)\n'


def forge_record(folder, change, name="witness.json"):
    """Change the record and redo its digest."""
    record = json.loads((folder / name).read_text())
    change(record)
    record["digest"] = record_digest(record)
    (folder / name).write_text(json.dumps(record))


def forge_certificate(folder, change):
    """Change the certificate and redo its digest."""
    forge_record(folder, change, certificates.FILE)


def forge_weights(folder, change=lambda w: None, record=lambda r: None):
    """Change weights (and the record with them) and redo every hash: only mathematics can notice now."""
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors")
    sha = storage.file_sha256(folder / "model.safetensors")

    def both(r):
        record(r)
        r["weights_sha256"] = sha

    forge_record(folder, both)
    if (folder / certificates.FILE).is_file():
        forge_certificate(folder, lambda c: c.update(weights_sha256=_hash_of_network(folder)))


def forge_program(folder, change):
    """Change the record of a program, and say in its certificate that it is about this program and these weights."""
    forge_record(folder, change)
    sha = program_sha256(json.loads((folder / "witness.json").read_text())["program"])
    forge_certificate(folder, lambda c: c.update(program_sha256=sha, weights_sha256=_hash_of_network(folder)))


def _hash_of_network(folder):
    structure = json.loads((folder / "witness.json").read_text())["structure"]
    try:
        return weights_sha256(Transformer.from_structure(structure, load_file(folder / "model.safetensors")))
    except Exception:  # no network at all: there is nothing to hash
        return "0" * 64


def weight(name, index, amount):
    """A forger who adds to one weight."""

    def change(weights):
        weights[f"stages.{name}"][index] += amount

    return lambda folder: forge_weights(folder, change)


def certified(**fields):
    """A forger who writes other things into the certificate."""
    return lambda folder: forge_certificate(folder, lambda r: r.update(**fields))


def planted(network, change):
    """A copy of a network with one weight changed."""
    copy = type(network).from_structure(
        network.structure(), {k: v.detach().clone() for k, v in network.state_dict().items()}
    )
    with torch.no_grad():
        change(copy)
    return copy


def honest(folder, file):
    """A certified witness of 16 cubes of the function in ``file``."""
    file.write_text(FUNCTION)
    target = from_file(f"{file}:f", n=2, lipschitz=1.0)
    witness = te.build(target, delta=1 / 4)
    witness.save(folder)
    certify(witness, opinions=1).save(folder)


def lay_traps(folder, mark):
    """Code in the folder, under every name by which something might be tempted to run it; all of it leaves ``mark``."""
    trap = f"open({str(mark)!r}, 'a').write(__name__ + '\\n')\n"
    again = f"open(__file__, 'w').write({FUNCTION!r})\n"  # whoever hashes it afterwards finds the right bytes
    (folder / "evil.py").write_text(trap + again + FUNCTION)
    for name in ("numpy", "torch", "joblib", "cloudpickle", "thereexists", "ray", "sitecustomize", "my"):
        (folder / f"{name}.py").write_text(trap)
    reference = f"{folder / 'evil.py'}:f"

    def point(r):
        r["target"]["origin"]["reference"] = reference

    forge_record(folder, point)
    forge_certificate(folder, point)


def python(code, *arguments, cwd=None, timeout=120):
    """A program of its own, not in the folder it works in (as an installed command is not)."""
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *map(str, arguments)],
        capture_output=True, text=True, timeout=timeout, cwd=cwd,
    )  # fmt: skip


def refused(folder, named=""):
    """A forged folder does not hold, for the reason that was planted; and it was checked, not merely unreadable."""
    verdict = te.verify(folder)
    said = " ".join(verdict.reasons)
    assert verdict.holds is False
    assert named in said, verdict.reasons
    assert "cannot be checked" not in said
    return verdict
