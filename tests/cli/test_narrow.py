"""Tables and lists on narrow screens and in pipes: what matters most is there, whole, and in line."""

import io
import re
from types import SimpleNamespace

import numpy as np
import pytest

from tests.cli.in_process import ran
from thereexists.cli import _output

WORDS = re.compile(r"\x1b\[[0-9;]*m")


def on_a_screen(monkeypatch, tmp_path, width, line):
    """What a terminal of so many columns shows."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out = Terminal()
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("tests.cli.in_process.io.StringIO", lambda: out)
    assert ran(line, cwd=tmp_path).code == 0
    return WORDS.sub("", out.getvalue())


@pytest.mark.parametrize("width", [33, 50])
def test_a_narrow_screen_keeps_the_verdicts(monkeypatch, tmp_path, width):
    shown = on_a_screen(monkeypatch, tmp_path, width, "pattern compare --n 8 --seconds 1")
    head, *rows = shown[shown.index("pattern  ") :].splitlines()[:14]
    assert head.split()[:3] == ["pattern", "universal", "depth"]
    told = {row.split()[0]: row.split()[1:3] for row in rows[:13]}
    assert told["block_local"] == ["no", "never"]
    assert told["butterfly"] == ["yes", "3"]
    assert "…" not in "".join(rows)
    assert "Not enough room for: " in shown


@pytest.mark.parametrize("width", [32, 50])
def test_a_narrow_screen_keeps_the_names_of_the_mixers(monkeypatch, tmp_path, width):
    fields = {"parameters_base": 109.5e6, "flops_per_token": 61.3e6, "cost": "8d² + 4nd", "formula": "X"}
    fields |= {"permutation_equivariant": True, "fixed_length": False, "model_flops_per_token": 1e8}
    rows = [SimpleNamespace(name=name, **fields) for name in ("attention", "sepconv")]  # the real ones take seconds
    monkeypatch.setattr("thereexists.cli.mixers._rows", lambda n: rows)
    shown = on_a_screen(monkeypatch, tmp_path, width, "mixers")
    assert [row.split()[0] for row in shown.splitlines()[1:3]] == ["attention", "sepconv"]
    assert "…" not in "".join(shown.splitlines()[:3])


def test_the_proved_bound_stands_in_line_and_alone(tmp_path):
    printed = ran("build sort --n 2 --delta 1/4 --out w", cwd=tmp_path).stdout
    lines = [line for line in printed.splitlines() if "≤" in line or "=" in line]
    starts = {re.match(r"(\S+ ?\S*\s\s+|\s+)(?=\S)", line).end() for line in printed.splitlines()}
    assert len(starts) == 1, lines  # one margin for everything
    (bound,) = [line for line in printed.splitlines() if line.startswith("proved")]
    assert re.fullmatch(r"proved +d_1 ≤ [\d.]+", bound)  # short enough for any screen: it never wraps
    certified = ran("certify w", cwd=tmp_path).stdout.splitlines()
    assert re.fullmatch(r"proved +d_1 ≤ [\d.]+", certified[0])


def test_a_pipe_gets_whole_lines_without_padding(tmp_path):
    printed = ran("plan sort --n 2 --delta 1/4", cwd=tmp_path).stdout
    assert max(map(len, printed.splitlines())) > 120  # the longest is not broken
    assert all(line == line.rstrip() for line in printed.splitlines())


def test_a_trace_says_values_as_values_and_counts_layers_from_one(tmp_path):
    """In explore the first layer is number 1; a trace names the same layers, and ends in the values of its last row."""
    from thereexists.reports.explore import open_viewer

    ran("build sort --n 2 --delta 1/4 --no-certify --out w", cwd=tmp_path)
    printed = ran('trace w --input "0.7 0.1"', cwd=tmp_path).stdout
    rows = re.findall(r"value layer (\d+)\s+id (\d+) → (\S+)", printed)
    assert {float(value) for _, _, value in rows} == {0.125, 0.625}
    about = open_viewer(tmp_path / "w")
    first = {stage["name"]: stage["first"] for stage in about.about()["stages"]}
    frames = about.run({"x": np.array([[0.7], [0.1]]).tolist()})["frames"]
    shown = [frame["layer"] - first["value"] + 1 for frame in frames if frame["stage"] == "value"]
    assert sorted(int(layer) for layer, _, _ in rows) == sorted(shown)


def test_what_fits_is_left_alone():
    from rich.table import Table

    table = Table("a", "b", "c", box=None)
    table.add_row("one", "two", "three")
    assert _output.fit(table, _output.console()) == []
    assert len(table.columns) == 3
