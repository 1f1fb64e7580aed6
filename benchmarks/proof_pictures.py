"""Draw the pictures of docs/proof.md from a network that was built: python benchmarks/proof_pictures.py docs/img.

Nothing is drawn from a formula. The network is ``build sort --n 3 --delta 1/8``; what the curves and dots show is what
its layers do to a sequence, read off after every layer.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch

import thereexists as te

matplotlib.use("Agg")
import matplotlib.pyplot as plt

X = np.array([0.7, 0.1, 0.4])
COLOURS = ("#00796b", "#d84315", "#3949ab")
STYLE: Any = {
    "svg.hashsalt": "thereexists",  # the same file every time
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    target = te.targets.builtin("sort", n=3)
    witness = te.build(target, delta=1 / 8)
    states = layer_by_layer(witness, X.reshape(1, 3, 1))
    with plt.rc_context(STYLE):
        for name, draw in PICTURES.items():
            figure: Any = draw(witness, target, states)
            figure.savefig(folder / f"proof-{name}.svg", metadata={"Date": None}, bbox_inches="tight")
            plt.close(figure)
            print(folder / f"proof-{name}.svg")


def layer_by_layer(witness: Any, x: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """(stage, state (batch, n)) after every layer, the encoded input first."""
    with torch.no_grad():
        Z = torch.from_numpy(x) + witness.network.E
        found = [("encode", Z[..., 0].numpy())]
        for stage, _, layer in witness.network.layers():
            Z = layer(Z)
            found.append((stage, Z[..., 0].numpy()))
    return found


def of_stage(states: list[tuple[str, np.ndarray]], stage: str) -> np.ndarray:
    """The states before and after every layer of one stage: (layers + 1, batch, n)."""
    first = next(i for i, (name, _) in enumerate(states) if name == stage)
    return np.stack([states[first - 1][1], *(state for name, state in states if name == stage)])


def quantiser(witness: Any, target: Any, states: Any) -> Any:
    """What the quantising stage makes of a first token that moves through [0, 1]; and one edge, enlarged."""
    figure, axes = plt.subplots(1, 2, figsize=(7, 2.4), width_ratios=(3, 2))
    edge, ramp = 0.5, float(witness.grid.ramp[0])
    for axis, t in zip(axes, (np.linspace(0, 1, 2001), edge + ramp * np.linspace(-3, 1.5, 901)), strict=True):
        x = np.column_stack([t, np.full_like(t, 0.1), np.full_like(t, 0.4)])[..., None]
        axis.plot(t, of_stage(layer_by_layer(witness, x), "quantise")[-1][:, 0], color=COLOURS[0])
    axes[0].plot([0, 1], [0, 1], color="0.8", zorder=0)
    axes[0].set(xlabel="first token", ylabel="after 24 layers", xticks=np.arange(9) / 8, xticklabels=_eighths())
    axes[1].set(xlabel=f"the edge at 1/2, enlarged: ramp of width 2^{np.log2(ramp):.0f}", xticks=[edge - ramp, edge])
    axes[1].set_xticklabels(["½ − η", "½"])
    return figure


def shifts(witness: Any, target: Any, states: Any) -> Any:
    """Ids of the three tokens through the context layers: who moves, when, how far."""
    ids = of_stage(states, "context")[:, 0] / witness.grid.unit  # (layers + 1, n)
    last = len(ids) - 1
    figure, axis = plt.subplots(figsize=(7, 3))
    for j, colour in enumerate(COLOURS):
        axis.step(np.arange(len(ids)), ids[:, j], where="post", color=colour, label=f"token {j}: {X[j]:g}")
        for layer in np.flatnonzero(np.diff(ids[:-1, j])) + 1:
            _note(axis, f"{ids[layer - 1, j]:g} → {ids[layer, j]:,.0f}", (float(layer), ids[layer, j]), colour)
    _note(axis, "then all of them\n+ C · largest", (last - 6.5, ids[last, 0] / 40), "0.3")
    axis.set(yscale="log", xlabel="context layer", ylabel="id", xlim=(0, last + 0.5))
    axis.legend(frameon=False, loc="upper left")
    return figure


def contexts(witness: Any, target: Any, states: Any) -> Any:
    """The id of every token of every cube, taken apart as q = C · context + own: 1,536 dots, no two in one place."""
    cells = np.stack(np.meshgrid(*[np.arange(8)] * 3, indexing="ij"), -1).reshape(-1, 3)
    before, ids = of_stage(layer_by_layer(witness, (cells[..., None] + 0.5) / 8), "context")[-2:] / witness.grid.unit
    C = (ids - before)[0, 0] / before[0].max()
    if len(np.unique(ids)) != ids.size or not np.array_equal(ids % C, before):
        raise RuntimeError("the ids are not a contextual mapping")
    figure, axis = plt.subplots(figsize=(7, 3))
    for j, colour in enumerate(COLOURS):
        axis.plot(ids[:, j] // C, ids[:, j] % C, ".", color=colour, markersize=3, label=f"token {j}")
    axis.set(yscale="log", xlabel="⌊id / C⌋: which of the 512 sequences", ylabel="id mod C: which token of it")
    axis.set_title(f"ids from {ids.min():,.0f} to {ids.max():,.0f}, C = {C:,.0f}", fontsize=9)
    axis.legend(frameon=False, loc="lower right", ncols=3, markerscale=3)
    axis.set_ylim(30, None)
    return figure


def values(witness: Any, target: Any, states: Any) -> Any:
    """The value layers pass from the largest id to the smallest; each of the three tokens is met once."""
    ids = of_stage(states, "value")[:, 0]
    met = [int(np.flatnonzero(np.diff(ids[:, j]))[0]) + 1 for j in range(3)]
    low, high = min(met) - 3, max(met) + 5
    figure, axis = plt.subplots(figsize=(7, 2.6))
    for j, colour in enumerate(COLOURS):
        axis.step(np.arange(low, high + 1), ids[low : high + 1, j], where="post", color=colour, label=f"token {j}")
        _note(axis, f"→ {ids[-1, j]:g}", (met[j], 1e3), colour)
    axis.set(yscale="log", xlabel=f"value layer, {low:,} to {high:,} of {len(ids) - 1:,}", ylabel="what it holds")
    axis.set(xlim=(low, high + 0.2), xticks=range(low, high + 1))
    axis.legend(frameon=False, loc="center left")
    return figure


def _note(axis: Any, text: str, where: tuple[float, float], colour: str) -> None:
    axis.annotate(text, where, xytext=(3, 3), textcoords="offset points", fontsize=7, color=colour)


def result(witness: Any, target: Any, states: Any) -> Any:
    """f and the network while the first token moves through [0, 1]; the other two stay."""
    t = np.linspace(0, 1, 2001)
    x = np.column_stack([t, np.full_like(t, X[1]), np.full_like(t, X[2])])[..., None]
    f, g = target(x)[..., 0], witness(x)[..., 0]
    figure, axes = plt.subplots(1, 2, figsize=(7, 2.6), width_ratios=(3, 2))
    for j, colour in enumerate(COLOURS):
        axes[0].plot(t, f[:, j], color=colour, alpha=0.35, linewidth=3)
        axes[0].plot(t, g[:, j], color=colour, linewidth=1, label=f"output {j}")
        axes[1].plot(t, np.abs(f - g)[:, j], color=colour, linewidth=1)
    axes[0].set(xlabel="first token", ylabel="f (wide) and network (thin)")
    axes[0].legend(frameon=False, fontsize=7)
    axes[1].axhline(1 / 16, color="0.6", linestyle="--")
    axes[1].set(xlabel="first token", ylabel="error; dashed: half a cell", ylim=(0, 0.08))
    figure.tight_layout()
    return figure


def _eighths() -> list[str]:
    return [f"{k}/8" if k % 2 else f"{k // 8 if k % 8 == 0 else k / 8:g}" for k in range(9)]


PICTURES = {"quantise": quantiser, "shifts": shifts, "contexts": contexts, "values": values, "result": result}


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/img"))
