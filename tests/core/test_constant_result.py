"""Our note is torch's note, and writing it loads no compiler."""

import torch

from thereexists.core.constant_result import constant_result


def test_the_note_is_that_of_torch():
    def ours():
        return 1

    def theirs():
        return 1

    assert constant_result(ours) is ours
    assert vars(ours) == vars(torch.compiler.assume_constant_result(theirs)) != {}


def test_attention_loads_without_the_compiler_of_torch(fresh):
    code = "import sys, thereexists as te; te.attention.sparse_attention; sys.exit('torch._dynamo' in sys.modules)"
    assert fresh("-c", code).returncode == 0
