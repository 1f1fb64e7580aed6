"""``python in_transformer_lens.py bench/``: every model by the lines of the suite's own page, without thereexists.

Prints {model: the largest difference between what TransformerLens gives and the outputs in the data}.
"""

import importlib.metadata
import json
import os
import re
import sys
import textwrap
from pathlib import Path

sys.modules["thereexists"] = None  # whoever imports it fails


def lines(page, version):
    """The indented block behind the sentence that names the version."""
    behind = page.partition(f"with TransformerLens {version} ")[2].partition(":\n\n")[2]
    return textwrap.dedent(re.match(r"(?:    .*\n|\n)+", behind)[0])


def main():
    import torch
    from safetensors.torch import load_file

    suite = Path(sys.argv[1]).resolve()
    version = importlib.metadata.version("transformer-lens")
    code = compile(lines((suite / "README.md").read_text(), version.split(".")[0]), "README.md", "exec")
    found = {}
    for name in json.loads((suite / "suite.json").read_text())["models"]:
        os.chdir(suite / "models" / name)
        made = {}
        exec(code, made)
        data = load_file("data.safetensors")
        with torch.no_grad():
            found[name] = float((made["model"](data["tokens"]).double() - data["outputs"]).abs().max())
    print(json.dumps({"version": version, "off": found}))


if __name__ == "__main__":
    main()
