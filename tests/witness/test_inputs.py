"""What is no array of real numbers is refused in one sentence: nothing of it is dropped."""

import numpy as np
import pytest
import torch

import thereexists as te
from tests.kinds import EXAMPLES

X = np.array([[0.7], [0.1]])
REFUSED = {
    "complex": X + 0.5j,
    "complex tensor": torch.tensor(X + 0.5j),
    "conjugate": torch.tensor(X + 0.5j).conj(),
    "complex list": (X + 0.5j).tolist(),
    "masked": np.ma.array(X, mask=[[True], [False]]),
    "sparse": torch.tensor(X).to_sparse(),
    "nowhere": torch.tensor(X, device="meta"),
}


@pytest.fixture(scope="module", params=["faithful", "compact", "program"])
def witness(request):
    return EXAMPLES[request.param].build()


@pytest.mark.parametrize("given", REFUSED)
def test_what_is_no_array_of_real_numbers_is_refused(witness, given):
    for ask in (witness, witness.trace):
        with pytest.raises(te.ThereExistsError, match="must be real numbers") as refused:
            ask(REFUSED[given])
        assert "\n" not in str(refused.value)


def test_every_kind_of_real_number_is_taken(witness):
    wanted = witness(X.astype(np.float16).astype(np.float64))
    for given in (X.astype(np.float16), torch.tensor(X).half(), torch.tensor(X).half().requires_grad_(),
                  torch.tensor(-1j * np.float16(X).astype(float)).conj().imag,  # with torch's negative bit
                  np.ma.array(X.astype(np.float16))):  # fmt: skip
        assert np.array_equal(np.asarray(witness(given)), wanted)


def test_a_network_says_which_dtype_it_takes():
    network = EXAMPLES["compact"].build().network
    with pytest.raises(te.ThereExistsError, match=r"takes numbers in torch\.float64; got an input in torch\.float32"):
        network(torch.rand(1, 2, 1))
    with pytest.raises(te.ThereExistsError, match=r"takes numbers in torch\.float64"):
        te.evaluate.evaluate(network, torch.rand(1, 2, 1))
