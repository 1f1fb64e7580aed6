"""What the model card claims: the one section of README.md that the verifier compares, word by word."""

from __future__ import annotations

import re

from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.rounding import ASSUMPTIONS, DTYPES, REFUSED


def claim_of(claim: Claim, dtypes: list[str]) -> str:
    """The claim in these dtypes, and what is not claimed."""
    others = [f"- not claimed in {name}: no proof" for name in DTYPES if name not in dtypes]
    others += [f"- not claimed in {name}: {reason}" for name, reason in REFUSED.items()]
    return "\n".join(
        (
            "## What is proved",
            "",
            f"In {' and in '.join(dtypes)}, {claim.sentence()}",
            "",
            "Loaded with `from_pretrained(..., dtype=...)`. `model.to(torch.bfloat16)` rounds the rotary table, and is "
            "outside the claim. It is assumed that",
            "",
            *(f"- {assumption};" for assumption in ASSUMPTIONS),
            *others,
            "",
            "`thereexists verify FOLDER` reads config and weights and proves this again. Text that contains `<s>`, "
            "`</s>` or `<pad>` is taken for those tokens, as every tokenizer of this kind does; a symbol that is not "
            "of the alphabet is an error.",
            "",
        )
    )


def says_openly(text: str, section: str) -> bool:
    """Whether a card has the section once, from its heading to the next one, where whoever reads the card sees it.

    What stands before it opens no fence and no HTML, comments included, and nothing else is called what is proved.
    """
    before, found, after = text.partition(section)
    apart = (not before or before.endswith("\n\n")) and (not after or after.startswith("\n## "))
    seen, closed = _outside_of_code(before)
    alone = "what is proved" not in (seen + _outside_of_code(after)[0]).casefold()
    return bool(found) and apart and alone and closed and not _TAG.search(seen)


def _outside_of_code(text: str) -> tuple[str, bool]:
    """What stands outside of fences and of code in a line, and whether all fences are closed."""
    fence, rest = "", []
    for line in text.split("\n"):
        ticks = _FENCE.match(line)
        if fence:
            fence = "" if ticks and ticks[1].startswith(fence) and not line.strip(" " + fence[0]) else fence
        elif ticks:
            fence = ticks[1]
        else:
            rest.append(line)
    return _CODE.sub("", "\n".join(rest)), not fence


_FENCE = re.compile(r" {0,3}(`{3,}(?!.*`)|~{3,})")
_CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")
_TAG = re.compile(r"<[A-Za-z!/?]")  # or a comment, or a declaration
