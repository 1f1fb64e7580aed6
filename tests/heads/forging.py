"""A saved head with other contents, every hash redone: what somebody who wants to be believed would write."""

import json

import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from thereexists.cli import app
from thereexists.core import storage
from thereexists.core.json_files import record_digest
from thereexists.heads.bound import theorem_hidden_size
from thereexists.heads.head import Head
from thereexists.heads.verify import Arithmetic, verify
from thereexists.heads.verify_exact import verify_exact


def save_own(folder, X, W_Q, W_K, target, *, eps1, eps2, dtype_needed="float64", words=None, checked_in="float64"):
    """A head of one's own making, measured as it is and saved with a claim about the dtype that carries it."""
    X, W_Q, W_K = (torch.as_tensor(a, dtype=torch.float64) for a in (X, W_Q, W_K))
    tolerances = {"eps1": eps1, "eps2": eps2}
    if words is None:
        found = verify(X, W_Q, W_K, target, **tolerances, arithmetic=Arithmetic(checked_in))
    else:
        found = verify_exact(words, W_Q, W_K, target, **tolerances, bits=53 * len(words) + 64)
    theorem = theorem_hidden_size(target.length, target.k, target.gamma, eps1, eps2)
    Head(X, W_Q, W_K, target, "moments", eps1, eps2, 0, found, theorem, dtype_needed, 0.1, {}, words).save(folder)
    return found


def forge(folder, tensors=None, **fields):
    """Change entries of head.json (``a__b`` is the entry b of a) and arrays; then redo the hash and the digest."""
    weights, file = folder / "head.safetensors", folder / "head.json"
    save_file({**load_file(weights), **(tensors or {})}, weights)
    record = json.loads(file.read_text())
    for name, value in fields.items():
        *outer, last = name.split("__")
        inner = record
        for key in outer:
            inner = inner[key]
        inner[last] = value
    record["weights_sha256"] = storage.file_sha256(weights)
    record["digest"] = record_digest(record)
    file.write_text(json.dumps(record))


def verified(folder, *options):
    """Exit code, what is said, and the whole result of ``heads verify``."""
    done = CliRunner().invoke(app, ["heads", "verify", str(folder), "--json", *options])
    return done.exit_code, json.loads(done.stdout) if done.stdout else None, done
