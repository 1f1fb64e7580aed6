"""Run in a fresh interpreter: every command, with the core dependencies only.

    python -m tests.cli.without_extras FOLDER

Importing anything that only an extra brings fails as if it were not installed. Prints one JSON object: what each
command said.
"""

import json
import re
import sys
from importlib import metadata
from pathlib import Path

MODULES = {"python-sat": "pysat"}
MORE = [
    *[("heads fit", f"t.npz --method {method} --out new") for method in ("auto", "moments", "convex", "descent")],
    ("heads fit", "t.npz --method corrected --plot new.png"),
    ("export", "m --to onnx --out new"),
    ("export", "m --to hf --out new"),
    ("pattern draw", "star --n 8 --out new.png"),
    ("run", "w --input '0.3 0.1' --engine fused"),
    ("certify", "w --workers 2 --pool ray"),
    ("results", "r --plots new"),
]


def brought_by_extras() -> set[str]:
    """The modules of all packages that extras name and the core does not."""
    core, extra = set(), set()
    for line in metadata.requires("thereexists") or []:
        name = re.match(r"[\w.-]+", line)[0].lower()
        (extra if "extra ==" in line else core).add(MODULES.get(name, name.replace("-", "_")))
    return extra - core - {"thereexists", "pytest", "pytest_xdist", "hypothesis", "beartype", "psutil", "networkx"}


class Without:
    """A finder that does not find these modules; so they are not installed, to ``import`` and to ``find_spec``."""

    def __init__(self, finder, modules):
        self.finder, self.modules = finder, modules

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in self.modules else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)


def main(folder: Path) -> None:
    missing = brought_by_extras()
    assert not missing & set(sys.modules), "what is imported already cannot be missing"
    sys.meta_path[:] = [Without(finder, missing) for finder in sys.meta_path]
    from tests.cli.fuzz import SENSIBLE, ctrl_c_after
    from tests.cli.in_process import ran

    said = {}
    for number, (name, rest) in enumerate([*SENSIBLE.items(), *MORE]):
        try:
            with ctrl_c_after(2 if name == "explore" else 100):
                done = ran(f"{name} {rest.replace('new', f'new{number}')}", cwd=folder)
            said[f"{name} {rest}"] = (done.code, done.stderr)
        except BaseException as error:  # a traceback to a user
            said[f"{name} {rest}"] = (None, f"{type(error).__name__}: {error}")
    print(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
