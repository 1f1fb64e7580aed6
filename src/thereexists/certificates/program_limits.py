"""How much work a saved program may ask for: less than its bytes justify, and never more than a stated maximum.

A file of a kilobyte can name a program whose quantities would fill a machine. So, before any of them is written down,
the numbers that are *there* (the weights, and the settings of the operations) give an allowance, and what the program
needs at the very least is compared with it. While the verifier works it counts what it writes, in numbers of at most 64
bits, and stops at the allowance: no program can need more than it was given, however it is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from thereexists.certificates.program_forms import Allowance
from thereexists.certificates.program_settings import check_settings
from thereexists.core.errors import BadWitnessFile, NotProved
from thereexists.model import EmbeddedTransformer

MOST_TOKENS = 4096  # the logits of one head are n² numbers, and a handful of such tables is needed at a time
MOST_LOGITS = 1 << 26  # of all heads of one block: they are in memory together when the network is run
MOST_PRODUCTS = 1 << 36  # of queries and keys, in all blocks together
PRODUCTS_PER_NUMBER = 1 << 18  # for every number that is there
MOST_WORK = 1 << 25  # numbers written, all in all: about a minute
PER_NUMBER = 1 << 8  # for every number that is there
REPEATED = 64
LEAST = 1 << 18  # what any file may ask for
UNUSED = 1 << 16  # quantities that no row of the network need have: they may cancel, or never be read


def allowance(program: dict[str, Any], network: EmbeddedTransformer) -> Allowance:
    """How much may be written; refuses what needs more, or is no program for this network at all.

    A quantity that bends is written by a row of a feed-forward half, at every token, and a bend by a unit of it: the
    network limits both (an operation that a program states several times is computed once, hence ``REPEATED``). But a
    network need not compute what its output does not depend on (sort(x) in sort(x) − sort(x)), so
    the first ``UNUSED`` are free: the numbers that they are written with are counted anyway.
    """
    check_program(program)
    n = program["n"]
    lengths = n // 3 + 1 if _shorter(program) else 1  # 1² + 2² + … + n² ≥ n³/3: what all lengths cost at least
    if network.E is None or network.W_in is None or len(network.E) != n:  # before any work of that size
        raise NotProved(f"The network is not one for {n} tokens.")
    features = [node["d"] for node in program["nodes"] if node["operation"] == "tokens"]
    if any(d not in (network.W_in.shape[1], network.W_in.shape[1] - 1) for d in features):
        raise NotProved(f"The network reads {network.W_in.shape[1]} features; the program has {features[0]}.")
    _check_shapes(network)
    heads = max(network.shape()["h"], 1)
    if n > MOST_TOKENS or n * n * heads > MOST_LOGITS:
        raise NotProved(
            f"This network has {n:,} tokens and {heads} heads; programs are verified up to {MOST_TOKENS:,} tokens and "
            f"{MOST_LOGITS:,} logits in a block."
        )
    there = sum(w.numel() for w in network.parameters()) + sum(_numbers(node) for node in program["nodes"])
    blocks = [stage.attention.W_Q.shape for stage in network.stages.values() if stage.attention is not None]
    products, most = sum(h * m for _, h, m, _ in blocks) * n * n, min(MOST_PRODUCTS, PRODUCTS_PER_NUMBER * there)
    if products > most:
        raise NotProved(f"The heads have {products:,} products; the {there:,} numbers of these files allow {most:,}.")
    allowed = min(MOST_WORK, max(LEAST, PER_NUMBER * there * lengths))
    halves = [stage.feed_forward for stage in network.stages.values() if stage.feed_forward is not None]
    rows = sum(int((half.W_2 != 0).any(dim=-1).sum()) for half in halves)
    units = sum(int((half.W_2 != 0).sum()) for half in halves)
    names = max(n * rows, UNUSED)
    for node in program["nodes"]:
        if node["operation"] == "sort" and node["d"] * _sorting(n) > names:
            raise NotProved(f"'sort' of {n:,} tokens has more rounds than the network has rows that could do them.")
        least = lengths * max(node["d"], 1) * AT_LEAST.get(node["operation"], _linear)(n)
        if least > allowed:
            raise NotProved(
                f"'{node['operation']}' of {n:,} tokens has at least {least:,} quantities to be verified; the "
                f"{there:,} numbers of these files allow {allowed:,}."
            )
    least = lengths * sum(n * node["d"] for node in program["nodes"])
    if least > allowed:
        raise NotProved(
            f"The {len(program['nodes']):,} operations have {least:,} values; the {there:,} numbers of these files "
            f"allow {allowed:,}."
        )
    return Allowance(allowed, names, max(REPEATED * n * (units + 1), UNUSED))


def _linear(n: int) -> int:
    return n


def _sorting(n: int) -> int:
    rounds = (n - 1).bit_length()
    return (n // 2) * rounds * (rounds + 1) // 2  # pairs


AT_LEAST: dict[str, Callable[[int], int]] = {
    "sort": _sorting,
    "rank": lambda n: n * n,
    "argsort": lambda n: 2 * n * n,
    "attend": lambda n: n * n,
    "prefix_mean": lambda n: n * n // 2,
    "max": lambda n: n * (n - 1).bit_length(),
    "min": lambda n: n * (n - 1).bit_length(),
}


def check_program(program: Any) -> None:
    """Whether plain data has the form of a program: the parts, their types, who reads whom, and the settings."""
    if not isinstance(program, dict) or type(program.get("n")) is not int or program["n"] < 1:
        raise BadWitnessFile("The saved program does not state its number of tokens, a whole number of at least 1.")
    nodes = program.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        raise BadWitnessFile("The saved program has no operations.")
    for number, node in enumerate(nodes):
        if not isinstance(node, dict) or not isinstance(node.get("operation"), str):
            raise BadWitnessFile(f"Operation {number} of the saved program has no name.")
        name, arguments = node["operation"][:40], node.get("arguments")
        if not isinstance(arguments, list) or any(type(a) is not int or not 0 <= a < number for a in arguments):
            raise BadWitnessFile(f"'{name}' reads a value that does not stand before it.")
        if type(node.get("d")) is not int or node["d"] < 1 or not isinstance(node.get("settings"), dict):
            raise BadWitnessFile(f"'{name}' states neither how many features it has nor its settings.")
        _check_settings(name, node["settings"])
        if name == "tokens" and (type(node["settings"].get("d")) is not int or node["settings"]["d"] != node["d"]):
            raise BadWitnessFile("'tokens' states two numbers of features.")
    check_settings(program)


def _check_settings(name: str, settings: dict[str, Any]) -> None:
    """Numbers, words, and lists of at most two dimensions of finite numbers, all rows equally long."""
    for key, setting in settings.items():
        rows = setting if isinstance(setting, list) else [setting]
        nested = [row for row in rows if isinstance(row, list)]
        if nested and (len(nested) != len(rows) or len({len(row) for row in nested}) != 1):
            raise BadWitnessFile(f"The setting '{key[:40]}' of '{name}' is not an array.")
        if not all(_is_plain(part) for row in rows for part in (row if isinstance(row, list) else [row])):
            raise BadWitnessFile(f"The setting '{key[:40]}' of '{name}' holds something that is not a finite number.")


def _is_plain(part: Any) -> bool:
    if isinstance(part, str | bool) or part is None:
        return True
    return isinstance(part, int | float) and abs(part) < 2.0**1000 and math.isfinite(part)


def _check_shapes(network: EmbeddedTransformer) -> None:
    """Every part works on the rows of the embedding, and every stage is one block."""
    rows = network.W_in.shape[0]  # pyright: ignore[reportOptionalMemberAccess]
    if network.E.shape[1] != rows or network.W_out.shape[1] != rows:  # pyright: ignore[reportOptionalMemberAccess]
        raise NotProved(f"The embedding writes {rows} rows, and the network reads another number of them.")
    for name, stage in network.stages.items():
        if stage.depth != 1:
            raise NotProved(f"{name}: a stage of a program is one block; this one has {stage.depth}.")
        parts = [stage.attention.W_Q] if stage.attention is not None else []
        parts += [stage.feed_forward.W_1] if stage.feed_forward is not None else []
        if any(part.shape[-1] != rows for part in parts):
            raise NotProved(f"{name} does not work on the {rows} rows of the embedding.")


def _shorter(program: dict[str, Any]) -> bool:
    return any(node["operation"] == "tokens" and bool(node["settings"].get("shorter")) for node in program["nodes"])


def _numbers(node: dict[str, Any]) -> int:
    """Numbers that an operation's settings hold."""
    found = 1
    for setting in node["settings"].values():
        rows = setting if isinstance(setting, list) else [setting]
        found += sum(len(row) if isinstance(row, list) else 1 for row in rows)
    return found
