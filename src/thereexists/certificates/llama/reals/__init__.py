"""Causal programs over the reals as stock checkpoints that take ``inputs_embeds``: what is claimed, and its proof.

network.py      rows, and what is written into them: which layer makes what
operations.py   every operation of a program: its form, its range, how it carries errors
claim.py        what is claimed, and its words
reading.py      what a linear layer makes of rows in a dtype, and how far its weights are from those wanted
proof.py        the bound in a dtype, from the weights
verify.py       the checks of ``thereexists verify``
"""
