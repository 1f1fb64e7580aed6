"""Draw the pictures of docs/patterns.md: python benchmarks/pattern_pictures.py docs/img."""

from __future__ import annotations

import sys
from pathlib import Path

from thereexists.patterns import REGISTRY, build
from thereexists.patterns.picture import save

SIZES = {
    "window": {"window": 4},
    "dilated": {"window": 3},
    "longformer": {"window": 4},
    "alternating": {"window": 4},
    "random": {"degree": 6},
    "bigbird": {"block": 4, "random_blocks": 1},
}


def main(folder: Path) -> None:
    for name in REGISTRY:
        print(save(build(name, 64, **SIZES.get(name, {})), folder / f"pattern-{name}.png"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/img"))
