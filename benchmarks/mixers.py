"""Tokens a second and peak memory of every mixer beside Hugging Face's BERT, on one device, in one run.

PYTHONPATH=src python benchmarks/mixers.py --device cuda --seconds 120 --out docs/data/mixers-throughput.json
PYTHONPATH=src python benchmarks/mixers.py --device cpu --size tiny --batch 8 --vocabulary 1000 --seconds 20

check        before anything is timed: every mixer in float32 on the device against float64 on the CPU, gradients too
train        forward, backward, AdamW; masked language modelling with 15 % labels; autocast to --dtype, float32 weights
inference    the encoder alone, weights in --dtype
convolution  gate and depth-wise convolution, forward and backward: stock conv1d in channels-first layout against ours

Repetitions are interleaved: every round times every model once, and ratios are taken within a round, then their median.
``hf-bert`` is ``BertForMaskedLM`` with fused attention (sdpa). It computes logits at all positions; ``attention-all``
is the attention mixer doing the same work, the other rows compute them at labelled positions only.
One JSON line for each figure on stdout, a table on stderr.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

MODELS = ("hf-bert", "attention-all", "attention", "average", "bproj", "sepconv", "hybrid", "sparse")


@dataclass
class Timed:
    """One thing that is timed: what one step does, and its seconds a step, one entry a round."""

    phase: str
    name: str
    step: Callable[[], Any]
    tokens: int
    bytes_held: Callable[[], int] = lambda: 0
    seconds: list[float] = field(default_factory=list)
    peak_bytes: int | None = None


def main() -> None:
    args = arguments()
    torch.manual_seed(args.seed)
    if args.device == "cpu":
        torch.set_num_threads(1)
    started = time.perf_counter()
    rows, checks = [], []
    if "check" in args.phases:
        args.phases.remove("check")
        checks = check(args)
    torch.set_float32_matmul_precision("high")
    share = args.seconds / max(len(args.phases), 1)
    for number, phase in enumerate(args.phases, 1):
        timed = {"train": training, "inference": inference, "convolution": convolution}[phase](args)
        warm_up(timed, args)
        rounds(timed, args, until=started + number * share)
        rows += report(timed, args)
        del timed
    table(rows)
    if args.out:
        write(Path(args.out), {"command": " ".join(sys.argv), "machine": machine(args), "checks": checks, "rows": rows})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--size", default="base")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, default=30522)
    parser.add_argument("--dtype", default=None, help="bfloat16 on a GPU, float32 on a CPU, unless given")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--phases", default="check,train,inference,convolution")
    parser.add_argument("--steps", type=int, default=3, help="steps of a model in one round")
    parser.add_argument("--rounds", type=int, default=9, help="at most so many rounds")
    parser.add_argument("--seconds", type=float, default=120.0, help="no new round after this, shared by the phases")
    parser.add_argument("--compile", action="store_true", help="torch.compile every model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default=None)
    args = parser.parse_args()
    args.models, args.phases = args.models.split(","), args.phases.split(",")
    args.dtype = getattr(torch, args.dtype or ("bfloat16" if args.device == "cuda" else "float32"))
    return args


# ---- what is timed ------------------------------------------------------------------------------------------------


def build(name: str, args: argparse.Namespace) -> nn.Module:
    from transformers.models.bert.configuration_bert import BertConfig
    from transformers.models.bert.modeling_bert import BertForMaskedLM

    from thereexists.mixers import SIZES, MixerForMaskedLM, mixer_config

    length = max(args.length, 512) if name == "hf-bert" else args.length
    with torch.device(args.device):
        if name == "hf-bert":
            sizes = {"vocab_size": args.vocabulary, "max_position_embeddings": length, **SIZES[args.size]}
            return BertForMaskedLM(BertConfig(**{**sizes, "attn_implementation": "sdpa"}))
        mixer = name.removesuffix("-all")
        choice = {"sparse": {"pattern": "strided"}, "hybrid": {"hybrid_blocks": 3 if args.size == "base" else 1}}
        config = mixer_config(
            args.size,
            mixer,
            vocab_size=args.vocabulary,
            max_position_embeddings=args.length,
            sparse_prediction=not name.endswith("-all"),
            **choice.get(mixer, {}),
        )
        return MixerForMaskedLM(config)


def training(args: argparse.Namespace) -> list[Timed]:
    ids, labels = data(args)
    return [train_one(name, args, ids, labels) for name in args.models]


def train_one(name: str, args: argparse.Namespace, ids: Tensor, labels: Tensor) -> Timed:
    model = build(name, args).train()
    run = torch.compile(model) if args.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=args.device == "cuda")

    def step() -> None:
        with torch.autocast(args.device, args.dtype, enabled=args.dtype != torch.float32):
            loss = run(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def held() -> int:
        states = [t for state in optimizer.state.values() for t in state.values() if isinstance(t, Tensor)]
        return sum(t.numel() * t.element_size() for t in [*model.parameters(), *states])

    return Timed("train", name, step, ids.numel(), held)


def inference(args: argparse.Namespace) -> list[Timed]:
    ids, _ = data(args)
    return [infer_one(name, args, ids) for name in args.models if name != "attention-all"]


def infer_one(name: str, args: argparse.Namespace, ids: Tensor) -> Timed:
    whole = build(name, args)
    model: Any = copy.deepcopy(whole.bert if name == "hf-bert" else whole.model)
    model = model.to(args.dtype).eval()
    run = torch.compile(model) if args.compile else model

    def step() -> None:
        with torch.inference_mode():
            run(input_ids=ids)

    return Timed(
        "inference", name, step, ids.numel(), lambda: sum(p.numel() * p.element_size() for p in model.parameters())
    )


def convolution(args: argparse.Namespace) -> list[Timed]:
    from torch.nn.functional import conv1d

    from thereexists.mixers import SIZES
    from thereexists.mixers.convolution import gated_convolution

    d, k = SIZES[args.size]["hidden_size"], 9
    ug = torch.randn(args.batch, args.length, 2 * d, device=args.device, dtype=args.dtype, requires_grad=True)
    weight = torch.randn(k, d, device=args.device, requires_grad=True)
    dy = torch.randn(args.batch, args.length, d, device=args.device, dtype=args.dtype)

    def ours() -> None:
        gated_convolution(ug, weight, k // 2).backward(dy)
        ug.grad = weight.grad = None

    def stock() -> None:
        u, g = ug.chunk(2, dim=-1)
        a = (u * torch.sigmoid(g)).transpose(1, 2)
        kernel = weight.T[:, None].to(a.dtype)
        conv1d(a, kernel, padding=k // 2, groups=d).transpose(1, 2).backward(dy)
        ug.grad = weight.grad = None

    tokens = args.batch * args.length
    return [Timed("convolution", "stock-conv1d", stock, tokens), Timed("convolution", "ours", ours, tokens)]


def data(args: argparse.Namespace) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(args.seed)
    ids = torch.randint(5, args.vocabulary, (args.batch, args.length), generator=generator)
    labels = torch.where(torch.rand(ids.shape, generator=generator) < 0.15, ids, -100)
    return ids.to(args.device), labels.to(args.device)


# ---- is it right? -------------------------------------------------------------------------------------------------


def check(args: argparse.Namespace) -> list[dict]:
    """Loss and gradients of a small masked language model, padding included: device in float32, CPU in float64."""
    torch.set_float32_matmul_precision("highest")
    small = argparse.Namespace(**{**vars(args), "size": "tiny", "vocabulary": 200, "length": 48, "batch": 4})
    ids, labels = (tensor.cpu() for tensor in data(small))
    real = torch.ones_like(ids)
    real[0, 30:] = real[1, 7:] = 0
    rows = []
    for name in args.models:
        model = build(name, small).eval()
        reference: Any = copy.deepcopy(model).cpu()
        reference = reference.double()
        sizes = []
        for one, device in ((model, args.device), (reference, "cpu")):
            loss = one(input_ids=ids.to(device), attention_mask=real.to(device), labels=labels.to(device)).loss
            loss.backward()
            sizes.append((loss.item(), [p.grad.double().cpu() for p in one.parameters() if p.grad is not None]))
        (loss, gradients), (true_loss, true) = sizes
        errors = [float((a - b).norm() / (1e-6 + b.norm())) for a, b in zip(gradients, true, strict=True)]
        row = {
            "phase": "check",
            "model": name,
            "loss_error": abs(loss - true_loss),
            "largest_relative_gradient_error": max(errors),
            # float32 carries 24 bits; sums of up to 512 terms, some hundred of them in a row, forward and back
            "right": abs(loss - true_loss) < 1e-4 and max(errors) < 1e-2,
        }
        print(json.dumps(row), flush=True)
        rows.append(row)
    return rows + [check_convolution(args, dtype) for dtype in dict.fromkeys((torch.float32, args.dtype))]


def check_convolution(args: argparse.Namespace, dtype: torch.dtype) -> dict:
    """Output and both gradients with padding; the reference reads the same, rounded, inputs in float64 on the CPU."""
    from thereexists.mixers.convolution import gated_convolution

    generator = torch.Generator().manual_seed(args.seed)
    ug, dy = (torch.randn(3, 77, width, generator=generator).to(dtype) for width in (2 * 200, 200))
    weight = torch.randn(9, 200, generator=generator)
    real = torch.rand(3, 77, generator=generator) < 0.7
    results = []
    for device, kind in ((args.device, dtype), ("cpu", torch.float64)):
        x, w = (
            ug.to(device, kind).requires_grad_(),
            weight.to(device, max(kind, torch.float32, key=lambda t: t.itemsize)),
        )
        w.requires_grad_()
        y = gated_convolution(x, w, 4, real.to(device))
        results.append([t.detach().double().cpu() for t in (y, *torch.autograd.grad(y, (x, w), dy.to(device, kind)))])
    errors = [float((a - b).norm() / b.norm()) for a, b in zip(*results, strict=True)]
    # each output is rounded once to dtype after sums in float32; without our kernels every one of nine steps is
    row = {
        "phase": "check",
        "model": f"convolution-{str(dtype).removeprefix('torch.')}",
        "relative_errors": errors,
        "right": max(errors) <= 9 * torch.finfo(dtype).eps,
    }
    print(json.dumps(row), flush=True)
    return row


# ---- timing -------------------------------------------------------------------------------------------------------


def warm_up(timed: list[Timed], args: argparse.Namespace) -> None:
    """Compiles kernels, makes the optimizer's state, and measures the peak: what the model holds plus what it adds."""
    for one in timed:
        one.step()
        if args.device == "cuda":
            torch.cuda.synchronize()
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            one.step()
            torch.cuda.synchronize()
            one.peak_bytes = torch.cuda.max_memory_allocated() - before + one.bytes_held()


