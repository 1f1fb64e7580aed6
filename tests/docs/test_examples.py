"""The examples: each becomes a notebook, each notebook runs, and what it prints is what its text says."""

import ast
import json

import jupytext
import pytest

from tests.docs.blocks import ROOT

SAID = {  # example -> lines that it must print, up to the figures
    "01_my_function": ["verified from the files alone: True", "after one changed weight: False because of weights"],
    "02_data_set": ["[['kočka'], ['ten', 'pes', 'běží'], None]", "512 cells compared"],
    "03_sparse_pattern": ["path checked again: True", "block_local   32,768 connections  universal: False"],
    "04_attention_head": ["hidden size 36 by moments; verified on every row: True"],
    "05_program": ["bound in float64: 2.2e-16", "largest difference in float64: 2.2e-16"],
    "06_verify_this": ["14 instances: 7 hold, 7 do not", "all true: True", "is said to be unsat, and sat is proved"],
    "07_find_this_circuit": ["v1 = sort(x)", "the circuit itself: precision 1.0, recall 1.0, faithful 1.000000"],
    "08_how_attention_counts": ["share above one half: 0.500", "sorted: [0.05, 0.1, 0.2, 0.3, 0.7, 0.8, 0.9, 0.95]"],
}


def test_every_example_is_here():
    assert sorted(path.stem for path in (ROOT / "examples").glob("*.py")) == sorted(SAID)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_the_notebook_of_the_example_runs(name, worker, tmp_path):
    printed = "\n".join(worker(f"examples/{name}.py", tmp_path))
    for line in SAID[name]:
        assert line in printed


@pytest.mark.parametrize("name", SAID)
def test_the_notebook_shows_a_picture(name):
    """A cell ends in a value, whose card a notebook shows, or draws a figure (the slow test of the site sees them)."""
    code = [cell.source for cell in jupytext.read(ROOT / "examples" / f"{name}.py").cells if cell.cell_type == "code"]
    ends = [body[-1].value for body in (ast.parse(source).body for source in code) if isinstance(body[-1], ast.Expr)]
    values = [end for end in ends if isinstance(end, ast.Name) or ast.unparse(end).startswith("te.")]
    assert values or any("plt.subplots(" in source for source in code)


def test_what_a_cell_gives_is_on_its_page(tmp_path, fresh, monkeypatch):
    """A card, a figure, and words; a figure is shown by the cell that drew it, and once."""
    script = tmp_path / "small.py"
    drawn = "import matplotlib.pyplot as plt\n_, axes = plt.subplots()\naxes.set_xlabel('a < b')\nprint('drawn')"
    script.write_text(f"# %%\nimport thereexists as te\nte.Verdict(True)\n\n# %%\n{drawn}\n\n# %%\n1 + 1\n")
    run = ROOT / "docs" / "site" / "run_example.py"
    monkeypatch.setenv("MPLBACKEND", "Agg")
    done = fresh(run, script, warm=True)
    assert done.returncode == 0, done.stderr
    card, figure, words = json.loads(done.stdout.splitlines()[-1])
    assert card["html"].startswith('<div class="te-card">')
    assert card["html"].count("<img") == 0
    assert figure["html"].startswith('<img alt="a &lt; b" src="data:image/svg+xml;base64,')
    assert figure["printed"] == "drawn\n"
    assert words["html"] == ""
    assert words["printed"] == "2\n"


@pytest.mark.parametrize("name", SAID)
def test_the_example_explains_itself(name):
    notebook = jupytext.read(ROOT / "examples" / f"{name}.py")
    kinds = [cell.cell_type for cell in notebook.cells]
    assert kinds[0] == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    assert kinds.count("markdown") >= 3
    for cell in notebook.cells:
        if cell.cell_type == "code":
            ast.parse(cell.source)
