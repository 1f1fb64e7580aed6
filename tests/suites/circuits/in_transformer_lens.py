"""``python in_transformer_lens.py bench/``: every model by the lines of the suite's own page, without thereexists.

Prints {model: the largest difference between what TransformerLens gives and the outputs in the data}; of a stock model
it is how many of its answers are wrong.
"""

import importlib.metadata
import json
import os
import re
import sys
import textwrap
from pathlib import Path

sys.modules["thereexists"] = None  # whoever imports it fails


def lines(page, sentence):
    """The indented block behind a sentence."""
    behind = page.partition(sentence)[2].partition(":\n\n")[2]
    return textwrap.dedent(re.match(r"(?:    .*\n|\n)+", behind)[0])


def main():
    import torch
    from safetensors.torch import load_file

    suite = Path(sys.argv[1]).resolve()
    version = importlib.metadata.version("transformer-lens")
    page = (suite / "README.md").read_text()
    code = compile(lines(page, f"with TransformerLens {version.split('.')[0]} "), "README.md", "exec")
    stock = compile(lines(page, "in its folder, with either of them"), "README.md", "exec")
    found = {}
    for name in json.loads((suite / "suite.json").read_text())["models"]:
        os.chdir(suite / "models" / name)
        made = {}
        exec(stock if name.endswith("-stock") else code, made)
        data = load_file("data.safetensors")
        with torch.no_grad():
            if name.endswith("-stock"):
                found[name] = int((made["model"](data["tokens"])[:, 1:].argmax(-1) != data["answers"]).sum())
                continue
            found[name] = float((made["model"](data["tokens"]).double() - data["outputs"]).abs().max())
    print(json.dumps({"version": version, "off": found}))


if __name__ == "__main__":
    main()
