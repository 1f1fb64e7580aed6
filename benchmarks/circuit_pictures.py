"""The picture of docs/suites.md: ``python benchmarks/circuit_pictures.py eap.score.json eap-ig.score.json``.

The files are what ``thereexists suite score bench/ edges.json --json`` prints of the answers of ``circuits.py`` and
``stock_circuits.py``; those of one method have names that begin with it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

OUT = Path(__file__).parents[1] / "docs" / "img" / "circuits.svg"
DRESSES = ["plain", "turned", "distractors", "pair", "superposed", "stock"]


def main() -> None:
    plt.rcParams["svg.hashsalt"] = "thereexists"
    figure, axes = plt.subplots(figsize=(7, 2.8))
    for k, file in enumerate(map(Path, sys.argv[1:])):
        rows = json.loads(file.read_text())["rows"]
        dresses = sorted({row["dress"] for row in rows}, key=DRESSES.index)
        scores = [[row["average_precision"] for row in rows if row["dress"] == dress] for dress in dresses]
        places = np.arange(len(dresses)) + 0.35 * (k - 0.5)
        axes.boxplot(scores, positions=places, widths=0.28, patch_artist=True, boxprops={"facecolor": f"C{k}"},
                     medianprops={"color": "black"}, label=file.name.split(".")[0])  # fmt: skip
    axes.set_xticks(np.arange(len(dresses)), dresses)
    axes.set_ylabel("average precision of edges")
    axes.legend(loc="lower left")
    figure.tight_layout()
    figure.savefig(OUT, metadata={"Date": None})
    print(OUT)


if __name__ == "__main__":
    main()
