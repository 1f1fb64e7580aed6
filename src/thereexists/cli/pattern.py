"""``thereexists pattern``: which attention patterns exist, whether they are universal, and what they look like."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thereexists.cli import _complete
from thereexists.cli._applies import refuse
from thereexists.cli._files import Force, files_to_write
from thereexists.cli._output import AsJson, console, print_json, progress_bar, styled
from thereexists.cli._settings import command
from thereexists.core.errors import InvalidInput
from thereexists.core.rounded_figures import cut, rounded_up

if TYPE_CHECKING:
    from thereexists.patterns import Pattern, PatternVerdict, Reach

PICTURES = (".png", ".svg")
REACH_SECONDS = 4.0  # for what is asked beside the verdict
app = typer.Typer(
    name="pattern",
    help="Sparse attention patterns: is a Transformer with this pattern universal?",
    no_args_is_help=True,
)


class Config(StrEnum):
    sequential = "sequential"
    union = "union"
    multihead = "multihead"


What = Annotated[
    str,
    typer.Argument(
        help="A pattern's name; a model's config.json; or an .npz file with a Boolean mask (n, n) or (steps, n, n), or "
        "a sparse matrix.",
        autocompletion=_complete.names(_complete.PATTERNS),
    ),
]
N = Annotated[int | None, typer.Option("--n", help="Number of tokens.")]
Size = Annotated[int | None, typer.Option(help="A size of the pattern; by default one that suits n.")]
Dilation = Annotated[list[int] | None, typer.Option(help="Dilation; give it several times for a cycle.")]
Configuration = Annotated[Config, typer.Option("--config", help="How steps are spread over layers and heads.")]
Heads = Annotated[int, typer.Option(help="Heads of a multihead configuration.")]
Causal = Annotated[bool, typer.Option("--causal", help="Tokens see only themselves and earlier ones.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of a random part.")]
Seconds = Annotated[float, typer.Option(min=0.0, help="How long to search for a Hamiltonian path.")]


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """Every pattern of the library, with its parameters.

    Example: thereexists pattern list
    """
    from thereexists.patterns import REGISTRY

    rows = [{"name": k, "parameters": list(e.parameters), "summary": e.summary} for k, e in REGISTRY.items()]
    if as_json:
        print_json({"patterns": rows})
        return
    from rich.table import Table

    table = Table("pattern", "parameters", "what token k attends to", box=None, header_style="bold")
    for row in rows:
        table.add_row(row["name"], ", ".join(row["parameters"]) or "–", row["summary"])
    console().print(table)


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """The sizes of the library's patterns, each an option of its own."""

    window: Size = None
    stride: Size = None
    block: Size = None
    columns: Size = None
    dilation: Dilation = None
    globals: Annotated[int | None, typer.Option("--globals", help="Number of global tokens.")] = None
    period: Size = None
    sinks: Annotated[int | None, typer.Option(help="Number of leading tokens that every token sees.")] = None
    prefix: Annotated[int | None, typer.Option(help="Tokens of the prefix, which see each other.")] = None
    lengths: Annotated[list[int] | None, typer.Option(help="Length of a document; repeatable.")] = None
    shape: Annotated[list[int] | None, typer.Option(help="Side of a grid; give it once for each direction.")] = None
    random_blocks: Size = None
    degree: Size = None
    sparsity: Annotated[float | None, typer.Option(help="Share of unused pairs, for 'random'.")] = None
    seed: Seed = None
    shifted: Annotated[bool | None, typer.Option("--shifted", help="Add shifted blocks to 'block_local'.")] = None

    def given(self) -> dict[str, Any]:
        """What was said, under the names of ``te.patterns.build``."""
        said = {name: value for name, value in vars(self).items() if value is not None}
        if len(said.get("lengths", ())) == 1:  # one length is that of all documents
            said["lengths"] = said["lengths"][0]
        return said


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    what: What
    n: N = None
    sizes: SizeOptions
    config: Configuration = Config.sequential
    heads: Heads = 8
    causal: Causal = False
    seconds: Seconds = 60.0
    path_out: Annotated[Path | None, typer.Option("--path-out", help="Write the whole path here, as .npy.")] = None
    picture: Annotated[Path | None, typer.Option(help="Also draw the pattern, as .png or .svg.")] = None
    force: Force = False
    as_json: AsJson = False


