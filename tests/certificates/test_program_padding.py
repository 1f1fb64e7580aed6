"""Shorter sequences: what stands for a missing token is a number of every dtype, and each length has its own errors."""

import dataclasses
import json

import numpy as np
import pytest
import torch

import thereexists as te
from tests.hostile import forge_record
from thereexists import program as P
from thereexists.certificates.program_certificate import certify_program
from thereexists.model import Attention, EmbeddedTransformer, FeedForward, Stage
from thereexists.model.digest import weights_sha256

LOW = 1 + 2.0**-24 - 2.0**-28  # in float32 and bfloat16 it becomes 1.0, below the box


def zeros(*shape):
    return torch.zeros(*shape, dtype=torch.float64)


def amplifier():
    """Copies x, and adds 2^44·ReLU(2^-25 − (x_last − 1)), which is 0 on the box, and 2^19 at 1."""
    W_in, E = zeros(6, 1), zeros(2, 6)
    W_in[1:3] = 1.0
    E[:, 0], E[:, 2], E[:, 4] = 1.0, -1.0, torch.tensor([-1.0, 1.0])
    W_1, W_2 = zeros(1, 1, 6), zeros(1, 6, 1)
    W_1[0, 0, 2], W_2[0, 3, 0] = -1.0, 2.0**44
    W_Q, W_K, W_V, W_O = zeros(1, 1, 1, 6), zeros(1, 1, 1, 6), zeros(1, 1, 1, 6), zeros(1, 1, 6, 1)
    W_Q[..., 0], W_K[..., 4], W_V[..., 3], W_O[0, 0, 5, 0] = 1024.0, 1.0, 1.0, 1.0  # every token reads the last one
    stages = {
        "block_1": Stage(None, FeedForward(W_1, torch.full((1, 1), 2.0**-25).double(), W_2, zeros(1, 6))),
        "block_2": Stage(Attention(W_Q, zeros(1, 1, 1), W_K, W_V, W_O), None),
    }
    W_out = zeros(1, 6)
    W_out[0, 1] = W_out[0, 5] = 1.0
    return EmbeddedTransformer(stages, W_out, W_in=W_in, E=E)


def test_a_missing_token_lies_in_the_box_in_every_dtype(tmp_path):
    witness = te.build(1.0 * P.tokens(2, low=LOW, high=1.25, shorter=True))
    network = amplifier()
    certificate = certify_program(witness.written, network, "float64", None)
    forged = dataclasses.replace(witness, network=network, made=certificate, places=())
    forged.save(tmp_path / "w")
    assert te.verify(tmp_path / "w").holds
    for name, part in certificate.bounds.items():
        off = abs(float(te.load(tmp_path / "w", dtype=name)(np.array([[[1.0625]]]))[0, 0, 0]) - 1.0625)
        assert off <= part["bound"], name


def test_the_error_of_a_spline_is_the_largest_over_all_lengths():
    x = P.tokens(6, shorter=True)
    witness = te.build(P.apply(np.exp, P.sum(P.constant(1.0, x)) * 0.4, epsilon=1e-2))
    (spline,) = witness.certificate.splines
    for length in range(1, 7):
        off = np.abs(witness(np.zeros((1, length, 1))) - np.exp(0.4 * length)).max()
        assert off <= spline["own"] + witness.certificate.bounds["float64"]["rounding"]


@pytest.mark.parametrize("high", [1.0, 64.0])
def test_a_second_box_in_the_record_is_refused(high, tmp_path):
    te.build(1.0 * P.tokens(2)).save(tmp_path / "w")

    def second(record):
        nodes = record["program"]["nodes"]
        other = json.loads(json.dumps(nodes[0]))
        other["settings"]["high"] = high
        nodes.insert(1, other)
        for node in nodes[2:]:
            node["arguments"] = [k + 1 for k in node["arguments"]]

    forge_record(tmp_path / "w", second)
    with pytest.raises(te.ThereExistsError, match="one 'tokens'"):
        te.load(tmp_path / "w")


def test_a_network_that_reads_other_features_is_refused(tmp_path):
    witness = te.build(P.sort(P.tokens(2)))
    old = witness.network
    wide = torch.cat([old.W_in.detach()] * 3, dim=1)
    network = EmbeddedTransformer(
        dict(old.stages.items()), old.W_out.detach(), W_in=wide, E=old.E.detach(), safe=old.safe
    )
    certificate = dataclasses.replace(witness.certificate, weights_sha256=weights_sha256(network))
    dataclasses.replace(witness, network=network, made=certificate).save(tmp_path / "w")
    with pytest.raises(te.ThereExistsError, match="another number of features"):
        te.load(tmp_path / "w")


@pytest.mark.parametrize("large", [1e15, 1e17, 1e29])
def test_a_spline_of_one_large_number_has_two_knots(large):
    assert te.build(P.apply(np.log, P.maximum(P.tokens(3), large))).certificate.bound < 1
