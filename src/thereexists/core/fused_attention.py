"""torch's fused attention, without the one of its kernels whose gradients are not to be trusted.

cuDNN's, which torch prefers on recent GPUs, is left out where a gradient may be asked for:

* torch (2.11 was tried) keeps a graph of its backward pass for each layout of queries, keys, values and output, and
  runs it on gradients of the output in whatever layout. The first layout of a process decides; in another one every
  gradient is wrong, by 1.4 times its size in our tests. A compiled function hands over another one than an eager one.
* Under a mask it gives NaN instead of the gradient of a query when the number of keys leaves a remainder of 64 modulo
  128, and all logits of a row are below about −88 (pytorch issue 196678). Models that train for long enough come there:
  copying by STAR did, at 64 tokens after 469 steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

_TRUSTED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def fused_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, **options: Any) -> Tensor:
    """``scaled_dot_product_attention``, its ``options`` included."""
    wanted = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    if not q.is_cuda or (mask is None and not wanted):
        return scaled_dot_product_attention(q, k, v, mask, **options)
    with sdpa_kernel(_TRUSTED):
        return scaled_dot_product_attention(q, k, v, mask, **options)


@contextmanager
def autograd_on() -> Iterator[None]:
    """Inside an operator of a compiled graph autograd is switched off below ``enable_grad``."""
    away = torch._C._dispatch_tls_local_exclude_set()
    off = torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradFunctionality)
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), away - off), torch.enable_grad():
        yield


def transformed() -> bool:
    """Whether ``torch.func`` or forward mode follows the call: a tensor may stand for many, and has no values to ask
    for, or brings a tangent, of which fused kernels know nothing.
    """
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def no_autocast(x: Tensor) -> Any:
    """Computes in the dtype that its numbers have. A network that is proved in one dtype runs in no other; and a
    backward pass that is asked for inside of autocast recomputes what the forward pass computed without.
    """
    device = x.device.type
    on = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    return torch.autocast(device, enabled=False) if on else nullcontext()