@command(app)
def check(asked: CheckOptions) -> None:
    """Is the pattern universal? Self-loops, a Hamiltonian path, the receptive depth; each with its evidence.

    Examples: thereexists pattern check strided --n 1024 --stride 32

    thereexists pattern check config.json --n 4096

    thereexists pattern check mask.npz --json
    """
    from thereexists.patterns import check as decide
    from thereexists.patterns import reach

    files_to_write(asked.force, (asked.path_out, (".npy",)), (asked.picture, PICTURES))
    check_heads(asked.config)
    sizes = asked.sizes.given()
    pattern = load_pattern(asked.what, asked.n, sizes, asked.config, asked.heads, asked.causal)
    with progress_bar("search", quiet=asked.as_json):
        verdict = decide(pattern, seconds=asked.seconds)
        answers = reach(verdict, min(asked.seconds, REACH_SECONDS))
    if asked.path_out is not None:
        _save_path(verdict, asked.path_out)
    if asked.picture is not None:
        from thereexists.patterns.picture import save

        save(pattern, asked.picture)
    if asked.as_json:
        print_json(verdict.to_json() | {"reach": answers.to_json()})
    else:
        _explain(verdict)
        for line in answers.sentences():
            console().print(f"  {line}", markup=False)


@app.command()
def compare(
    n: Annotated[int, typer.Option("--n", min=1, help="Number of tokens.")] = 4096,
    config: Configuration = Config.sequential,
    causal: Causal = False,
    seconds: Seconds = 60.0,
    as_json: AsJson = False,
) -> None:
    """Every pattern at one n: verdict, receptive depth, connections, sparsity.

    Example: thereexists pattern compare --n 4096
    """
    from thereexists.patterns import REGISTRY, reach
    from thereexists.patterns import check as decide

    rows, refused = [], {}
    with progress_bar("compare", quiet=as_json) as progress:
        for done, name in enumerate(REGISTRY):
            progress(done, len(REGISTRY))
            try:
                pattern = load_pattern(name, n, {}, config, 8, causal)
            except InvalidInput as error:
                refused[name] = str(error)
                continue
            verdict = decide(pattern, seconds=seconds)
            rows.append((verdict, reach(verdict, min(seconds, REACH_SECONDS))))
    if not rows:
        raise InvalidInput(next(iter(refused.values())))
    if as_json:
        print_json({"n": n, "patterns": [v.to_json() | {"reach": r.to_json()} for v, r in rows], "refused": refused})
        return
    from rich.table import Table

    table = Table("pattern", "universal", "depth", "per token", "path", "p", "connections", "sparsity", box=None)
    for column in table.columns:
        column.no_wrap = True
        column.justify = "right" if column.header in ("per token", "p", "connections", "sparsity") else "left"
    for v, _ in rows:
        p = v.pattern
        most = max(p.connections)
        table.add_row(
            p.name,
            {True: "yes", False: "no", None: "?"}[v.universal],
            _depth_words(v),
            f"{most / p.n:,.1f}",
            v.path_result.status,
            str(p.cycle),
            f"{most:,}",
            cut(p.sparsity, 4),
        )
    console().print(table)
    console().print(f"n = {n}; connections: the largest step. '?': the sufficient conditions fail or are undecided.")
    for name, why in refused.items():
        console().print(f"left out {name}: {why}")
    _reaches(rows)


def _reaches(rows: list[tuple[PatternVerdict, Reach]]) -> None:
    """How many layers, which pairs come last, and what one more token would change: a line each."""
    from rich.table import Table

    from thereexists.patterns.reach import layers

    table = Table("pattern", "layers", "with a sink", "with a global token", "pairs in the last layer", box=None)
    for v, r in rows:
        late = "–" if r.last is None else f"{rounded_up(100 * r.last.count / r.last.asked, 3)} %"
        hub = "–" if r.hub is None else layers(r.hub.depth)
        table.add_row(v.pattern.name, layers(r.layers), layers(r.sink.depth), hub, late)
    console().print(table)
    console().print("Layers until the receptive field is full.")
    console().print("A sink is a token 0 that every token sees; a global token also sees every token.")


