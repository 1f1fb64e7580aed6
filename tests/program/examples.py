"""The programs of examples/programs/, by name."""

import importlib.util
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "examples" / "programs"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py"))


def example(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)  # pyright: ignore[reportArgumentType]
    spec.loader.exec_module(module)  # pyright: ignore[reportOptionalMemberAccess]
    return module