def rounds(timed: list[Timed], args: argparse.Namespace, until: float) -> None:
    for done in range(args.rounds):
        if done and time.perf_counter() > until:
            return
        for one in timed:
            synchronize(args)
            start = time.perf_counter()
            for _ in range(args.steps):
                one.step()
            synchronize(args)
            one.seconds.append((time.perf_counter() - start) / args.steps)


def synchronize(args: argparse.Namespace) -> None:
    if args.device == "cuda":
        torch.cuda.synchronize()


# ---- saying it ----------------------------------------------------------------------------------------------------


def report(timed: list[Timed], args: argparse.Namespace) -> list[dict]:
    by_name = {one.name: one for one in timed}
    rows = []
    for one in timed:
        row = {
            "phase": one.phase,
            "model": one.name,
            "tokens_per_second": round(one.tokens / statistics.median(one.seconds)),
            "milliseconds": round(1e3 * statistics.median(one.seconds), 3),
            "fastest_milliseconds": round(1e3 * min(one.seconds), 3),
            "peak_memory_gib": None if one.peak_bytes is None else round(one.peak_bytes / 2**30, 2),
            "rounds": len(one.seconds),
            "steps": args.steps,
        }
        for other in ("hf-bert", "attention", "stock-conv1d"):
            if other in by_name:
                row[f"speed_over_{other}"] = round(speed_ratio(one, by_name[other]), 3)
        print(json.dumps({**row, "size": args.size, "batch": args.batch, "length": args.length}), flush=True)
        rows.append(row)
    return rows


