"""What the papers report, to stand beside ours; the budgets are theirs, not ours.

A: Yun et al., *Are Transformers universal approximators of sequence-to-sequence functions?*, ICLR 2020: its poster's
table, at BERT-base size. B: Yun et al., *O(n) Connections are Expressive Enough*, NeurIPS 2020: its findings in words,
because its figures are not at hand to quote exactly. What is marked *recalled* has not been read in the paper itself.
"""

from __future__ import annotations

TABLE_A = {  # parameters, masked-LM accuracy, MNLI accuracy
    "average": (88.3e6, 0.28, 0.66),
    "bproj": (90.0e6, 0.59, 0.723),
    "sepconv": (102.5e6, 0.60, 0.73),
    "attention": (110e6, 0.63, 0.782),
}
TABLE_A_BUDGET = (
    "the poster's models have BERT-base size and length 384 (its parameter counts imply it), BERT's pre-training "
    "(recalled) and MNLI's whole training set of 392,702 pairs"
)
_CONFIGS = ("sequential", "union", "multihead")
COPIERS = ("dense", *(f"{p}-{c}" for p in ("strided", "fixed") for c in _CONFIGS), "star", "random")
COPYING = "everything but STAR and RANDOM copies perfectly with 4 layers"
COPYING_BUDGET = "sequences `0 s 0 s` of 256 tokens over 128 symbols (recalled)"
SPARSE = ("strided-union", "fixed-union", "star", "random")  # of the language models and the translations
LM = "STRIDED and STAR are the best sparse patterns"
LM_BUDGET = "One Billion Word benchmark, 12 blocks, 8 heads, length 256"
MT_BEST = "STRIDED and FIXED in the UNION configuration are the best sparse patterns"
MT_WORST = "RANDOM is the worst sparse pattern"
MT_BUDGET = "WMT18 English–Czech, 6 blocks, 8 heads, length 256, tested on newstest2015"
NLI = "accuracy on MNLI and XNLI against sparsity; RANDOM is the worst pattern"
NLI_BUDGET = "BERT-base, length 128, the whole training set"
