"""``thereexists heads``: fixed attention heads that attend as told, and how small they can be."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from thereexists.cli import _complete
from thereexists.cli._applies import refuse
from thereexists.cli._files import Force, files_to_write
from thereexists.cli._output import AsJson, console, print_json, progress_bar
from thereexists.cli._settings import command
from thereexists.core.errors import InvalidInput
from thereexists.core.plain_text import in_full
from thereexists.core.rounded_figures import rounded_up

app = typer.Typer(help="How small a fixed attention head can reproduce a given sparse pattern?", no_args_is_help=True)

Eps1 = Annotated[float, typer.Option(help="Largest allowed zero/non-zero ratio.")]
Eps2 = Annotated[float, typer.Option(help="Allowed relative error of the non-zero ratios.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random draw; recorded in the result.")]


USED_BY = {  # options that not every method reads
    "factoring": ("projection",),
    "effort": ("auto", "descent"),
    "retries": ("auto", "projection", "corrected", "convex"),
}


@dataclass(frozen=True, kw_only=True)
class HeadOptions:
    """Which head is wanted, and how to look for it: the options of ``te.heads.fit``."""

    method: Annotated[
        str,
        typer.Option(
            help="auto, projection, corrected, moments, convex or descent.",
            autocompletion=_complete.names(_complete.METHODS),
        ),
    ] = "auto"
    eps1: Eps1 = 1e-3
    eps2: Eps2 = 1e-2
    hidden_size: Annotated[
        int | None, typer.Option(help="Fix d; by default the smallest d that works is searched for.")
    ] = None
    dtype: Annotated[
        str, typer.Option(help="Arithmetic the head must survive: bfloat16, float16, float32, float64.")
    ] = "float64"
    factoring: Annotated[str, typer.Option(help="Projection only: signs or svd.")] = "signs"
    effort: Annotated[str, typer.Option(help="quick, thorough or exhaustive: how long descent may search.")] = "quick"
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu"
    retries: Annotated[int, typer.Option(help="Random draws per hidden size.")] = 3
    seed: Seed = 0


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    target: Annotated[
        Path, typer.Argument(help="A square sparse matrix of positive weights, saved by scipy.sparse.save_npz.")
    ]
    head: HeadOptions
    out: Annotated[Path | None, typer.Option(help="Directory to save the head in.")] = None
    plot: Annotated[Path | None, typer.Option(help="PNG of the attention map beside the target.")] = None
    force: Force = False
    json: AsJson = False


@command(app)
def fit(asked: FitRequest) -> None:
    """Find inputs on which a fixed head attends like the target, and verify every row.

    Examples: thereexists heads fit target.npz --out h/

    thereexists heads fit target.npz --method corrected --dtype float32 --plot h.png
    """
    from thereexists import heads
    from thereexists.core.storage import HEAD, reserved

    for option, methods in USED_BY.items():
        if asked.head.method not in methods:
            refuse(f"it is for --method {' or '.join(methods)}", option)
    files_to_write(asked.force, (asked.plot, ()))
    with nullcontext() if asked.out is None else reserved(asked.out, HEAD):
        with progress_bar("fit and verify", quiet=asked.json):
            head = heads.fit(heads.load_matrix(asked.target), **asdict(asked.head))
        if asked.out is not None:
            head.save(asked.out)
    if asked.plot is not None:
        from thereexists.heads.plot import draw_head

        draw_head(head, asked.plot)
    report = head.report() | {"out": str(asked.out) if asked.out else None}
    _show(report, asked.json, "Head")
    if not head.verdict.holds:
        raise typer.Exit(1)


@app.command()
def verify(
    head: Annotated[Path, typer.Argument(help="Directory written by `heads fit --out`.")],
    target: Annotated[Path | None, typer.Option(help="Check against this .npz instead of the stored target.")] = None,
    eps1: Annotated[float | None, typer.Option(help="Default: what the head was made for.")] = None,
    eps2: Annotated[float | None, typer.Option(help="Default: what the head was made for.")] = None,
    dtype: Annotated[str, typer.Option(help="Arithmetic to run the check in.")] = "float64",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: AsJson = False,
) -> None:
    """Check every row of a saved head again. Exit code 0 if it holds, 1 if it fails or is undecided.

    Example: thereexists heads verify h/ --dtype float32
    """
    from thereexists import heads
    from thereexists.heads.io import load_with_record
    from thereexists.heads.stated import false_claims, verify_again

    saved, record = load_with_record(head)
    if saved.words is not None and (dtype, device) != ("float64", "cpu"):
        raise InvalidInput(
            "This head holds several words per number and is checked in ball arithmetic: leave --dtype and --device "
            "out."
        )
    wanted = heads.load_matrix(target) if target else saved.target
    e1, e2 = saved.eps1 if eps1 is None else eps1, saved.eps2 if eps2 is None else eps2
    found = verify_again(replace(saved, target=wanted, eps1=e1, eps2=e2), dtype, device)
    own = target is None and eps1 is None and eps2 is None  # what the file says, it says of its own target
    false = false_claims(saved, record, verify_again(saved) if dtype != "float64" else found) if own else []
    report = asdict(found)
    verdict = report.pop("verdict")
    holds = False if false else verdict["holds"]
    _show(
        {"holds": holds, "reasons": [*verdict["reasons"], *false], "worst": verdict["evidence"], **report},
        json,
        "Check",
    )
    if not holds:
        raise typer.Exit(1)


@app.command()
def random(
    length: Annotated[int, typer.Option(help="L: rows and columns.")],
    out: Annotated[Path, typer.Option(help="Where to write the .npz.")],
    k: Annotated[int, typer.Option(help="Non-zeros per row and column.")] = 4,
    gamma: Annotated[float, typer.Option(help="Largest ratio of two non-zeros of a row.")] = 2.0,
    seed: Seed = 0,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write a random target: k disjoint permutations, values within a factor gamma.

    Example: thereexists heads random --length 256 --k 2 --out target.npz
    """
    from thereexists import heads

    files_to_write(force, (out, ()))
    made = heads.random_matrix(length, k, gamma, seed)
    heads.save_matrix(made, out)
    report = {
        "length": length,
        "k": made.k,
        "gamma": made.gamma,
        "nonzeros": made.nonzeros,
        "seed": seed,
        "out": str(out),
    }
    _show(report, json, "Target")


