"""``run_by_rows`` for a model that is being compiled; in its own file, since the mark loads all of torch's compiler."""

from typing import Any

import torch

from thereexists.attention.by_rows import run_by_rows

run: Any = torch.compiler.disable(run_by_rows)
