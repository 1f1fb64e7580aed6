"""Pictures against goldens that a person has looked at. Goldens are made anew by

    THEREEXISTS_GOLDENS=write pytest tests/reports/test_goldens.py

and must then be looked at again before they are committed; goldens.json says by which browser they were made and what
is to be seen on them.

What is compared. Only SVG pictures, one unit to a pixel, with their texts hidden: fonts differ between machines, and
nothing else of a picture depends on them. Both images are cut into blocks of 8 × 8 pixels and the mean colours of the
blocks compared. An edge that a browser draws one pixel further on, or blurs over one, changes at most one of the eight
rows or columns of a block, an eighth of the whole range of a channel: 32 of 255. More than that is another picture.
Where a picture begins between two pixels, a browser may give it one more: sizes differ by one at most.
"""

import json
import os
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from tests.reports.pages import serving

Image = pytest.importorskip("PIL.Image")

GOLDENS = Path(__file__).parent / "goldens"
WRITE = os.environ.get("THEREEXISTS_GOLDENS") == "write"
BLOCK = 8
TOLERANCE = 256 / BLOCK
SEEN = {
    "columns-input-light": "two tokens as dots on cell edges, each in the range of its own position",
    "columns-shift-light": "the window around one dot, a curve from the other, ticks of all cubes, a dashed trail",
    "columns-global-light": "two rows of points, one for each token, and two dots on one dashed line",
    "columns-global-dark": "the same on a dark ground",
    "compare-light": "rings (target) and dots (network) near each other on two lines",
    "stream-light": "two rows of cells under brackets, outlined where the block wrote; two keys of crosses below",
    "map-light": "sixteen cells from dark to bright, a white crosshair, a key at the right",
    "surface-light": "a staircase above the outline of its floor: the network's smaller output over two tokens",
    "ids-light": "sixteen rows of dots, orange to black, between dashed lines; the two tokens of a cube fall together",
    "pattern-light": "a band of grey cells with the path along it, in violet",
    "memory-light": "orange cells on a diagonal among grey ones",
}


@pytest.fixture(scope="module")
def record():
    file = GOLDENS / "goldens.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"pictures": {}}


def picture(page, selector, nth=0):
    """The pixels (height, width, 3) of a picture without its texts."""
    page.evaluate("document.querySelectorAll('svg text').forEach((text) => { text.style.visibility = 'hidden'; })")
    png = page.locator(selector).nth(nth).screenshot(animations="disabled")
    return read(BytesIO(png))


def read(file):
    with Image.open(file) as image:
        return np.asarray(image.convert("RGB"))


def blocks(pixels):
    """Means of blocks of 8 × 8 pixels: (rows, columns, 3); what is left over at the edges is not compared."""
    rows, columns = pixels.shape[0] // BLOCK, pixels.shape[1] // BLOCK
    cut = pixels[: rows * BLOCK, : columns * BLOCK].astype(np.float64)
    return cut.reshape(rows, BLOCK, columns, BLOCK, 3).mean(axis=(1, 3))


def worst_block(a, b):
    if max(abs(x - y) for x, y in zip(a.shape, b.shape, strict=True)) > 1:
        return np.inf
    rows, columns = np.minimum(a.shape, b.shape)[:2]
    a, b = a[:rows, :columns], b[:rows, :columns]
    return float(np.abs(blocks(a) - blocks(b)).max())