@app.command()
def bound(
    length: Annotated[int | None, typer.Option(help="L; or give --target.")] = None,
    k: Annotated[int | None, typer.Option(help="Non-zeros per row and column.")] = None,
    gamma: Annotated[float, typer.Option(help="Largest ratio of two non-zeros of a row.")] = 2.0,
    eps1: Eps1 = 1e-3,
    eps2: Eps2 = 1e-2,
    target: Annotated[
        Path | None, typer.Option(help="Take L, k and gamma from this .npz; --k is then checked.")
    ] = None,
    json: AsJson = False,
) -> None:
    """The hidden size the theorem asks for, and what each method needs for the same class of targets.

    Examples: thereexists heads bound --length 4096 --k 4

    thereexists heads bound --target target.npz
    """
    from thereexists import heads

    if target is not None:
        refuse("--target says L and gamma", "length", "gamma")
        found = heads.bounds_for(heads.load_matrix(target), eps1, eps2, k)
    elif length is None or k is None:
        raise InvalidInput("A bound needs --length and --k, or --target FILE; got neither.")
    else:
        found = heads.bounds(length, k, gamma, eps1, eps2)
    _show(asdict(found), json, "Bound")


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    lengths: Annotated[str, typer.Option(help="64..16384 (doubling) or 64,100,256.")] = "64..4096"
    k: Annotated[str, typer.Option(help="Comma-separated.")] = "1,2,4"
    methods: Annotated[str, typer.Option(help="Comma-separated.")] = "projection,corrected,convex,moments"
    eps1: Eps1 = 1e-3
    eps2: Eps2 = 1e-2
    gamma: Annotated[float, typer.Option(help="Largest ratio of two non-zeros of a row.")] = 2.0
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Random targets per point; the median is reported.")] = 1
    longest: Annotated[str, typer.Option(help="Lengths at which slow methods stop.")] = "convex=1024,projection=1024"
    out: Annotated[Path | None, typer.Option(help="Write the table as JSON.")] = None
    plot: Annotated[Path | None, typer.Option(help="Write the figure as PNG.")] = None
    force: Force = False
    json: AsJson = False


