"""What shell completion offers for names. Written out, so that completing imports nothing heavy; a test compares."""

from __future__ import annotations

from collections.abc import Callable

TARGETS = (
    "distance-to-mean",
    "distance-to-max",
    "softmax-attention",
    "deep-sets",
    "token-sine",
    "soft-rank",
    "nearest-neighbour",
    "sort",
    "reverse",
    "cumulative-mean",
    "moving-average",
    "shift",
    "copy-first",
    "convolution",
    "running-max",
)
PATTERNS = (
    "dense",
    "window",
    "dilated",
    "block_local",
    "strided",
    "fixed",
    "star",
    "longformer",
    "bigbird",
    "logsparse",
    "axial",
    "butterfly",
    "alternating",
    "sink_window",
    "prefix_lm",
    "documents",
    "neighbourhood",
    "random",
)
MIXERS = ("attention", "average", "bproj", "sepconv", "sparse", "hybrid")
METHODS = ("auto", "projection", "corrected", "moments", "convex", "descent")
ENGINES = ("auto", "reference", "fused", "skip")
CONSTRUCTIONS = ("faithful", "compact", "doubling", "counting")
FORMATS = ("onnx", "hf", "torch", "llama")
SIZES = ("tiny", "mini", "base")
EXPERIMENTS = ("table-a", "copying", "sparsity-nli", "lm", "mt")


def names(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    """A completion for one of the names; files are left to the shell."""

    def matching(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return matching
