"""A saved head with other contents, every hash redone: what somebody who wants to be believed would write."""

import json

from safetensors.torch import load_file, save_file

from thereexists.core import storage
from thereexists.core.json_files import record_digest


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
