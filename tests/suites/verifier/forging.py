"""Suites with something changed in them, and every hash and count mended."""

import json
import shutil

from thereexists.suites.folders import MARK
from thereexists.suites.hashes import sha256
from thereexists.suites.verifier import onnx_files, vnnlib
from thereexists.suites.verifier.families import FAMILIES
from thereexists.suites.verifier.instance import dressed
from thereexists.suites.verifier.make import TRUTH


def only(suite, folder, name):
    """A suite of one instance of another."""
    shutil.copytree(suite, folder)
    for file in [*folder.glob("onnx/*"), *folder.glob("vnnlib/*")]:
        if file.stem != name:
            file.unlink()
    truth = json.loads((folder / TRUTH).read_text())
    truth["instances"] = [entry for entry in truth["instances"] if entry["name"] == name]
    (folder / TRUTH).write_text(json.dumps(truth))
    return mended(folder)


def told(folder, **changes):
    """Another truth about the only instance."""
    truth = json.loads((folder / TRUTH).read_text())
    truth["instances"][0] |= changes
    (folder / TRUTH).write_text(json.dumps(truth))
    return mended(folder)


def mended(folder):
    """instances.csv, the counts and all hashes as they would be if nothing had happened."""
    entries = json.loads((folder / TRUTH).read_text())["instances"]
    lines = [f"onnx/{e['name']}.onnx,vnnlib/{e['name']}.vnnlib,{e['timeout']}" for e in entries]
    (folder / "instances.csv").write_text("\n".join(lines) + "\n")
    record = json.loads((folder / MARK).read_text())
    verdicts = [entry["verdict"] for entry in entries]
    record |= {"count": len(entries), "sat": verdicts.count("sat"), "unsat": verdicts.count("unsat")}
    (folder / MARK).write_text(json.dumps(record))
    return rehashed(folder)


def planted(suite, folder, family, params, asked, **lies):
    """A suite of one instance with these parameters and this property, whatever the proof of its family assumes."""
    name = next(e["name"] for e in json.loads((suite / TRUTH).read_text())["instances"] if e["family"] == family)
    only(suite, folder, name)
    mask = {"seed": [0, 1, 2], "worn": False, "split": False}
    made = FAMILIES[family].build(params)
    (folder / "onnx" / f"{name}.onnx").write_bytes(onnx_files.written(dressed(made.net, mask, False)))
    (folder / "vnnlib" / f"{name}.vnnlib").write_text(vnnlib.text_of(asked, name))
    true = {"params": params, "disguise": mask, "bound": made.bound, "proof": made.proof, "counterexample": None}
    return told(folder, **true, **lies)


def rehashed(folder):
    """Only the hashes are mended."""
    record = json.loads((folder / MARK).read_text())
    names = [file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()]
    record["files"] = {name: sha256(folder / name) for name in sorted(names) if name != MARK}
    (folder / MARK).write_text(json.dumps(record))
    return folder
