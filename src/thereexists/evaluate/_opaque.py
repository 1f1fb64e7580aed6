"""``evaluate`` as a compiled caller sees it: a call that breaks the graph, run as it is.

A file of its own because ``torch.compiler.disable`` loads all of torch's compiler, in a second or two.
"""

import torch

from thereexists.evaluate import run

run_opaque = torch.compiler.disable(run)