@command(app)
def study(asked: StudyOptions) -> None:
    """The smallest working hidden size against the length: table, fitted slopes, plot.

    Example: thereexists heads study --lengths 32..128 --k 1,2 --methods corrected,moments --plot study.png
    """
    import sys

    from thereexists import heads
    from thereexists.heads.fit import METHODS, FitOptions
    from thereexists.heads.study import plot_study

    files_to_write(asked.force, (asked.out, ()), (asked.plot, ()))
    wanted = [m.strip() for m in asked.methods.split(",")]
    caps = _caps(asked.longest)
    unknown = [m for m in wanted if m not in METHODS]
    unknown += [m for m in caps if m not in METHODS]
    if unknown:
        raise InvalidInput(f"Unknown method {unknown[0]!r}. Choose among {', '.join(METHODS)}.")
    if idle := [m for m in caps if m not in wanted]:
        refuse(f"{idle[0]!r} is not among the --methods", "longest")
    grid = (_lengths(asked.lengths), _integers(asked.k, "--k"), wanted)
    planned = sum(n <= L // 2 and caps.get(m, L) >= L for L in grid[0] for n in grid[1] for m in wanted)
    with progress_bar("study", quiet=asked.json) as progress:
        done: list[str] = []

        def tell(line: str) -> None:
            done.append(line)
            progress(len(done), planned)

        options = FitOptions(eps1=asked.eps1, eps2=asked.eps2)
        result = heads.run_study(
            *grid, options=options, gamma=asked.gamma, seeds=range(asked.seeds), longest=caps, progress=tell
        )
    report = result.report()
    if asked.out is not None:
        _write_json(report | {"command": " ".join(["thereexists", *sys.argv[1:]])}, asked.out)
    if asked.plot is not None:
        plot_study(result, asked.plot)
    if asked.json:
        print_json(report)
        return
    from rich.table import Table

    table = Table("method", "k", *[str(L) for L in result.settings["lengths"]], "slope vs log L", "R²")
    for line in result.lines:
        cells = {
            p.length: f"{p.hidden_size:g}" + ("*" if p.trivial else "")
            for p in result.points
            if (p.method, p.k) == (line.method, line.k)
        }
        slope = "–" if line.slope is None else f"{line.slope:.1f}"
        fitted = "–" if line.r2 is None else f"{line.r2:.3f}"
        table.add_row(line.method, str(line.k), *[cells.get(L, "–") for L in result.settings["lengths"]], slope, fitted)
    console().print(table)
    console().print("* the trivial head X = [B, I], d = 2L: no smaller projection worked.")


def _lengths(text: str) -> list[int]:
    if ".." in text:
        low, _, high = text.partition("..")
        (first,), (last,) = _integers(low, "--lengths"), _integers(high, "--lengths")
        if not 1 <= first <= last:
            raise InvalidInput(f"--lengths takes low..high with 1 <= low <= high. Got {text!r}.")
        found = []
        while first <= last:
            found.append(first)
            first *= 2
        return found
    return _integers(text, "--lengths")


def _caps(text: str) -> dict[str, int]:
    caps = {}
    for part in filter(None, text.split(",")):
        method, equals, length = part.partition("=")
        if not equals:
            raise InvalidInput(f"--longest takes method=length pairs, as in convex=1024. Got {part!r}.")
        (caps[method.strip()],) = _integers(length, "--longest")
    return caps


def _integers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"{option} takes whole numbers separated by commas. Got {text!r}.") from None


def _write_json(payload: dict[str, Any], path: Path) -> None:
    import json

    from thereexists.core.atomic_files import write_beside

    write_beside(path, json.dumps(payload, indent=1) + "\n")


def _figure(name: str, value: Any) -> str:
    from thereexists.heads.figures import AT_MOST

    if not isinstance(value, float):
        return f"{value:,}" if type(value) is int else str(value)
    return rounded_up(value, 4) if name in AT_MOST else f"{value:.4g}" if name == "seconds" else in_full(value)


def _show(report: dict[str, Any], as_json: bool, title: str) -> None:
    if as_json:
        print_json(report)
        return
    from rich.table import Table

    table = Table(title=title, show_header=False)
    for name, value in report.items():
        table.add_row(name, _figure(name, value))
    console().print(table)
