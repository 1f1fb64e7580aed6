"""What the model card claims: the one paragraph of README.md that the verifier compares, word by word."""

from __future__ import annotations

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
        )
    )
