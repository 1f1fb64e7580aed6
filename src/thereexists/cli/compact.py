"""Data sets and exports: memorise, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from thereexists.cli import _complete
from thereexists.cli._output import AsJson, console, print_json, progress_bar

app = typer.Typer()


@app.command()
def memorise(
    pairs: Annotated[
        Path,
        typer.Argument(
            help='A .jsonl file, one {"input": [...], "output": [...]} per line; or a .csv file of texts with the '
            "header input,output."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Folder to write; default: PAIRS-witness.")] = None,
    n: Annotated[int | None, typer.Option("--n", help="Positions; default: the longest sequence.")] = None,
    split: Annotated[str | None, typer.Option(help="Split CSV texts into words (the default) or characters.")] = None,
    on_conflict: Annotated[str, typer.Option(help="Contradicting pairs: error, drop, first or last.")] = "error",
    dtype: Annotated[str, typer.Option(help="float64, float32, bfloat16 or float16.")] = "float32",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random codes.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Construct a Transformer that recalls every pair of a data set exactly, without training.

    Examples: thereexists memorise pairs.jsonl --out w/

    thereexists memorise dictionary.csv --split characters --out w/
    """
    from thereexists.cli.kinds.tokens import finish
    from thereexists.constructions.tokens.memorise import memorise as construct
    from thereexists.core import storage
    from thereexists.functions.pairs import read_pairs

    out = out or Path(f"{pairs.stem}-witness")
    with storage.reserved(out):
        inputs, outputs, lines = read_pairs(pairs, split)
        with progress_bar("memorise", quiet=as_json):
            made = construct(inputs, outputs, n, seed, on_conflict, dtype, lines)
        finish(made, out, as_json)


@app.command()
def export(
    witness: Annotated[
        Path, typer.Argument(help="The folder of a compact or an automaton's witness; or a name such as addition:10.")
    ],
    to: Annotated[
        str,
        typer.Option("--to", help="onnx, hf, torch or llama.", autocompletion=_complete.names(_complete.FORMATS)),
    ],
    out: Annotated[
        Path | None, typer.Option(help="New folder, or an unchanged export to replace; default: WITNESS-FORMAT.")
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="The dtype of the exported weights; one that is not safe is refused.")
    ] = "float32",
    layout: Annotated[str, typer.Option(help="The layout of a stock checkpoint: llama, mistral or phi3.")] = "llama",
    as_json: AsJson = False,
) -> None:
    """Write a witness in a stock format; the folder appears only after its weights and answers were compared.

    The export of a table or a data set includes its words, and use.py, which runs it without this package.

    With --to llama an automaton, a causal program, a table or a memorised data set becomes a stock LlamaForCausalLM
    folder, which `thereexists verify` proves; and so do addition:10, reverse:10, recall:16 and ngram:6:text.txt,
    without a witness.

    Examples: thereexists export w/ --to onnx

    thereexists export w/ --to llama --out stock/

    thereexists export addition:10 --to llama --out adder/
    """
    from thereexists.exports import export as write
    from thereexists.exports import export_claim
    from thereexists.witness.load import load

    claim = _named(witness, to)
    out = out or Path(f"{str(witness).rstrip('/') if claim is None else str(witness).partition(':')[0]}-{to}")
    with progress_bar("export and compare", quiet=as_json):
        if claim is None:
            done = write(load(witness), to, out, dtype, layout)
        else:
            done = export_claim(claim, out, dtype, layout=layout)
    if as_json:
        print_json(done)
        return
    found = _FOUND.get(done["format"], "all equal, and so is every weight")
    console().print(
        f"{done['folder']}: {', '.join(done['files'])}; {done['compared']:,} {done['of']} compared in {dtype}, {found}",
        markup=False,
    )


_FOUND = {"llama over reals": "all within the bound that is proved"}  # by the format that was written


def _named(given: Path, to: str) -> Any:
    """``addition:10`` and such in place of a witness; None where a folder is named."""
    if to != "llama" or ":" not in str(given):
        return None
    from thereexists.exports.asked import named

    return named(str(given))
