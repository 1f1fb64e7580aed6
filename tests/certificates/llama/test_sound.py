"""What the proof says of the run, measured in the run: errors of bits, leads of logits, in both dtypes."""

import numpy as np
import pytest
import torch

import thereexists as te
from tests.automata.machines import SMALL
from thereexists.certificates.llama.circuit import BITS
from thereexists.certificates.llama.format import read_checkpoint, read_claim
from thereexists.certificates.llama.offsets import Turning, Vector, lead
from thereexists.certificates.llama.proof import prove
from thereexists.certificates.llama.rounding import DTYPES, Rounding
from thereexists.certificates.llama.run import _spelling_nothing_else, loaded, misread
from thereexists.certificates.llama.tokens import BOS, SYMBOLS, Vocabulary

modeling = pytest.importorskip("transformers.models.llama.modeling_llama")


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama") / "stock"
    te.export(te.build(SMALL["drawn"], n=64), "llama", folder)
    return folder, read_checkpoint(folder, read_claim(folder))


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_err_by_no_more_than_is_proved(stock, dtype):
    folder, checkpoint = stock
    proof, rows = prove(checkpoint, dtype), checkpoint.claim.circuit().rows
    ids = np.random.default_rng(1).integers(0, 3, (4, 64))
    tokens = torch.from_numpy(np.concatenate([np.full((4, 1), BOS), ids + SYMBOLS], axis=1))
    with torch.no_grad():
        hidden = loaded(folder, dtype)(tokens, output_hidden_states=True).hidden_states[:-1]
    for layer in hidden:
        bits = layer[..., BITS : BITS + rows].double().numpy()
        assert np.abs(bits - np.round(bits)).max() <= proof.error < 1 / 8
        assert (layer[..., 0] == 4096).all()
        assert (layer[..., BITS + rows :] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_lead_by_no_less_than_is_proved(stock, dtype):
    """Queries and keys as transformers turns them, every pair of positions, eager logits."""
    folder, checkpoint = stock
    proof, model, n = prove(checkpoint, dtype), loaded(folder, dtype), checkpoint.claim.n
    tokens = torch.full((1, n + 2), SYMBOLS)
    tokens[0, 0] = BOS
    least = np.inf
    with torch.no_grad():
        X = model.model.embed_tokens(tokens)
        cos, sin = model.model.rotary_emb(X, torch.arange(n + 2)[None])
        for t, layer in enumerate(model.model.layers):
            x = layer.input_layernorm(X)
            q, k = layer.self_attn.q_proj(x)[:, None], layer.self_attn.k_proj(x)[:, None]
            q, k = modeling.apply_rotary_pos_emb(q, k, cos, sin)
            S = (torch.matmul(q, k.transpose(2, 3)) * layer.self_attn.scaling)[0, 0].double().numpy()
            for j in range(1, n + 2):
                right = max(j - 2**t, 0)
                least = min(least, S[j, right] - np.delete(S[j, : j + 1], right).max())
    assert proof.lead <= least


def test_the_lead_of_a_wrong_offset_is_negative():
    w = 1e6 ** (-np.arange(32) / 32)
    key, first = np.r_[np.ones(31), np.zeros(33)], np.r_[np.zeros(31), 1.0, np.zeros(32)]
    z = np.r_[np.exp(-1j * w[:31] * 3), 30.6] * 8000
    turning, exact = Turning(1e6, 64, 66, 65), np.zeros(64)
    vectors = [Vector(v, exact) for v in (np.r_[z.real, z.imag], key, first)]
    assert lead(*vectors, 3, turning, Rounding("float32")) > 0
    assert lead(*vectors, 4, turning, Rounding("float32")) < 0


def test_the_norm_needs_a_large_constant():
    assert Rounding("bfloat16").norm(64, 4096.0, 20.0, 1e-6) == 0
    assert 0 < Rounding("float32").norm(64, 4096.0, 20.0, 1e-6) < 2e-5
    with pytest.raises(te.ThereExistsError, match="a norm is off"):
        Rounding("bfloat16").norm(64, 16.0, 20.0, 1e-6)


@pytest.mark.parametrize("alphabet", ["<s>", "<>s", "</apds>"])
def test_letters_may_spell_a_token_of_the_tokenizer(alphabet, tmp_path):
    """The card says that text with ``<s>`` is taken for the token: no trial draws it and calls the folder false."""
    te.export(te.build(te.automata.regex("[^s]*s?.*", alphabet=alphabet), n=4), "llama", tmp_path / "w")
    checkpoint = read_checkpoint(tmp_path / "w", read_claim(tmp_path / "w"))
    for seed in range(64):
        assert misread(tmp_path / "w", checkpoint.claim.vocabulary, np.random.default_rng(seed)) is None
    ids = range(SYMBOLS, SYMBOLS + len(alphabet))
    texts = checkpoint.claim.vocabulary.texts
    both = {k for order in (ids, ids[::-1]) for k in _spelling_nothing_else([*order], checkpoint.claim.vocabulary)}
    assert both == {*ids}
    assert "".join(texts[k] for k in ids) == alphabet


def test_half_a_character_is_no_symbol():
    """Where transformers is not installed, nothing else would open the tokenizer's file."""
    with pytest.raises(te.ThereExistsError, match="no text"):
        Vocabulary(("<pad>", "<s>", "</s>", "\ud800"), True, slice(4, 4))
