"""What a file says is shown, never obeyed: no markup, no escape sequence, no line of somebody else's making."""

import json
import os
import subprocess
import sys
import warnings

import pytest

from thereexists import cli
from thereexists.certificates.check import Check
from thereexists.cli import _output
from thereexists.cli.certificate import _print_checks
from thereexists.core.errors import Recovered
from thereexists.core.plain_text import visible, visible_json
from thereexists.core.verdict import Verdict
from thereexists.reports import html

HOSTILE = "[/bold][inf, inf] \x1b[2J\x9b1m\r\u202e\nholds \x07\ud800 [link=file:///etc]x[/link] :boom:"
SHOWN = r"[/bold][inf, inf] \x1b[2J\x9b1m\r\u202e\nholds \x07\ud800 [link=file:///etc]x[/link] :boom:"


def test_text_is_written_out(capsys):
    assert visible(HOSTILE) == SHOWN
    assert visible("kočka 🐈 د‌ر \\x") == "kočka 🐈 د‌ر \\x"
    value = {"a": HOSTILE, "b": "\U000e0041"}
    assert json.loads(visible_json(json.dumps(value, ensure_ascii=False))) == value
    _output.say(HOSTILE)
    _output.say(HOSTILE, error=True)
    seen = capsys.readouterr()
    assert seen.out == seen.err == SHOWN + "\n"


def test_json_holds_no_character_that_a_terminal_obeys(capsys):
    _output.print_json({HOSTILE: [HOSTILE]})
    shown = capsys.readouterr().out
    assert visible(shown[:-1]) == shown[:-1]
    assert json.loads(shown) == {HOSTILE: [HOSTILE]}


def test_tables_and_lines_hold_every_character(capsys, monkeypatch):
    """As a terminal gets it, colours and all."""
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("FORCE_COLOR", "1")
    _output.print_facts({HOSTILE: HOSTILE, "none": None})
    _print_checks(Verdict(False, (), (Check(HOSTILE, True, HOSTILE), Check("b", False, "[inf, inf]"))))
    _output.console().print(HOSTILE)
    seen = capsys.readouterr().out
    assert seen.count(SHOWN) == 5
    assert seen.count("[inf, inf]") == 6
    for piece in seen.replace(SHOWN, "").split("\x1b[")[1:]:  # what is left are our colours
        assert piece[: piece.index("m")].replace(";", "").isdigit()


def test_pages_show_it_too():
    page = html.text(HOSTILE + "<script>")
    assert visible(page.replace("\n", "")) == page.replace("\n", "")
    assert "<script>" not in page


def test_an_error_that_quotes_a_file_is_one_harmless_line(tmp_path, fresh):
    folder = tmp_path / "w\x1b[2J[bold]"
    ran = fresh("-m", "thereexists", "show", folder, warm=True)
    assert ran.returncode == 2
    assert ran.stderr.startswith("Error: ")
    assert ran.stderr.count("\n") == 1
    assert "\x1b" not in ran.stderr
    assert r"w\x1b[2J[bold]" in ran.stderr


def test_no_command_writes_markup():
    """Markup in a string would now be shown as it is: bold and colours go through ``styled``."""
    from importlib.resources import files

    for module in files("thereexists.cli").iterdir():
        if module.name.endswith(".py"):
            source = module.read_text(encoding="utf-8")
            assert not any(tag in source for tag in ("[bold", "[/", "[red", "[green", "[dim")), module.name


def test_warnings_of_numpy_about_strange_weights_are_not_shown(monkeypatch, capsys):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # the command sets its own
    monkeypatch.setattr(sys, "warnoptions", [])
    warnings.simplefilter("default")

    def strange(**_):
        warnings.warn("overflow encountered in multiply", RuntimeWarning, stacklevel=1)
        warnings.warn("put back", Recovered, stacklevel=1)

    monkeypatch.setattr(cli, "command", lambda: strange)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    assert capsys.readouterr().err == "Note: put back\n"


@pytest.mark.parametrize(
    "encoding",
    ["cp1252", pytest.param("latin-1", marks=pytest.mark.slow), pytest.param("ascii", marks=pytest.mark.slow)],
)
def test_a_stream_that_cannot_hold_a_character_gets_its_number(encoding):
    """As of a pipe on Windows: no error, and above all not the exit code of a verdict."""
    environment = os.environ | {"PYTHONIOENCODING": encoding}

    def done(*words):
        command = [sys.executable, "-m", "thereexists", *words]
        return subprocess.run(command, capture_output=True, env=environment, check=False)

    shown = done("targets")
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert rb"\u2212" in shown.stdout
    told = done("targets", "--json")
    assert told.returncode == 0
    assert "−" in json.dumps(json.loads(told.stdout.decode(encoding)), ensure_ascii=False)


def test_without_a_standard_output_the_exit_code_says_it_all(tmp_path):
    """``>&-``: Python has no stdout then."""
    witness = "import thereexists as te; te.build(te.Table([[0], [1]], [[1], [0]])).save('w')"
    subprocess.run([sys.executable, "-c", witness], cwd=tmp_path, check=True)
    command = f"{sys.executable} -m thereexists verify w >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False).returncode == 0
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m thereexists verify nothing >&-"],
        cwd=tmp_path, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"no saved witness" in done.stderr + done.stdout or not done.stderr
    assert b"Traceback" not in done.stderr


def test_a_folder_that_is_gone_is_no_place_to_import_from(tmp_path):
    command = f"mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m thereexists --version"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_an_error_that_cannot_be_said_keeps_its_exit_code(tmp_path):
    command = f"{sys.executable} -m thereexists verify nothing 2>/dev/full"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False).returncode == 2
