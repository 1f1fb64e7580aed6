"""Tracr on the same four programs, for the table in docs/programs.md: size, build time, right answers.

Needs Tracr (github.com/google-deepmind/tracr, archived) with jax, dm-haiku and chex in an environment of its own:

python benchmarks/programs_tracr.py [reverse:10 sort:20 ...]

Tokens are five values, every input has the full length, and an answer is right if every token's is.
"""

from __future__ import annotations

import random
import sys
import time

INPUTS, VALUES = 60, (1, 2, 3, 4, 5)


def programs(n: int) -> dict:
    from tracr.compiler import lib  # pyright: ignore[reportMissingImports]
    from tracr.rasp import rasp  # pyright: ignore[reportMissingImports]

    def fractions(s: list[int]) -> list[float]:
        return [sum(a == 3 for a in s[: i + 1]) / (i + 1) for i in range(len(s))]

    return {
        "reverse": (lib.make_reverse(rasp.tokens), lambda s: s[::-1]),
        "sort": (lib.make_sort(rasp.tokens, rasp.tokens, max_seq_len=n, min_key=1), sorted),
        "histogram": (lib.make_hist(), lambda s: [s.count(a) for a in s]),
        "fraction of previous": (lib.make_frac_prevs(rasp.tokens == 3), fractions),
    }


def measure(name: str, n: int) -> str:
    import jax  # pyright: ignore[reportMissingImports]
    from tracr.compiler import compiling  # pyright: ignore[reportMissingImports]

    program, reference = programs(n)[name]
    causal = name == "fraction of previous"
    start = time.process_time()
    model = compiling.compile_rasp_to_model(program, set(VALUES), max_seq_len=n, compiler_bos="BOS", causal=causal)
    seconds = time.process_time() - start
    rng, right = random.Random(n), 0
    resolution = 0.5 / (n * (n - 1)) if causal else 0.25
    for _ in range(INPUTS):
        tokens = [rng.choice(VALUES) for _ in range(n)]
        found, wanted = model.apply(["BOS", *tokens]).decoded[1:], reference(tokens)
        right += all(o is not None and abs(float(o) - w) < resolution for o, w in zip(found, wanted, strict=True))
    parameters = sum(leaf.size for leaf in jax.tree_util.tree_leaves(model.params))
    width = model.params["token_embed"]["embeddings"].shape[1]
    return (
        f"| {name} | {n} | {model.model_config.num_layers} | {width} | {model.model_config.num_heads} | "
        f"{parameters:,} | {seconds:.1f} | {right} of {INPUTS} |"
    )


if __name__ == "__main__":
    every = [f"{name}:{n}" for name in ("reverse", "sort", "histogram", "fraction of previous") for n in (5, 10, 20)]
    print(
        "| program | n | blocks | d_model | heads | parameters | build, s | right |\n|---|---|---|---|---|---|---|---|"
    )
    for chosen in sys.argv[1:] or every:
        name, n = chosen.split(":")
        print(measure(name, int(n)), flush=True)
