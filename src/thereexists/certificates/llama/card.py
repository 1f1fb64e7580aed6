"""What the model card claims: the one paragraph of README.md that the verifier compares, word by word."""

from __future__ import annotations

from thereexists.certificates.llama.format import Checkpoint
from thereexists.certificates.llama.rounding import ASSUMPTIONS, DTYPES, REFUSED


def claim_of(checkpoint: Checkpoint, dtypes: list[str]) -> str:
    """The claim in these dtypes, and what is not claimed."""
    machine, n = checkpoint.maps.automaton, checkpoint.n
    what = "what the automaton writes in its last step" if machine.writes else "whether the automaton accepts"
    empty = " but the empty one" if machine.writes else ""
    others = [f"- not claimed in {name}: no proof" for name in DTYPES if name not in dtypes]
    others += [f"- not claimed in {name}: {reason}" for name, reason in REFUSED.items()]
    return "\n".join(
        (
            "## What is proved",
            "",
            f"In {' and in '.join(dtypes)}, for every prompt of at most {n:,} symbols ({len(machine.alphabet)}^{n} of "
            f"that length){empty}: the token with the largest logit says {what}, and behind it `</s>` has the largest "
            "logit. After every prefix, too, the largest logit among the tokens of states is that of the automaton's "
            "state, and the largest of accepted and rejected says whether it accepts.",
            "",
            "Loaded with `from_pretrained(..., dtype=...)`. `model.to(torch.bfloat16)` rounds the rotary table, and is "
            "outside the claim. It is assumed that",
            "",
            *(f"- {assumption};" for assumption in ASSUMPTIONS),
            *others,
            "",
        )
    )
