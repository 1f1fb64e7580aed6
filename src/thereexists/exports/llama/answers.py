"""Which logits say what: the rows of ``lm_head`` of each claim, for the constant, for an answer, for every bit."""

from __future__ import annotations

import numpy as np

from thereexists.certificates.llama.automata import AutomatonClaim
from thereexists.certificates.llama.claims import Claim
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


def answers_by_case(claim: Claim) -> np.ndarray:
    """In each case of the circuit the token that it names: by the rows that are 1 then, or by the constant alone.

    Behind an answer, where the circuit has such cases, by the mark of an answer.
    """
    circuit = claim.circuit()
    W = np.zeros((len(claim.vocabulary), 2 + circuit.rows))
    W[:, 0] = -2 * ANSWER
    for case in circuit.cases:
        ((token, _),) = case.right
        if case.done:  # more than all rows of an answer together
            W[token, 1] = 8 * ANSWER
            continue
        W[token, 0] = 0.0 if case.on else ANSWER / 2
        W[token, 2 + np.array(case.on, dtype=np.int64)] = ANSWER
    return W
