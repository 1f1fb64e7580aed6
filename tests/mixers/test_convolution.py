"""The depth-wise convolution in channels-last layout, and its CUDA kernels in Triton's interpreter, against conv1d."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import conv1d, pad

from tests.mixers.cases import rounding
from thereexists.mixers import convolution
from thereexists.mixers.convolution import depthwise_convolution, gated_convolution

SHAPES = [(2, 40, 70, 9, 4), (1, 5, 3, 9, 8), (2, 33, 64, 3, 1), (3, 1, 5, 5, 2), (1, 32, 130, 1, 0)]


def largest(x):
    return float(x.detach().abs().max())


def by_conv1d(a, weight, left):
    """Channels first and back."""
    k, d = weight.shape
    moved = pad(a.transpose(1, 2), (left, k - 1 - left))
    return conv1d(moved, weight.T[:, None], groups=d).transpose(1, 2)


@given(
    batch=st.integers(1, 3),
    n=st.integers(1, 12),
    d=st.integers(1, 5),
    k=st.integers(1, 9),
    left=st.integers(0, 8),
    seed=st.integers(0, 99),
)
def test_shifted_sums_are_conv1d(batch, n, d, k, left, seed):
    left = min(left, k - 1)
    torch.manual_seed(seed)
    a, weight = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((batch, n, d), (k, d)))
    ours, stock = depthwise_convolution(a, weight, left), by_conv1d(a, weight, left)
    dy = torch.randn_like(ours)
    pairs = zip(torch.autograd.grad(ours, (a, weight), dy), torch.autograd.grad(stock, (a, weight), dy), strict=True)
    scale = largest(a) * max(largest(weight), 1) * max(largest(dy), 1) * k * batch * n
    for one, other in [(ours, stock), *pairs]:
        assert largest(one - other) <= rounding(k, batch * n, scale=scale)


def test_the_comparison_notices_a_shifted_kernel():
    a, weight = torch.randn(1, 6, 2, dtype=torch.float64), torch.randn(3, 2, dtype=torch.float64)
    assert largest(depthwise_convolution(a, weight, 0) - by_conv1d(a, weight, 1)) > 1e-3


def test_a_kernel_of_one_tap_is_the_gate_alone():
    ug, weight = torch.randn(2, 5, 6), torch.ones(1, 3)
    u, g = ug.chunk(2, dim=-1)
    assert torch.equal(gated_convolution(ug, weight, 0), u * torch.sigmoid(g))


INTERPRETED = """
import importlib.util, sys, torch
spec = importlib.util.spec_from_file_location("kernels", sys.argv[1])
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)
done = []
for ug, weight, left, real, dy in torch.load(sys.argv[2]):
    ug.requires_grad_(), weight.requires_grad_()
    y = kernels.fused_gated_convolution(ug, weight, left, real)
    done.append([y.detach(), *torch.autograd.grad(y, (ug, weight), dy)])
torch.save(done, sys.argv[3])
"""


def inputs(shape, masked):
    batch, n, d, k, left = shape
    random = torch.Generator().manual_seed(n)
    real = torch.rand(batch, n, generator=random) < 0.7 if masked else None
    sizes = ((batch, n, 2 * d), (k, d), (batch, n, d))
    ug, weight, dy = (torch.randn(*size, generator=random) for size in sizes)
    return ug, weight, left, real, dy


CASES = [(shape, masked) for shape in SHAPES for masked in (False, True)]


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    """What the kernels compute, by Triton's interpreter on the CPU; it must be chosen before Triton is imported."""
    pytest.importorskip("triton", reason="the kernels need Triton, which comes with torch's CUDA builds")
    folder = tmp_path_factory.mktemp("kernels")
    torch.save([inputs(*case) for case in CASES], folder / "in.pt")
    source = Path(convolution.__file__).with_name("convolution_triton.py")
    command = [sys.executable, "-c", INTERPRETED, str(source), str(folder / "in.pt"), str(folder / "out.pt")]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return torch.load(folder / "out.pt")


def by_autograd(ug, weight, left, real, dy):
    """Forward and both gradients in float64."""
    ug, weight = ug.double().requires_grad_(), weight.double().requires_grad_()
    y = gated_convolution(ug, weight, left, real)
    return [y, *torch.autograd.grad(y, (ug, weight), dy.double())]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_kernels_are_the_same_function(interpreted, case):
    (batch, n, _, k, _), _ = CASES[case]
    ug, weight, left, real, dy = inputs(*CASES[case])
    scale = largest(ug) * max(largest(weight), 1) * max(largest(dy), 1)
    compare(interpreted[case], by_autograd(ug, weight, left, real, dy), (k, k, batch * n), scale)


def compare(ours, theirs, lengths, scale, dtype=torch.float32):
    """Sums of the given lengths, behind a gate of some ten roundings."""
    for one, other, length in zip(ours, theirs, lengths, strict=True):
        assert one.shape == other.shape
        assert largest(one.double() - other.double()) <= rounding(length, 10, scale=scale * length, dtype=dtype)


def test_the_comparison_of_kernels_notices_a_wrong_tap(interpreted):
    ug, weight, left, real, dy = inputs(*CASES[0])
    weight[1, 1] += 0.01
    scale = largest(ug) * max(largest(weight), 1) * max(largest(dy), 1)
    with pytest.raises(AssertionError):
        compare(interpreted[0], by_autograd(ug, weight, left, real, dy), (9, 9, 80), scale)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_kernels_on_a_gpu(shape, dtype):
    from thereexists.mixers.convolution_triton import fused_gated_convolution

    batch, n, _, k, left = shape
    ug, weight, left, real, dy = inputs(shape, masked=True)
    ug, dy = ug.to(dtype), dy.to(dtype)
    on_gpu, taps = ug.cuda().requires_grad_(), weight.cuda().requires_grad_()
    y = fused_gated_convolution(on_gpu, taps, left, real.cuda())
    ours = [part.cpu() for part in (y, *torch.autograd.grad(y, (on_gpu, taps), dy.cuda()))]
    scale = largest(ug) * max(largest(weight), 1) * max(largest(dy), 1)
    compare(ours, by_autograd(ug, weight, left, real, dy), (k, k, batch * n), scale, dtype)
