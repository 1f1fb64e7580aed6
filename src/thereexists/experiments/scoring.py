"""BLEU by ``sacrebleu``, at once or later: training machines need not have it, so results may carry hypotheses."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from thereexists.core.errors import InvalidInput
from thereexists.experiments.corpus import read_lines


def sacrebleu_is_here() -> bool:
    return find_spec("sacrebleu") is not None


def bleu(hypotheses: list[str], references: list[str]) -> dict[str, Any]:
    """The score of a corpus (0 to 100) and sacrebleu's signature, which says how it was computed."""
    if not sacrebleu_is_here():
        raise InvalidInput("BLEU needs the package sacrebleu: pip install 'thereexists[train]'.")
    from sacrebleu.metrics.bleu import BLEU

    if len(hypotheses) != len(references):
        raise InvalidInput(f"There are {len(hypotheses)} hypotheses for {len(references)} references.")
    metric = BLEU()
    score = metric.corpus_score(hypotheses, [references])
    return {"score": score.score, "signature": str(metric.get_signature()), "sentences": len(hypotheses)}


def score_result(result: Mapping[str, Any], references: Mapping[str, Path]) -> dict[str, Any]:
    """A result with the BLEU scores of the hypotheses it carries."""
    scores = dict(result["metrics"].get("bleu", {}))
    for name, hypotheses in result.get("hypotheses", {}).items():
        if name in references:
            scores[name] = bleu(hypotheses, read_lines(references[name]))
    return {**result, "metrics": {**result["metrics"], "bleu": scores}}
