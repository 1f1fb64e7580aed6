"""Pictures: the study, and an attention map beside its target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thereexists.core.atomic_files import write_beside
from thereexists.core.drawing import drawing, new_figure
from thereexists.core.plain_text import in_full
from thereexists.heads.head import Head

MARKS = {"projection": "o", "corrected": "s", "convex": "^", "moments": "D", "descent": "v", "auto": "*"}


@drawing()
def draw_study(study: Any, path: str | Path) -> None:
    ks = sorted({p.k for p in study.points})
    alone = len({p.method for p in study.points}) == 1  # one method: linear axis, so that a line in log L is a line
    figure = new_figure(figsize=(4.2 * len(ks) + 0.6, 4.2))
    axes = figure.subplots(1, len(ks), sharey=not alone, squeeze=False)
    for axis, k in zip(axes[0], ks, strict=True):
        lengths = sorted({p.length for p in study.points if p.k == k})
        if not alone:
            axis.plot(lengths, [2 * L for L in lengths], color="0.7", linestyle=":", label="trivial 2L")
        for method in dict.fromkeys(p.method for p in study.points):
            mine = sorted((p for p in study.points if p.method == method and p.k == k), key=lambda p: p.length)
            if not mine:
                continue
            (drawn,) = axis.plot(
                [p.length for p in mine],
                [p.hidden_size for p in mine],
                marker=MARKS[method],
                label=method,
                linewidth=1.2,
            )
            line = next((q for q in study.lines if q.method == method and q.k == k), None)
            if line is not None and line.slope is not None and line.slope > 0:
                x = np.array([p.length for p in mine if not p.trivial])
                fitted = line.intercept + line.slope * np.log(x)
                label = f"  fit: {line.slope:.1f}·log L" + (f", R² {line.r2:.3f}" if line.r2 is not None else "")
                axis.plot(x, fitted, color=drawn.get_color(), linestyle="--", linewidth=0.9, label=label)
        axis.set_xscale("log", base=2)
        axis.set_yscale("linear") if alone else axis.set_yscale("log", base=2)
        axis.set_title(f"k = {k}")
        axis.set_xlabel("length L")
        axis.grid(True, alpha=0.3)
        axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    axes[0][0].set_ylabel("smallest verified hidden size d")
    s = study.settings
    asked = f"γ = {in_full(s['gamma'])}, ε₁ = {in_full(s['eps1'])}, ε₂ = {in_full(s['eps2'])}"
    figure.suptitle(f"Smallest hidden size, random targets, {asked}")
    _save(figure, path)


@drawing()
def draw_head(head: Head, path: str | Path, window: int = 64) -> None:
    """The target and the attention of the module on ``X``, side by side, on the first ``window`` tokens (log scale).

    Of a head that float64 does not hold, the target alone.
    """
    n = min(window, head.target.length)
    panels = {"target": head.target.to_scipy()[:n, :n].toarray()}
    if head.words is None:
        z = (head.X[:n] @ head.W_Q) @ (head.X @ head.W_K).T
        panels["attention of the fixed head"] = z.softmax(-1)[:, :n].numpy()
    figure = new_figure(figsize=(5 * len(panels), 4.6), layout="constrained")
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    image = None
    for axis, (title, matrix) in zip(axes, panels.items(), strict=True):
        image = axis.imshow(np.log10(np.maximum(matrix, 1e-6)), vmin=-6, vmax=0, cmap="viridis")
        axis.set_title(f"{title}")
        axis.set_xlabel("attended token")
    axes[0].set_ylabel("token")
    figure.colorbar(image, ax=axes, label="log₁₀ of the weight (cut at −6)", shrink=0.85)
    _save(figure, path)


def _save(figure: Any, path: str | Path) -> None:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_beside(path, lambda stream: figure.savefig(stream, format="png", dpi=130, bbox_inches="tight"))
