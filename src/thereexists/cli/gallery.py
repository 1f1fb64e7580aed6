"""gallery: ten stock checkpoints, each by one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thereexists.cli._output import AsJson, console, print_facts, print_json, progress_bar

app = typer.Typer()


@app.command()
def gallery(
    name: Annotated[str | None, typer.Argument(help="A recipe; by default all are listed.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write; default: NAME-llama.")] = None,
    dtype: Annotated[str, typer.Option(help="The dtype of the weights: float32 or bfloat16.")] = "float32",
    sizes: Annotated[bool, typer.Option("--sizes", help="Print layers and parameters, and write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make one of ten stock Llama checkpoints, proved, with its model card.

    Examples: thereexists gallery

    thereexists gallery addition --out adder/

    thereexists gallery a5 --sizes
    """
    from thereexists.exports.gallery import RECIPES, make_recipe, plan_recipe

    if name is None:
        listed = {each: recipe.what for each, recipe in RECIPES.items()}
        print_json(listed) if as_json else print_facts(listed)
        return
    if sizes:
        planned = plan_recipe(name)
        print_json(planned) if as_json else print_facts(planned)
        return
    with progress_bar("make and prove", quiet=as_json):
        done = make_recipe(name, out or Path(f"{name}-llama"), dtype)
    if as_json:
        print_json(done)
        return
    asked, told = RECIPES[name].asked, RECIPES[name].told
    console().print(
        f"{done['folder']}: {', '.join(done['files'])}; proved, and {done['compared']:,} {done['of']} run by "
        f"transformers in {dtype}. Ask it: {asked!r} is followed by {told!r}",
        markup=False,
    )
