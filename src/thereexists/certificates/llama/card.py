"""What the model card claims: it begins with that, in the verifier's own words, before anything that is not checked.

Markdown can hide or counterfeit whatever comes after it in ever new ways: in comments, fences, entities, other line
ends. So nothing of the author's stands before the section, and what stands behind it is said to be unchecked.
"""

from __future__ import annotations

from thereexists.certificates.llama.claims import Claim
from thereexists.certificates.llama.rounding import ASSUMPTIONS, DTYPES, REFUSED

FRONT = {
    True: "---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags: [constructed, proved]\n---\n\n",
    False: "---\nlibrary_name: transformers\ntags: [constructed, proved]\n---\n\n",
}
REST = "All that follows on this page is its author's word; nothing of it is checked."


def opening(section: str, speaks: bool) -> str:
    """How the card of a checkpoint that ``speaks`` (generates text) begins; a heading comes next."""
    return f"{FRONT[speaks]}# What is proved\n\n{section}\n{REST}\n\n# "


def begins_openly(content: bytes, section: str, speaks: bool) -> bool:
    """Whether a card begins so, to the byte."""
    return content.startswith(opening(section, speaks).encode())


def claim_of(claim: Claim, dtypes: list[str]) -> str:
    """The claim in these dtypes, and what is not claimed."""
    others = [f"- not claimed in {name}: no proof" for name in DTYPES if name not in dtypes]
    others += [f"- not claimed in {name}: {reason}" for name, reason in REFUSED.items()]
    return "\n".join(
        (
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
