"""What every report begins with: three large numbers, the paper behind them, and a picture.

The third number says in words whether anything is verified. A page repeats what a certificate claims and never checks
the proof, so the most that it says of one is "certified", with the command that checks it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from thereexists.reports.html import Markup, join, large_numbers, paragraph

Number = tuple[Any, Any]  # what is large, and what it is

PAPERS = {
    "A": "Yun, Bhojanapalli, Rawat, Reddi and Kumar, Are Transformers universal approximators of sequence-to-sequence "
    "functions?, ICLR 2020, arXiv:1912.10077",
    "B": "Yun, Chang, Bhojanapalli, Rawat, Reddi and Kumar, O(n) connections are expressive enough: universal "
    "approximability of sparse Transformers, NeurIPS 2020, arXiv:2006.04862",
    "heads": "Likhosherstov, Choromanski and Weller, On the expressive power of self-attention matrices, AAAI 2023, "
    "arXiv:2106.03764",
    "automata": "Liu, Ash, Goel, Krishnamurthy and Zhang, Transformers learn shortcuts to automata, ICLR 2023, "
    "arXiv:2210.10749",
    "programs": "Weiss, Goldberg and Yahav, Thinking like Transformers, ICML 2021, arXiv:2106.06981",
}


def first_screen(numbers: Iterable[Number], source: str, *pictures: Markup) -> Markup:
    """The three numbers, one sentence on where the theorem stands, and the pictures."""
    return join([large_numbers(numbers), paragraph(source, "soft"), *pictures])


def proof_of(folder: Path, certified: bool) -> Number:
    """Whether there is a certificate, and how to check it: this page did not."""
    if not certified:
        return "not certified", "nothing is proved about this folder"
    return "certified", f"not verified for this page: thereexists verify {shlex.quote(str(folder))}"


def depth_of(blocks: int) -> Number:
    return blocks, f"standard block{'' if blocks == 1 else 's'}, not trained"
