"""``docs/experiments.md``, made from records and nothing else: no figure without a record behind it, and it says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thereexists.core.authors_word import WORDS
from thereexists.core.plain_text import visible
from thereexists.experiments import paper
from thereexists.experiments.files import write_atomically
from thereexists.experiments.names import as_code, in_markdown
from thereexists.experiments.results import Record, Row, rows, slugs, table_of
from thereexists.experiments.scaling import law_table
from thereexists.experiments.tables import markdown_table, tables

_INTRO = f"""\
# Experiments: what does a cheaper mixer or a sparser pattern cost?

This page is made by a command that reads records of runs:

    {{command}}

**Nothing was run again for this page.** Every figure that is called ours, and every limit in brackets, is what a record
holds, {WORDS}. The verdicts on the papers' findings follow from these figures and from nothing else. A
record states the settings, data, seed, device and time of its run; one that `thereexists experiment` wrote also has the
SHA-256 of the data and the versions of the packages.

**Our runs are small**: minutes of training where the papers spent days. Our figures are shown beside a paper's to
compare *orders* and *gaps*, never levels. Disagreements with a paper are reported as they are.

<!-- test: never: trains for hours, on corpora that are not part of this repository -->

    thereexists experiment table-a --size mini --seeds 3 --data data/ --out runs/   # or copying, sparsity-nli, lm, mt
    thereexists results runs/

**What ± and yes mean.** A figure is the mean over seeds ± half its 95 % interval (Student's t). A finding of a paper
gets *yes* if every comparison in it comes out the same way over our seeds, *no* if one comes out the other way, and
*unclear* otherwise. This is decided by Welch's t-test, at a level that holds for the finding as a whole (5 %, divided
among its comparisons). With one seed everything is unclear. The verdict is about orders at our budget, not at the
paper's.