@app.command()
def draw(
    what: What,
    n: N = None,
    out: Annotated[Path | None, typer.Option(help="A .png or .svg file; default: the terminal (n ≤ 64).")] = None,
    config: Configuration = Config.sequential,
    causal: Causal = False,
    parameter: Annotated[list[str] | None, typer.Option("--set", help="A size, as name=value.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """A picture of the pattern: a row is the token that attends, a column the token it attends to.

    Examples: thereexists pattern draw star --n 24

    thereexists pattern draw strided --n 64 --set stride=8 --out strided.png
    """
    from thereexists.patterns.picture import save, terminal

    files_to_write(force, (out, PICTURES))
    pattern = load_pattern(what, n, dict(assignment(text) for text in parameter or []), config, 8, causal)
    if out is None:
        text = terminal(pattern)
        print_json({"name": pattern.name, "n": pattern.n, "picture": text}) if as_json else print(text)
        return
    save(pattern, out)
    print_json({"name": pattern.name, "n": pattern.n, "file": str(out)}) if as_json else print(f"wrote {out}")


def load_pattern(
    what: str,
    n: int | None,
    given: dict[str, Any],
    config: Config = Config.sequential,
    heads: int = 8,
    causal: bool = False,
) -> Pattern:
    """A library pattern, a mask file or a model config, in the configuration asked for."""
    from thereexists.patterns import REGISTRY, build, load_npz

    path = Path(what)
    if what in REGISTRY:
        if n is None:
            raise InvalidInput(f"'{what}' needs a number of tokens: --n 1024.")
        pattern = build(what, n, **given)
    elif path.suffix == ".npz":
        if n is not None or given:
            raise InvalidInput("A mask file has its own sizes; leave out --n and the sizes of library patterns.")
        pattern = load_npz(path)
    elif path.suffix == ".json" or path.is_dir():
        from thereexists.patterns.configs import load_config

        unknown = sorted(set(given) - {"globals", "seed"})
        if unknown:
            raise InvalidInput(f"A model config has its own '{unknown[0]}'; only --n, --globals and --seed apply.")
        pattern = load_config(path, n=n, **given)
    else:
        known = ", ".join(REGISTRY)
        raise InvalidInput(f"'{what}' is neither a pattern ({known}) nor a .json config nor an .npz mask.")
    pattern = pattern.as_causal() if causal and not pattern.causal else pattern
    if config is Config.union:
        return pattern.union()
    return pattern.multihead(heads) if config is Config.multihead else pattern


def check_heads(config: Config | None) -> None:
    if config is not Config.multihead:
        refuse("only --config multihead shares the steps out among heads", "heads")


def assignment(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    if not equals or not value.lstrip("-").isdigit():
        raise InvalidInput(f"--set takes name=value with an integer value; got '{text}'.")
    return name, int(value)


def _save_path(verdict: PatternVerdict, out: Path) -> None:
    import numpy as np

    from thereexists.core.atomic_files import write_beside

    if verdict.path is None:
        raise InvalidInput(f"There is no path to write to {out}: {verdict.reasons[1]}.")
    path = verdict.path
    write_beside(out, lambda stream: np.save(stream, path))


def _depth_words(v: PatternVerdict) -> str:
    if v.depth is not None:
        return str(v.depth)
    found = v.depth_result
    if found.never or found.never_full:
        return "never"
    return f"{found.lower}..{found.upper or '?'}"


def _causal_answer(v: PatternVerdict) -> tuple[str, str]:
    """What a decoder's tokens see: that no token sees the future is its purpose, and no defect."""
    found = v.field_result
    word = "blocks" if v.pattern.heads is not None else "layer" if found.depth == 1 else "layers"
    if found.depth is not None:
        return f"causal: token k sees {{0..k}} after {found.depth} {word}", "green"
    if found.never or found.never_full:
        return "causal: some token never sees all of {0..k}", "red"
    upper = "?" if found.upper is None else found.upper
    return f"causal: token k sees {{0..k}} after {found.lower} to {upper} {word}", "yellow"


def _explain(v: PatternVerdict) -> None:
    p, out = v.pattern, console()
    answer = {True: "universal", False: "not universal", None: "undecided"}[v.universal]
    colour = {True: "green", False: "red", None: "yellow"}[v.universal]
    about = f", n = {p.n:,}, cycle {p.cycle}, {p.config}: "
    if v.causal is not None and p.n > 1:
        answer, colour = _causal_answer(v)
    out.print(styled((p.name, "bold"), about, (answer, f"bold {colour}")))
    if v.causal is not None and p.n > 1:
        out.print("causal, so no function that looks ahead; for causal functions see the last lines")
    connections = ", ".join(f"{c:,}" for c in p.connections[:8]) + (", …" if p.cycle > 8 else "")
    out.print(f"connections {connections}; sparsity {cut(p.sparsity, 6)}")
    for reason in v.reasons:
        out.print(f"  {reason}", markup=False)
    if v.path is not None:
        shown = " ".join(map(str, v.path[:12].tolist())) + (" …" if p.n > 12 else "")
        out.print(f"  path {shown}", markup=False)
    full = v.field_result.depth
    if p.heads is not None and full is not None:
        field = "receptive field" if v.causal is None else "causal receptive field {0..k}"
        out.print(f"  the {field} is full after {full} blocks, every block using all steps", markup=False)
    if p.layers is not None:
        word = {True: "full", False: "not full", None: "undecided"}[v.full_within_layers]
        field = "receptive field" if v.causal is None else "causal receptive field {0..k}"
        out.print(f"  within the model's own {p.layers} layers the {field} is {word}", markup=False)
    if v.causal is not None:
        out.print(f"  causal functions: {v.causal.reasons[0]}", markup=False)
    out.print(f"  {v.seconds:.2f} s")