def speed_ratio(one: Timed, other: Timed) -> float:
    """How many times faster ``one`` is: the median over rounds of the ratio within a round."""
    return statistics.median(b / a for a, b in zip(one.seconds, other.seconds, strict=True))


def table(rows: list[dict]) -> None:
    print(
        f"{'phase':<12}{'model':<15}{'tokens/s':>12}{'ms':>10}{'GiB':>8}{'x hf-bert':>11}{'x attention':>13}",
        file=sys.stderr,
    )
    for row in rows:
        cells = [
            row.get("speed_over_hf-bert", row.get("speed_over_stock-conv1d", "")),
            row.get("speed_over_attention", ""),
        ]
        memory = "" if row["peak_memory_gib"] is None else row["peak_memory_gib"]
        print(
            f"{row['phase']:<12}{row['model']:<15}{row['tokens_per_second']:>12,}{row['milliseconds']:>10}{memory:>8}"
            f"{cells[0]:>11}{cells[1]:>13}",
            file=sys.stderr,
        )


def machine(args: argparse.Namespace) -> dict:
    name = torch.cuda.get_device_name() if args.device == "cuda" else "CPU, one thread"
    return {
        "device": name,
        "torch": torch.__version__,
        "transformers": version("transformers"),
        "dtype": str(args.dtype).removeprefix("torch."),
        "size": args.size,
        "batch": args.batch,
        "length": args.length,
        "vocabulary": args.vocabulary,
        "compile": args.compile,
        "seed": args.seed,
    }


def write(path: Path, content: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


if __name__ == "__main__":
    main()
