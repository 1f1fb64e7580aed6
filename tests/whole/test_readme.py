"""The README's Python example runs as it stands, and prints what its comments say."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.slow  # that they run is seen by tests/docs too
def test_the_five_lines_do_what_they_say(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S)
    exec(compile(block, "README.md", "exec"), {})
    output, bound, uniform, holds = capsys.readouterr().out.splitlines()
    assert output == "[0.0625 0.4375 0.6875]"
    assert 0.09375 <= float(bound) <= 1.5 * 0.09375  # d_1 of sort on this grid is 3δ/4
    assert "0.0625" in uniform
    assert holds == "True"


def test_every_file_that_the_readme_names_is_in_the_repository():
    """A fresh clone can run every command as it stands: what a command reads is here, or an earlier one wrote it."""
    text = README.read_text(encoding="utf-8")
    made = set(re.findall(r"--out (\S+)", text))
    for block in re.findall(r"(?<!never)```sh\n(.*?)```", text, flags=re.S):
        for line in block.splitlines():
            for word in line.partition("#")[0].split()[1:]:
                name = word.partition(":")[0]
                if re.search(r"\.(py|csv|jsonl|json|npz|xz|txt)$", name) and word not in made:
                    assert (README.parent / name).is_file(), line


def test_every_link_of_the_readme_leads_somewhere():
    for target in re.findall(r"\]\((docs/[^)]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).is_file(), target
