"""The site's own hooks, which list what the reference shows."""

import importlib.util

from tests.docs.blocks import ROOT

PACKAGE = ROOT / "src" / "thereexists"


def hooks():
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "site" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