def check(name, pixels, browser):
    file = GOLDENS / f"{name}.png"
    if WRITE:
        Image.fromarray(pixels).save(file, optimize=True)
        listed = GOLDENS / "goldens.json"
        told = json.loads(listed.read_text(encoding="utf-8")) if listed.is_file() else {"pictures": {}}
        told["made_by"] = "THEREEXISTS_GOLDENS=write pytest tests/reports/test_goldens.py"
        told["pictures"][name] = {"chromium": browser.version, "size": list(pixels.shape[:2]), "seen": SEEN[name]}
        listed.write_text(json.dumps(told, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    golden = read(file)
    off = worst_block(golden, pixels)
    assert off <= TOLERANCE, f"{name} is not its golden: a block differs by {off:.0f} of 255, {TOLERANCE:.0f} allowed"
    return golden


@pytest.fixture(scope="module")
def explored(browser, folders):
    with serving(folders["faithful"]) as server:
        context = browser.new_context(reduced_motion="reduce", viewport={"width": 800, "height": 900})
        page = context.new_page()
        page.goto(server.url)
        page.wait_for_selector("#log button")
        yield page
        context.close()


def shift(explored):
    explored.click("#log li:nth-child(4) button")
    pixels = picture(explored, "#picture")
    explored.click("#log li:nth-child(6) button")
    return pixels


def test_columns(explored, browser):
    explored.click("#first")
    start = check("columns-input-light", picture(explored, "#picture"), browser)
    explored.click("#log li:nth-child(6) button")
    check("columns-shift-light", shift(explored), browser)
    shifted = check("columns-global-light", picture(explored, "#picture"), browser)
    explored.click("#log li:nth-child(5) button")
    other = picture(explored, "#picture")
    # Planted faults: the picture of another frame, of the step just before, and one dot moved by its own radius.
    assert worst_block(start, shifted) > TOLERANCE
    assert worst_block(shifted, other) > TOLERANCE
    explored.click("#log li:nth-child(6) button")
    explored.evaluate("document.querySelector('#picture .token').style.translate = '-12px 0'")
    assert worst_block(shifted, picture(explored, "#picture")) > TOLERANCE
    explored.evaluate("document.querySelector('#picture .token').style.translate = ''")


def test_dark_is_another_picture(explored, browser):
    explored.click("#log li:nth-child(6) button")
    light = picture(explored, "#picture")
    explored.emulate_media(color_scheme="dark")
    dark = check("columns-global-dark", picture(explored, "#picture"), browser)
    explored.emulate_media(color_scheme="light")
    assert worst_block(light, dark) > TOLERANCE


def test_compare(explored, browser):
    explored.click("#last")
    check("compare-light", picture(explored, "#picture"), browser)
    check("map-light", picture(explored, "#map"), browser)


def test_stream(browser, folders):
    with serving(folders["compact"]) as server:
        page = browser.new_context(viewport={"width": 800, "height": 900}).new_page()
        page.goto(server.url)
        page.wait_for_selector("#log button")
        page.click("#log li:nth-child(5) button")
        check("stream-light", picture(page, "#picture"), browser)
        page.context.close()


@pytest.mark.parametrize(
    ("name", "kind", "selector", "nth"),
    [
        ("surface-light", "faithful", "#surfaces svg", 1),
        ("ids-light", "faithful", "#contexts svg:not(.strengths)", 3),
        ("pattern-light", "sparse", "#pattern svg", 0),
        ("memory-light", "compact", "#memory svg", 0),
    ],
)
def test_pictures_of_reports(browser, folders, page_of, tmp_path, name, kind, selector, nth):
    file = page_of(folders[kind]).save(tmp_path / "r.html")
    page = browser.new_context(viewport={"width": 1000, "height": 900}).new_page()
    page.goto(file.as_uri())
    check(name, picture(page, selector, nth), browser)
    page.context.close()


def test_the_goldens_say_where_they_come_from(record):
    assert sorted(record["pictures"]) == sorted(SEEN) == sorted(file.stem for file in GOLDENS.glob("*.png"))
    for name, told in record["pictures"].items():
        assert told["seen"] == SEEN[name]
        assert told["chromium"]
        assert list(read(GOLDENS / f"{name}.png").shape[:2]) == told["size"]
    assert sum(file.stat().st_size for file in GOLDENS.iterdir()) < 200_000


def test_the_tolerance_forgives_one_pixel_and_no_more():
    """An edge one pixel further is forgiven wherever it falls; a dot of 12 pixels that is missing is not."""
    for at in range(8, 24):
        a, b = (np.full((32, 32, 3), 255, dtype=np.uint8) for _ in range(2))
        a[:, :at], b[:, : at + 1] = 0, 0
        assert worst_block(a, b) <= TOLERANCE
        b[at - 6 : at + 6, 10:22] = 128
        assert worst_block(a, b) > TOLERANCE
