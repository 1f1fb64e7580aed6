"""The page of explore in a file: no server, no request, the state in the address."""

import json
import re

import numpy as np
import pytest

import thereexists as te
from tests.command import thereexists
from tests.reports.pages import EVIL
from thereexists.core.errors import InvalidInput
from thereexists.reports.explore import open_viewer
from thereexists.reports.explore.static import static_page


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("static")
    te.build(te.targets.builtin("sort", n=2), delta=1 / 4).save(place / "w")
    te.memorise([["a", "dog"], [EVIL.replace(" ", "_"), "cat"]], [["x"], ["y"]]).save(place / "m")
    thereexists("explore", "w", "--out", "w.html", cwd=place)
    return place


def stored(document):
    return json.loads(re.search(r'<script type="application/json" id="stored">(.*?)</script>', document, re.S)[1])


def test_the_answers_are_the_networks_own(folder):
    found = stored((folder / "w.html").read_text(encoding="utf-8"))
    witness = te.load(folder / "w")
    assert len(found["runs"]) == 1 + 11 * 11
    for run in found["runs"][::17]:
        assert run["output"] == witness(run["input"]["x"]).tolist()
        assert not witness.grid.on_ramp(witness.checked_input(run["input"]["x"])[0]).any()


def test_the_map_is_a_plane_of_the_networks_own_outputs(folder):
    found, viewer = stored((folder / "w.html").read_text(encoding="utf-8")), open_viewer(te.load(folder / "w"))
    plane = viewer.map({"x": [[0.7], [0.1]], "free": [[1, 0], [0, 0]]})
    assert plane["outputs"].shape == (4, 4, 2, 1)
    assert np.reshape(found["table"]["outputs"], (4, 4, 2, 1)).tolist() == plane["outputs"].tolist()  # token 0 goes up
    witness = te.load(folder / "w")
    assert plane["outputs"][3, 1].tolist() == witness([[plane["up"][3]], [plane["across"][1]]]).tolist()
    for free in (None, [[0, 0]], [[0, 0], [0, 0]], [[0, 0], [2, 0]], [[0, 0], [0.0, 1]]):
        with pytest.raises(InvalidInput, match="'free'"):
            viewer.map({"x": [[0.7], [0.1]], "free": free})


@pytest.mark.slow
def test_python_writes_the_same_page(folder):
    te.explore(folder / "w", out=folder / "python.html")
    te.explore(te.load(folder / "w"), out=folder / "object.html")
    assert (
        (folder / "python.html").read_text() == (folder / "w.html").read_text() == (folder / "object.html").read_text()
    )


def test_a_strangers_words_stay_words(folder):
    document, inputs = static_page(open_viewer(folder / "m"))
    assert inputs == 2
    assert document.count("<script") == 2
    assert document.count("</script>") == 2
    assert "<img" not in document
    assert len(stored(document)["runs"]) == 2


def test_a_file_is_not_replaced_and_needs_no_port(folder):
    assert "exists" in thereexists("explore", "w", "--out", "w.html", cwd=folder, code=2).stderr
    assert "--port" in thereexists("explore", "w", "--out", "v.html", "--port", "80", cwd=folder, code=2).stderr


def test_the_file_works_in_a_browser(folder, browser):
    from playwright.sync_api import expect

    page = browser.new_page(viewport={"width": 1400, "height": 900})
    wrong = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.append(request.url) if not request.url.startswith("file:") else None)
    page.goto(f"file://{folder / 'w.html'}")
    page.locator("#log button").nth(2).wait_for()
    page.locator("#last").click()
    assert "layer=" in page.url
    page.locator("#x-0-0").fill("0.2")
    expect(page.locator("output").first).to_have_text(re.compile(r"^0\.22"))  # the nearest stored one, 0.2273
    kept = page.url
    again = browser.new_page()
    again.goto(kept)
    again.locator("#log button").nth(2).wait_for()
    assert again.locator("#layer").input_value() == page.locator("#layer").input_value() != "0"
    assert again.locator("output").first.text_content() == page.locator("output").first.text_content()
    assert wrong == []
    page.close()
    again.close()
