"""What is no tensor or no number is refused by name. In a process without the suite's own checks of types:

python -m tests.attention.wrong_kinds
"""

import re

import pytest
import torch

from thereexists import patterns as tp
from thereexists.attention import Dropout, sparse_attention
from thereexists.core.errors import InvalidInput

N = 12
WRONG = {
    "'sinks' must be a tensor of real numbers; got list": {"sinks": [0.0, 0.0]},
    "'bias' must be a tensor of real numbers; got torch.complex64": {"bias": torch.zeros(2).cfloat()},
    "'softcap' must be a positive number, from 1e-9 to 1e9, or None for none; got x": {"softcap": "x"},
    "'softcap' must be a positive number, from 1e-9 to 1e9, or None for none; got 1e+39": {"softcap": 1e39},
    "'scale' must be a finite number; got 'x'": {"scale": "x"},
    "'dropout_p' must be a number in [0, 1); got None": {"dropout_p": None},
    "The seed of dropout must be a whole number from 0 to 2^63 - 1; got 1.5": {"dropout_p": Dropout(0.5, 1.5)},
    "'key_padding_mask' must be a Boolean tensor (1, 12); got list": {"key_padding_mask": [[True] * N]},
    "'lengths' must lie between 0 and the 12 tokens; got [-1]": {"lengths": torch.tensor([-1])},
}


def main():
    pattern, k = tp.window(N, 4), torch.randn(1, 2, N, 4)
    for rows in (N, 3):
        for message, given in WRONG.items():
            with pytest.raises(InvalidInput, match=re.escape(message)):
                sparse_attention(k[:, :, -rows:], k, k, pattern, **given)
    print(len(WRONG))


if __name__ == "__main__":
    main()
