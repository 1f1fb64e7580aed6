"""Tables and memorised data sets on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from thereexists.cli._output import print_facts, print_json, say
from thereexists.cli.kinds import Commands, RunRequest
from thereexists.core.authors_word import as_its_author_says
from thereexists.core.errors import InvalidInput
from thereexists.core.json_files import malformed


class TokenCommands(Commands):
    takes: ClassVar = {
        "run": ("input", "out", "dtype", "force"),
        "certify": ("function", "dry_run"),
        "verify": ("function", "dry_run"),
    }
    because = "a table or a data set is recalled exactly, pair by pair, or not at all"

    def run(self, witness: Any, asked: RunRequest, as_json: bool) -> None:
        """Words in a string, or a .csv file with one sequence per line."""
        if asked.out is not None:
            raise InvalidInput("--out writes arrays of numbers; a witness on tokens prints its answers.")
        answers = witness(_sequences(witness, asked.text))
        if as_json:
            print_json({"output": answers})
            return
        for answer in answers:
            say(_words(answer))

    def show(self, folder: Path, witness: Any, record: dict[str, Any], as_json: bool) -> None:
        from thereexists.constructions.tokens.witness import COUNTED

        with malformed(folder):
            stated = sorted(set(witness.info) - COUNTED)
            described = {"witness": str(folder), **witness.describe(), "as_its_author_says": stated}
            print_json(described) if as_json else print_summary(described)

    def trace(self, witness: Any, text: str, as_json: bool) -> None:
        from thereexists.cli.kinds.functions import print_trace

        sequences = _sequences(witness, text)
        if len(sequences) != 1:
            raise InvalidInput(f"trace takes one sequence; {text} holds {len(sequences)}.")
        traced = witness.trace(sequences[0])
        if as_json:
            print_json(traced.describe())
            return
        words = [str(word) for word in traced.words]
        print_trace(traced, words + ["(padding)"] * (len(traced.input) - len(words)))
        say(_words(traced.answer))

    def certified(self, certificate: Any, as_json: bool) -> None:
        raise InvalidInput("There is nothing to certify.")  # certify has said so before


TOKENS = TokenCommands()


def _words(answer: list[Any] | None) -> str:
    return "(nothing stored)" if answer is None else " ".join(map(str, answer))


def _sequences(witness: Any, text: str) -> list[list[Any]]:
    file = Path(text)
    if file.suffix == ".csv":
        from thereexists.functions.pairs import read_csv

        sequences = [[cell.strip() for cell in row] for _, row in read_csv(file)]
        if not sequences:
            raise InvalidInput(f"{file} is empty; it must hold one sequence per line.")
    else:
        sequences = [text.replace(",", " ").split() if all_integers(witness) else text.split()]
    if all_integers(witness):
        return [[_integer(word) for word in sequence] for sequence in sequences]
    written = {str(token): token for token in witness.vocabulary.tokens if isinstance(token, int)}
    written |= {token: token for token in witness.vocabulary.tokens if isinstance(token, str)}  # a word comes first
    return [[written.get(word, word) for word in sequence] for sequence in sequences]


def all_integers(witness: Any) -> bool:
    return all(isinstance(token, int) for token in witness.vocabulary.tokens)


def _integer(word: str) -> int:
    from thereexists.functions.pairs import is_integer

    if not is_integer(word):
        raise InvalidInput(f"The tokens of this witness are integers, written as 7 or -7; got {word!r} instead.")
    return int(word)


def build_table(file: Path, construction: str | None, more: bool, out: Path | None, as_json: bool) -> None:
    """``build table.csv``; ``more`` options than a table takes are refused."""
    from thereexists.core import storage

    table, method = _table(file, construction, more)
    out = out or Path(f"{file.stem}-witness")
    with storage.reserved(out):
        finish(method.build(table), out, as_json)


def plan_table(file: Path, construction: str | None, more: bool, as_json: bool) -> None:
    """``plan table.csv``: a table is small enough to be built for its sizes."""
    table, method = _table(file, construction, more)
    described = method.build(table).describe()
    print_json(described) if as_json else print_summary(described)


def stock_claim(file: Path) -> Any:
    """A table or a data set as completions; a data set's CSV has the columns input and output."""
    from thereexists.constructions.tokens.completions import completions
    from thereexists.functions.pairs import distinct_pairs, read_csv, read_pairs, read_table

    header = read_csv(file)[:1] if file.suffix == ".csv" else []
    reads = read_table if header and header[0][1][0].strip().lower() != "input" else read_pairs
    pairs = distinct_pairs(*reads(file))
    return completions(pairs.inputs, pairs.outputs)


def _table(file: Path, construction: str | None, more: bool) -> tuple[Any, Any]:
    from thereexists.constructions.build import the_method
    from thereexists.constructions.tokens.table import Table
    from thereexists.functions.pairs import read_table

    if more:
        raise InvalidInput("A table is built with --construction compact or no option: it has its own n, and no grid.")
    inputs, outputs, lines = read_table(file)
    table = Table(inputs, outputs, lines=lines)
    return table, the_method(table, None, {} if construction is None else {"construction": construction})


def finish(witness: Any, out: Path, as_json: bool) -> None:
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
        "sequences": f"{summary['lengths']}, vocabularies of {summary['vocabulary']:,} and "
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