To repeat this page on a GPU, in calls of ten minutes, use `benchmarks/experiments_gpu.sh`. The same seed gives the same
data, masks and dropout everywhere. On a CPU it gives the same numbers to the last bit; on a GPU, up to the order in
which its kernels add.
"""

_ABOUT = {
    "table-a": (
        "Alternatives to attention (paper A)",
        "Masked language modelling, then fine-tuning on MNLI; every mixer sees the same tokens in the same order. "
        "`hybrid-c`: the first c blocks are SepConv, the rest attention (c = 0 is `attention`). Masked-LM accuracy is "
        "on held-out articles, 15 % of the tokens masked as in BERT, the same masks for every run; MNLI accuracy is on "
        "dev-matched. The classifier reads the mean of all tokens (`pooling = mean` in the settings of a record), "
        "whereas BERT reads token 0: with b blocks of SepConv and kernel k, token 0 is reached only by the b(k − 1)/2 "
        "tokens after it, 16 at mini size, and for most pairs the second sentence lies beyond that. Attention becomes "
        "useful only after one or two thousand steps: where a run is short, convolution is ahead of it. Size small "
        "(6 blocks of width 512) has the longest runs. Paper: " + paper.TABLE_A_BUDGET + ".",
    ),
    "copying": (
        "Copying (paper B)",
        "The model sees `0 s 0` and as many masks as `s` has symbols, and must write `s` again, at all positions at "
        "once; it is an encoder, because the patterns look both ways. In brackets, as the record of the run states it: "
        "the most that any model with this pattern and depth can reach in expectation, from its receptive field (a "
        "mask that cannot see its source can only guess; a sample of guesses may be a little luckier). A dash is a run "
        "without a record. RANDOM has the sparsity of STRIDED. Paper: " + paper.COPYING_BUDGET + ".",
    ),
    "sparsity-nli": (
        "Sparsity against MNLI (paper B)",
        "Each model is pre-trained and fine-tuned with the same pattern; all heads see the union of its steps. "
        "The number after a pattern is its stride or, for RANDOM, its sparsity; STAR's relay is [CLS]. A masked-LM "
        "accuracy near that of the average mixer in the table above means that a run has not yet begun to use its "
        "attention: at a small budget this table shows how fast a pattern trains at least as much as its cost. Paper: "
        + paper.NLI_BUDGET
        + ".",
    ),
    "lm": (
        "Language modelling (paper B)",
        "Causal language modelling, with each pattern in its causal version (STAR's relay is the first token, which "
        "in a causal model sees only itself: what is left of STAR is nearly a window of two). RANDOM has about the "
        "sparsity of STRIDED. Perplexity is per WordPiece token. Paper: " + paper.LM_BUDGET + ".",
    ),
    "mt": (
        "Translation (paper B)",
        "English to Czech, with an encoder–decoder: the pattern is in the encoder, its causal version in the decoder, "
        "and cross-attention is dense. Greedy decoding; BLEU by sacrebleu. Paper: " + paper.MT_BUDGET + ".",
    ),
}


@dataclass(frozen=True)
class Words:
    """How a text of a record is written: in a sentence, and as the name of a file."""

    text: Callable[[str], str]
    code: Callable[[str], str]


PLAIN = Words(visible, lambda name: f"`{visible(name)}`")
MARKDOWN = Words(in_markdown, as_code)


def write_report(records: list[Record], path: Path, command: str, plots: list[Path]) -> str | None:
    """Write the page; in words what was read and has no section there, if anything."""
    text = _INTRO.format(command=command)
    made = rows(records)
    shown, files = tables(made), slugs(made)
    for experiment, (title, about) in _ABOUT.items():
        mine = [table for table in shown if table.key[0] == experiment]
        if not mine:
            continue
        text += f"\n## {title}\n\n{_wrapped(about)}\n"
        for table in mine:
            text += f"\n### {table.title.partition(', ')[2]}\n\n{table.markdown()}\n\n"
            text += "".join(f"{_wrapped(remark)}\n\n" for remark in table.remarks)
            own = [r for r in records if table_of(r) == table.key]
            text += budget(own, MARKDOWN) + "\n"
            text += _curves(own, [row for row in made if row.table == table.key])
            for plot in plots:
                if plot.name in (f"experiment-{files[table.key]}.png", f"experiment-{files[table.key]}-loss.png"):
                    text += f"\n![{table.title}]({_relative(plot, path)})\n"
    left_out = {record["experiment"] for record in records} - _ABOUT.keys()
    if left_out:
        text += f"\n## Not on this page\n\n{_wrapped(_left_out(left_out, as_code))}\n"
    write_atomically(path, lambda beside: beside.write_text(text, encoding="utf-8"))
    return _left_out(left_out, PLAIN.text) if left_out else None


def _left_out(experiments: set[str], name: Callable[[str], str]) -> str:
    return (
        f"Runs of {', '.join(map(name, sorted(experiments)))} were read too. Only {', '.join(_ABOUT)} have a section "
        "here; `thereexists results` prints the tables of all."
    )


_LAW = (
    "Held-out loss against tokens: over the last decade of each run, loss ∝ tokens^(−b); b is given with its 95 % "
    "interval over seeds or, with one seed, that of the regression. All points of a run share one decaying learning "
    "rate, so b compares mixers under one schedule and does not say what another budget would give. Cost is device "
    "seconds of pre-training at this budget."
)


def _curves(records: list[Record], made: list[Row]) -> str:
    """Nothing where no record holds a curve."""
    beside = {row.run: [f"{row.parameters / 1e6:.1f}M", _cost(row)] for row in made}
    body = law_table(records, beside)
    if not body:
        return ""
    header = ["run", "loss at the end", "b", "parameters", "cost"]
    return f"\n{_wrapped(_LAW)}\n\n{markdown_table(header, body)}\n"


def _cost(row: Row) -> str:
    first = next(iter(row.tokens))
    if not row.tokens_per_second[first]:
        return "–"
    return f"{row.tokens[first] / row.tokens_per_second[first]:,.0f} s" + ("" if row.alone else " †")


def budget(records: list[Record], words: Words = PLAIN) -> str:
    """What was spent on what data, in sentences: the budget of ours that the paper's must be read against.

    ``words``: how texts of records are written, as they are or for a page of Markdown.
    """
    seeds = sorted({record["seed"] for record in records})
    tasks = dict.fromkeys(task for record in records for task in record["stages"])
    lines = [_stage(task, [r["stages"][task] for r in records if task in r["stages"]], words) for task in tasks]
    parallel = sorted({record.get("parallel", 1) for record in records})
    shared = (
        ""
        if parallel == [1]
        else f"; up to {parallel[-1]} runs shared the device (†), so times and speeds are not those of one run alone"
    )
    total = sum(record["seconds"] for record in records)
    lines.append(
        f"Seeds {', '.join(map(str, seeds))}; {len(records)} runs, {total / 60:.1f} minutes of training{shared}."
    )
    return "\n".join(_wrapped(f"*Ours.* {line}" if i == 0 else line) for i, line in enumerate(lines))


def _stage(task: str, stages: list[dict[str, Any]], words: Words) -> str:
    names = {"mlm": "Masked LM", "nli": "MNLI", "copy": "Copying", "lm": "Language modelling", "mt": "Translation"}
    tokens, seconds = (sorted(stage[name] for stage in stages) for name in ("tokens_seen", "seconds"))
    asked = [stage["settings"] for stage in stages]
    precisions = [stage.get("precision", settings["precision"]) for stage, settings in zip(stages, asked, strict=True)]
    seen = _range([t / 1e6 for t in tokens], "{:.3g}") + "M tokens"
    batch, length, rate = (_range([s[name] for s in asked], "{:g}") for name in ("batch", "length", "lr"))
    return (
        f"{names[task]}: {_each([_data(task, stage['data'], words) for stage in stages])}; {seen} in "
        f"{_range([s['steps'] for s in stages], '{:,}')} steps of {batch} sequences of {length} tokens, peak rate "
        f"{rate}, {_range(seconds, '{:.0f}')} s per run on {_each([words.text(stage['device']) for stage in stages])}, "
        f"{_each([words.text(precision) for precision in precisions])}."
    )


def _each(texts: list[str]) -> str:
    """What is said of all runs, or every different thing that is said of some."""
    return " or ".join(dict.fromkeys(texts))


def _data(task: str, data: dict[str, Any], words: Words) -> str:
    if task in ("mlm", "lm"):
        corpus, valid = data["corpus"], data["valid"]
        return (
            f"{words.code(corpus['name'])} ({corpus['tokens'] / 1e6:.1f}M tokens, vocabulary "
            f"{data['tokenizer']['vocabulary']:,}), held out {words.code(valid['name'])} ({valid['tokens'] / 1e6:.2f}M)"
        )
    if task == "nli":
        of = " of MNLI's 392,702" if len(data["labels"]) == 3 else ""
        name, pairs = words.code(data["train"]["name"]), data["train"]["examples"]
        return f"{name} ({pairs:,} pairs{of}), dev {data['dev']['examples']:,}"
    if task == "copy":
        return f"generated, {data['symbols']} symbols"
    names = ", ".join(words.code(source["name"]) for source in data["train"])
    return f"{names} ({data['pairs']:,} pairs that fit, {data['pairs_left_out']:,} longer ones left out)"


def _range(values: list[float], form: str) -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low}–{high}"


def _relative(plot: Path, page: Path) -> str:
    import os

    return Path(os.path.relpath(plot, page.parent)).as_posix()


def _wrapped(text: str) -> str:
    import textwrap

    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)
