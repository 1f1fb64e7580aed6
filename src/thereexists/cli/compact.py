"""Tables, data sets and exports: memorise, export, and what build, run, show and verify do with tokens."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any

import typer

from thereexists.authors_word import as_its_author_says
from thereexists.cli import _complete
from thereexists.cli._output import AsJson, console, print_facts, print_json, progress_bar, say
from thereexists.errors import InvalidInput

app = typer.Typer()


@app.command()
def memorise(
    pairs: Annotated[Path, typer.Argument(help='JSON lines {"input": [...], "output": [...]}; strings or integers.')],
    out: Annotated[Path | None, typer.Option(help="Folder to write; PAIRS-witness unless said.")] = None,
    n: Annotated[int | None, typer.Option("--n", help="Positions; the longest sequence unless said.")] = None,
    on_conflict: Annotated[str, typer.Option(help="Contradicting pairs: error, drop, first or last.")] = "error",
    dtype: Annotated[str, typer.Option(help="float64, float32, bfloat16 or float16.")] = "float32",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random codes.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Construct a Transformer that recalls every pair of a data set exactly, without training.

    Example: thereexists memorise pairs.jsonl --out w/
    """
    from thereexists import storage
    from thereexists.memorise import memorise as construct
    from thereexists.pairs import read_jsonl

    out = out or Path(f"{pairs.stem}-witness")
    storage.check_writable(out)
    inputs, outputs, lines = read_jsonl(pairs)
    with progress_bar("memorise", quiet=as_json):
        made = construct(inputs, outputs, n, seed, on_conflict, dtype, lines)
    _finish(made, out, as_json)


@app.command()
def export(
    witness: Annotated[Path, typer.Argument(help="The folder of a compact witness.")],
    to: Annotated[
        str,
        typer.Option("--to", help="onnx, hf or torch.", autocompletion=_complete.names(_complete.FORMATS)),
    ],
    out: Annotated[Path | None, typer.Option(help="Folder to write; WITNESS-FORMAT unless said.")] = None,
    dtype: Annotated[str, typer.Option(help="Of the exported weights; one that is not safe is refused.")] = "float32",
    as_json: AsJson = False,
) -> None:
    """Write a witness in a stock format, run what was written on every cell or pair, and only then say that it is done.

    Example: thereexists export w/ --to onnx
    """
    from thereexists.export import export as write
    from thereexists.witness import load

    out = out or Path(f"{str(witness).rstrip('/')}-{to}")
    with progress_bar("export and compare", quiet=as_json):
        done = write(load(witness), to, out, dtype)
    if as_json:
        print_json(done)
        return
    console().print(
        f"{done['folder']}: {', '.join(done['files'])}; "
        f"{done['compared']:,} {done['of']} compared in {dtype}, all equal",
        markup=False,
    )


def build_table(file: Path, construction: str, more: bool, out: Path | None, as_json: bool) -> None:
    """``build table.csv``."""
    from thereexists import storage
    from thereexists.pairs import read_table
    from thereexists.table import Table
    from thereexists.table import build_table as construct

    if construction != "compact" or more:
        raise InvalidInput(
            "A table is built with --construction compact and no other option: it has its own n, and no grid."
        )
    out = out or Path(f"{file.stem}-witness")
    storage.check_writable(out)
    inputs, outputs, lines = read_table(file)
    _finish(construct(Table(inputs, outputs, lines=lines)), out, as_json)


def _finish(witness: Any, out: Path, as_json: bool) -> None:
    """Check the recall of every pair, save, report."""
    exact = witness.exact()
    if not exact.all():  # cannot happen unless there is a bug here: better no file than a wrong one
        raise InvalidInput(f"Internal error: {int((~exact).sum())} pairs are not recalled; nothing was written.")
    witness.save(out)
    summary = {"witness": str(out), **witness.describe(), "recalled": int(exact.sum())}
    if as_json:
        print_json(summary)
        return
    print_summary(summary)


def print_summary(summary: dict[str, Any]) -> None:
    per_token = summary.get("parameters_per_token")
    conflicts = summary.get("conflicts") or []
    units = summary.get("units")
    lines = {
        "witness": summary.get("witness"),
        "pairs": f"{summary['pairs']:,}" + (f", all {summary['recalled']:,} recalled" if "recalled" in summary else ""),
        "tokens": f"up to {summary['n']} positions, vocabularies of {summary['vocabulary']:,} and "
        f"{summary['output_vocabulary']:,}",
        "network": f"{summary['blocks']} standard blocks, d_model {summary['d_model']}, {summary['parameters']:,} "
        f"parameters in {summary['dtype']}",
        "widths": ", ".join(f"{name} {width:,}" for name, width in summary["widths"].items()),
        "memory units": units and f"{units:,} for {summary['contexts']:,} contexts",
        "per token": per_token
        and f"{per_token:.1f} parameters for each of {summary['memorised_tokens']:,} memorised tokens; known lower "
        f"bound about √(nN) = {summary['lower_bound_up_to_logs']:,.0f} in all, up to logarithms",
        "contradictions": f"{len(conflicts)} inputs, resolved by: {summary.get('on_conflict')}" if conflicts else None,
        "safe in": ", ".join(summary["safe"]),
    }
    stated = set(summary.get("as_its_author_says", ()))
    made_of = {"memory units": "units", "per token": "parameters_per_token", "contradictions": "conflicts"}
    print_facts(
        {
            key: as_its_author_says(value) if made_of.get(key) in stated else value
            for key, value in lines.items()
            if value
        }
    )


def run_tokens(witness: Any, text: str, out: Path | None, as_json: bool) -> None:
    """``run`` of a witness on tokens: words in a string, or a .csv file with one sequence a line."""
    if out is not None:
        raise InvalidInput("--out writes arrays of numbers; a witness on tokens prints its answers.")
    file = Path(text)
    if file.suffix == ".csv":
        from thereexists.pairs import _read

        sequences = [[cell.strip() for cell in row] for row in csv.reader(_read(file).splitlines()) if any(row)]
        if not sequences:
            raise InvalidInput(f"{file} is empty; it must hold one sequence a line.")
    else:
        sequences = [text.replace(",", " ").split() if all_integers(witness) else text.split()]
    if all_integers(witness):
        sequences = [[_integer(word) for word in sequence] for sequence in sequences]
    answers = witness(sequences)
    if as_json:
        print_json({"output": answers})
        return
    for answer in answers:
        say("(nothing stored)" if answer is None else " ".join(map(str, answer)))


def all_integers(witness: Any) -> bool:
    return all(isinstance(token, int) for token in witness.vocabulary.tokens)


def _integer(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise InvalidInput(f"The tokens of this witness are integers; got {word!r} instead.") from None
