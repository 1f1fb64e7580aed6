"""``python numbers_without_us.py ASKED.npz ANSWERS.npz``: numbers through stock folders, where we cannot be imported.

ASKED has an array for every folder, (batch, tokens, numbers); the code that is run is that of the folder's own card.
"""

import re
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path


class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "thereexists":
            raise ImportError("this process must do without thereexists")
        return None


def main(asked, answers):
    import numpy as np
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    found = {}
    for folder, X in np.load(asked).items():
        card = (Path(folder) / "README.md").read_text()
        code = re.search("```python\n(.*?)```", card, re.DOTALL).group(1).replace("FOLDER", folder)
        for dtype in ("float32", "bfloat16"):
            for attention in ("eager", "sdpa"):
                loads = f'dtype=torch.{dtype}, attn_implementation="{attention}"'
                lines = code.replace("dtype=torch.float32", loads).splitlines()
                lines = [line for line in lines if not line.startswith("x = ")]
                for length in sorted({1, X.shape[1] // 2 + 1, X.shape[1]}):
                    names = {"x": torch.from_numpy(X[:, :length])}
                    with torch.no_grad():
                        exec("\n".join(lines), names)
                    found[f"{folder}|{dtype}|{attention}|{length}"] = names["y"].double().numpy()
    assert "thereexists" not in sys.modules
    np.savez(answers, **found)


if __name__ == "__main__":
    sys.meta_path.insert(0, Blocked())
    main(*sys.argv[1:])
