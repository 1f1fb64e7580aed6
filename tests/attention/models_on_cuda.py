"""A script for a GPU, in a process of its own: models with windows, sinks and caps against their eager attention.

    python -m tests.attention.models_on_cuda

One JSON line for each model: how far logits and gradients are apart, of their bounds, and whether ``generate`` gives
the same tokens. Float32, where products are not rounded to TF32.
"""

import json

import torch

from tests.attention.windowed_models import DECODERS, MODELS, bound, windowed

KINDS = ["mistral", "gemma2", "gemma3", "gemma4", "gpt_oss", "qwen3", "modernbert", "llama4"]
TOKENS = torch.randint(3, 50, (2, 60), generator=torch.Generator().manual_seed(1)).cuda()
LEFT = torch.ones_like(TOKENS)
LEFT[0, :3] = 0


def compare(kind, mask):
    models = [model.cuda() for model in windowed(kind)]
    real = torch.ones_like(TOKENS).bool() if mask is None else mask.bool()
    logits = [model(TOKENS, attention_mask=mask).logits[real] for model in models]
    allowed = bound(logits[1])
    apart = (logits[0] - logits[1]).abs().max().item() / allowed
    grads = [
        torch.autograd.grad(x.square().mean(), list(model.parameters()), allow_unused=True)
        for x, model in zip(logits, models, strict=True)
    ]
    worst, alike = 0.0, True
    for a, b in zip(*grads, strict=True):
        alike &= (a is None) == (b is None)
        if a is not None and b is not None:
            worst = max(worst, (a - b).abs().max().item() / (allowed * max(1.0, b.abs().max().item())))
    tokens = None
    if kind in DECODERS:
        how = {"max_new_tokens": 4, "do_sample": False, "disable_compile": True, "attention_mask": mask}
        mine, theirs = (model.generate(TOKENS[:, :50], **how | _prompt(mask)) for model in models)
        tokens = torch.equal(mine, theirs)
    print(json.dumps({
        "model": kind, "padded": mask is not None, "logits": apart, "gradients": worst, "alike": alike, "tokens": tokens
    }), flush=True)  # fmt: skip


def _prompt(mask):
    return {"attention_mask": None if mask is None else mask[:, :50]}


if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = False
    assert set(KINDS) <= set(MODELS)
    for kind in KINDS:
        for mask in (None, LEFT):
            compare(kind, mask)
