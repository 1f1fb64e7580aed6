"""Which logits say what: the rows of ``lm_head`` of each claim, for the constant, for an answer, for every bit."""

from __future__ import annotations

import numpy as np

from thereexists.certificates.llama.addition import ANSWERS, DIGIT, END, ROWS, Addition
from thereexists.certificates.llama.automata import AutomatonClaim
from thereexists.certificates.llama.tokens import EOS

ANSWER = 32.0  # the logit of the answer; of a token that says something else that is true, half of it


def automaton_answers(claim: AutomatonClaim) -> np.ndarray:
    """Where the start is led to: state, acceptance, output; the answer counts twice. Behind an answer, </s>."""
    maps, machine, tokens = claim.maps, claim.machine, claim.vocabulary
    said = maps.readout()  # (states + outputs + 1, own)
    W = np.zeros((len(tokens), 2 + maps.own + maps.fetched))
    own = slice(2, 2 + maps.own)
    half, accepts = ANSWER / 2, ANSWER / (2 if machine.writes else 1)
    W[: tokens.outputs.start, 0] = -2 * ANSWER
    W[tokens.states, own] = half * said[: machine.size]
    if machine.dead is not None:
        dead = tokens.states.start + machine.dead
        W[dead, own] = -half * said[: machine.size].sum(axis=0)
        W[dead, 0] = half
    yes, no = tokens.verdicts.start, tokens.verdicts.start + 1
    W[yes, own], W[no, own], W[no, 0] = accepts * said[-1], -accepts * said[-1], accepts
    if machine.writes:
        W[tokens.outputs, own] = ANSWER * said[machine.size : -1]
    W[EOS, 1] = 4 * ANSWER
    return W


def addition_answers(claim: Addition) -> np.ndarray:
    """The digit that was made; the end where = is as far back as the answer is long."""
    W = np.zeros((len(claim.vocabulary), 2 + ROWS))
    W[:ANSWERS, 0] = -2 * ANSWER
    W[ANSWERS + np.arange(10), 2 + DIGIT + np.arange(10)] = ANSWER
    W[EOS, 2 + END] = 4 * ANSWER
    return W
