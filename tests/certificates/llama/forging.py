"""Stock folders as a stranger would send them: every hash and the digest redone, so that only the proof can notice."""

import hashlib
import json
import shutil

from safetensors.torch import load_file, save_file

from tests.hostile import forge_record

RECORD, WEIGHTS = "thereexists_export.json", "model.safetensors"


def copied(folder, to):
    shutil.copytree(folder, to)
    return to


def redo(folder, change=lambda record: None):
    """State the hashes of the files as they are now."""

    def both(record):
        record["files"] = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in record["files"]}
        change(record)

    forge_record(folder, both, RECORD)
    return folder


def forge_weights(folder, change):
    weights = load_file(folder / WEIGHTS)
    change(weights)
    save_file(weights, folder / WEIGHTS, {"format": "pt"})
    return redo(folder)


def forge_json(folder, name, change):
    value = json.loads((folder / name).read_text())
    change(value)
    (folder / name).write_text(json.dumps(value))
    return redo(folder)
