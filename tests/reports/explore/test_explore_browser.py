"""The page of explore in a real browser: silent, usable by mouse, keyboard and ear, on a phone, in light and dark."""

import itertools
import re

import pytest

from tests.reports.pages import serving

NAMED = re.compile(r"\S")


def expect(what):
    from playwright.sync_api import expect as assertions  # here: not where there is no browser

    return assertions(what)


@pytest.fixture(scope="module")
def servers(folders, tokens, machines, hostile):
    with (
        serving(machines["doubling"]) as doubling,
        serving(machines["counting"]) as counting,
        serving(folders["faithful"]) as faithful,
        serving(folders["wide"]) as wide,
        serving(folders["compact"]) as compact,
        serving(tokens["memorise"]) as words,
        serving(hostile) as evil,
    ):
        yield {
            "faithful": faithful, "wide": wide, "compact": compact, "words": words, "doubling": doubling,
            "counting": counting, "hostile": evil,
        }  # fmt: skip


def visit(browser, server, **context):
    """The page, and everything it said, or asked of others than its own server."""
    page = browser.new_context(**context).new_page()
    noise = []
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("dialog", lambda dialog: (noise.append("a dialog"), dialog.dismiss()))
    page.on("request", lambda asked: None if asked.url.startswith(server.url) else noise.append(asked.url))
    page.goto(server.url)
    page.wait_for_selector("#log button")
    return page, noise


@pytest.fixture
def page(browser, servers):
    opened, noise = visit(browser, servers["faithful"], reduced_motion="reduce")
    yield opened
    assert noise == []
    opened.context.close()


def says(page):
    return page.inner_text("#says")


def places(page):
    return page.evaluate("[...document.querySelectorAll('#picture .token')].map(t => t.style.transform)")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["faithful", "wide", "compact", "words", "doubling", "counting", "hostile"])
def test_it_loads_silently_and_fits(browser, servers, kind):
    page, noise = visit(browser, servers[kind])
    colours = set()
    for scheme, width in (("light", 1200), ("dark", 1200), ("light", 390)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        page.click("#first")
        page.click("#next")
        page.click("#last")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.getElementById('error').hidden")
        colours.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert noise == []
    assert len(colours) == 2
    page.context.close()


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("kind", ["doubling", "counting"])
def test_nothing_of_an_automaton_stands_outside_its_picture(browser, servers, kind, width):
    """Every text and every mark of the picture, in every frame."""
    page, _ = visit(browser, servers[kind], viewport={"width": width, "height": 800})
    outside = """() => { const box = document.getElementById('picture').getBoundingClientRect();
      return [...document.querySelectorAll('#picture text, #picture circle, #picture rect')].filter((part) => {
        const at = part.getBoundingClientRect();
        return at.left < box.left - 1 || at.right > box.right + 1 || at.bottom > box.bottom + 1; })
        .map((part) => part.outerHTML); }"""
    page.click("#first")
    for _ in range(3):
        assert page.evaluate(outside) == []
        page.click("#next")
    page.context.close()


def test_hostile_text_stays_text(browser, servers):
    page, noise = visit(browser, servers["hostile"])
    assert page.inner_text("h1").startswith("</title><script>window.pwned = 1</script>")
    assert page.evaluate("window.pwned === undefined && document.scripts.length === 1 && !document.images.length")
    assert noise == []
    # Planted fault: had the text been written as markup, the policy would have stopped its script, aloud.
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.pwned=2>')")
    page.wait_for_timeout(300)
    assert any("Content Security Policy" in line for line in noise)
    assert page.evaluate("window.pwned === undefined")
    page.context.close()


def test_changes_one_after_the_other(page):
    assert says(page).startswith("The input.")
    seen, where = [], [places(page)]
    for _ in range(7):
        page.click("#next")
        seen.append(says(page).split(":")[0])
        where.append(places(page))
    assert seen == [*["Quantiser"] * 2, *["Selective shift"] * 2, "Global shift", *["Value mapping"] * 2]
    assert all(a != b for a, b in itertools.pairwise(where))  # every change is seen in the picture
    for _ in range(2):  # there is no further one
        page.click("#next")
        assert says(page).startswith("The output: no entry is further than")
    page.click("#previous")
    expect(page.locator("#where")).to_contain_text("Change 7 of 7")
    page.click("#first")
    assert places(page) == where[0]


def test_single_layers_and_the_number_of_a_layer(page):
    page.click("#next")
    layer = int(page.input_value("#layer"))
    picture = places(page)
    page.click("#step")
    while int(page.input_value("#layer")) == layer + 1 and says(page) != "This layer changes nothing.":
        layer += 1
        page.click("#step")
    assert says(page) == "This layer changes nothing."
    assert page.locator("#log [aria-current]").count() == 0
    page.click("#back")
    assert int(page.input_value("#layer")) == layer
    page.fill("#layer", "11")
    page.press("#layer", "Enter")
    expect(page.locator("#where")).to_contain_text("context, layer")
    page.wait_for_selector("#heads table")
    assert page.locator("#heads table").count() == 2
    assert picture != places(page)
    page.fill("#layer", "999999")
    page.press("#layer", "Enter")
    assert page.input_value("#layer") == page.get_attribute("#layer", "max")


def test_the_input_changes_the_output(page):
    before = page.inner_text("#compare-table")
    hair = page.get_attribute("#hair", "d")
    page.focus("#x-0-0")
    page.keyboard.press("Home")  # a slider by keyboard: to its lowest value
    expect(page.locator("#compare-table")).not_to_have_text(before, use_inner_text=True)
    assert page.get_attribute("#hair", "d") != hair  # the crosshair follows
    assert page.inner_text(".slider output >> nth=0") == "0"
    after = page.inner_text("#compare-table")
    page.click("#random")
    expect(page.locator("#compare-table")).not_to_have_text(after, use_inner_text=True)


def test_playing_and_pausing(page):
    page.clock.install()
    page.click("#play")
    assert page.get_attribute("#play", "aria-pressed") == "true"
    expect(page.locator("#play")).to_have_text("Pause")
    page.clock.run_for(2100)
    expect(page.locator("#where")).to_contain_text("Change 2 of 7")
    page.click("#play")
    page.clock.run_for(3000)
    expect(page.locator("#where")).to_contain_text("Change 2 of 7")
    for stop in ("Change 4 of 7", "Change 5 of 7", "Change 7 of 7", "The output"):  # a stop at the end of each chapter
        page.click("#play")
        page.clock.run_for(9000)
        expect(page.locator("#where")).to_contain_text(stop)
        expect(page.locator("#play")).to_have_text("Play")


def test_keys(page):
    page.evaluate("document.activeElement.blur()")
    for key, where in (
        ("ArrowRight", "Change 1 of 7"), ("ArrowRight", "Change 2 of 7"), ("ArrowLeft", "Change 1 of 7"),
        ("End", "The output"), ("Home", "Change 0 of 7"), ("Shift+ArrowRight", "layer 1 of"),
    ):  # fmt: skip
        page.keyboard.press(key)
        expect(page.locator("#where")).to_contain_text(where)
    page.keyboard.press("Space")
    expect(page.locator("#play")).to_have_text("Pause")
    page.keyboard.press("Space")
    expect(page.locator("#play")).to_have_text("Play")


def test_every_control_has_a_name_and_a_place_in_the_order(page):
    for role in ("button", "slider", "spinbutton", "img", "table"):
        count = page.get_by_role(role).count()
        assert count > 0 or role == "table"
        if role != "table":
            assert page.get_by_role(role, name=NAMED).count() == count, role
    assert page.get_by_role("button", name="Next change").count() == 1
    assert page.get_by_role("slider", name="token 0").count() == 1
    assert page.get_by_role("spinbutton", name="Layer").count() == 1
    assert page.get_attribute("#says", "aria-live") == "polite"
    assert page.get_attribute("#error", "role") == "alert"
    order = []
    page.evaluate("document.activeElement.blur()")
    for _ in range(22):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", f"the focus on {order[-1]} cannot be seen"
    chapters = ["Quantise", "Ids by selective shifts", "Distinct ids", "Values", "Output"]
    assert order.pop(0).startswith("certified d_1 ≤")
    wanted = [
        "x-0-0",
        "x-1-0",
        "random",
        "map-across",
        "map-up",
        "map-out",
        "map",
        *chapters,
        "frame",
        "first",
        "previous",
        "play",
        "next",
        "last",
        "back",
        "layer",
        "step",
    ]
    assert order == wanted


def test_the_scrubber_and_the_list_lead_to_the_same_place(page):
    page.focus("#frame")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#where")).to_contain_text("Change 3 of 7")
    assert says(page) in page.get_attribute("#frame", "aria-valuetext")
    page.click("#log li:nth-child(6) button")
    expect(page.locator("#where")).to_contain_text("Change 5 of 7")
    assert page.get_attribute("#log li:nth-child(6) button", "aria-current") == "step"


def test_words(browser, servers):
    page, noise = visit(browser, servers["words"])
    assert "pes" in page.inner_text("#compare-table")
    page.fill("#words", "a cat")
    expect(page.locator("#compare-table")).to_contain_text("kočka")
    page.fill("#words", "a wolf")
    page.wait_for_selector("#error:not([hidden])")
    assert "not in the vocabulary" in page.inner_text("#error")
    page.select_option("#example", index=2)
    expect(page.locator("#compare-table")).to_contain_text("zpívají")
    assert page.evaluate("document.getElementById('error').hidden")
    assert all("400" in line for line in noise)  # the refusal, which the browser tells of
    page.context.close()


def test_a_contrast_that_can_be_read(browser, servers):
    """WCAG AA: 4.5 to 1 for the texts of the page, in both schemes."""
    for scheme in ("light", "dark"):
        page, _ = visit(browser, servers["faithful"], color_scheme=scheme)
        page.fill("#layer", "11")
        page.press("#layer", "Enter")
        page.wait_for_selector("#heads table")
        for selector in (
            "#says",
            "#where",
            "#about",
            ".chips li",
            "#play",
            "#next",
            ".log small",
            "#note",
            "td.strong",
        ):
            found = page.evaluate(_CONTRAST, selector)
            assert found is None or found >= 4.5, (scheme, selector, found)
        page.context.close()


_CONTRAST = """(selector) => {
  const node = document.querySelector(selector);
  if (!node) return null;
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  let under = node;
  while (rgb(getComputedStyle(under).backgroundColor)[3] === 0) under = under.parentElement;
  const [a, b] = [light(rgb(getComputedStyle(node).color)), light(rgb(getComputedStyle(under).backgroundColor))];
  return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
}"""


# --- the proof, seen -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        "faithful",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("compact", "words", "doubling", "counting")),
    ],
)
def test_one_screen(browser, servers, kind):
    """At 1400 × 900 nothing has to be scrolled to, in any chapter."""
    page, noise = visit(browser, servers[kind], viewport={"width": 1400, "height": 900})
    for k in range(page.locator("#chapters button").count()):
        page.click(f"#chapters li:nth-child({k + 1}) button")
        assert page.evaluate("document.documentElement.scrollHeight") <= 900
        assert page.locator("#chapters [aria-current]").count() == 1
    assert noise == []
    page.context.close()


def test_a_shift_is_explained_and_all_cubes_are_behind_it(page):
    page.click("#chapters li:nth-child(2) button")
    formula = page.inner_text("#formula")
    assert re.fullmatch(r"\d+ = 4 · \(\d+ − \d+\) = K · \(max − min\)", formula)
    assert page.locator("#picture .window").count() == 1
    assert "window" in page.text_content("#picture .window-name")
    assert page.locator("#picture .link-name").count() == 2  # the heads: max and min
    assert "max" in page.inner_text("#heads caption >> nth=0")
    assert "min" in page.inner_text("#heads caption >> nth=1")
    before = page.get_attribute("#picture .window", "x")
    page.click("#step")
    assert page.get_attribute("#picture .window", "x") != before  # the window goes on, also where nothing moves
    page.click("#chapters li:nth-child(3) button")
    points = page.evaluate(
        "[...document.querySelectorAll('#picture .points')].flatMap(p => p.getAttribute('d').match(/M[^h]*/g))"
    )
    assert len(points) == len(set(points)) == 2 * 16  # every token of every cube, no two at one place
    assert "32 different ids" in page.inner_text("#note")


def test_a_token_is_dragged(page):
    page.click("#first")
    before = page.inner_text(".slider output >> nth=0")
    box = page.locator("#picture .token circle").nth(0).bounding_box()
    page.mouse.move(box["x"] + 7, box["y"] + 7)
    page.mouse.down()
    page.mouse.move(box["x"] - 40, box["y"] + 7, steps=3)
    page.mouse.up()
    assert page.inner_text(".slider output >> nth=0") != before
    expect(page.locator("#picture .token text").nth(0)).not_to_have_text("0.928")


def test_the_crosshair_of_the_map(page):
    table = page.inner_text("#compare-table")
    box = page.locator("#map").bounding_box()
    page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 0.7 * box["height"])
    expect(page.locator("#compare-table")).not_to_have_text(table, use_inner_text=True)
    value = page.input_value("#x-0-0")
    page.focus("#map")
    page.keyboard.press("ArrowRight")
    assert float(page.input_value("#x-0-0")) == pytest.approx(float(value) + 0.25)  # one cell on
    page.select_option("#map-up", "0")  # the other axis gives way
    assert page.input_value("#map-across") == "1"
    assert "map=1%2C0%2C0" in page.url
    assert page.locator("#map rect").count() == 16 + 10  # the cells, and the key


def test_the_key_of_the_unit_that_fires(browser, servers):
    page, noise = visit(browser, servers["compact"])
    page.click("#chapters li:nth-child(4) button")
    assert page.locator("#picture .gate").count() == 2
    assert page.locator("#picture .must").count() > 0
    assert {"edges", "slots", "literals"} <= {*page.locator("#picture g > text").all_text_contents()}
    assert noise == []
    page.context.close()


@pytest.mark.slow
def test_tokens_of_a_string_are_dragged(browser, servers):
    page, noise = visit(browser, servers["doubling"])
    page.fill("#words", "a b b b")
    first, last = page.locator("#tokens button").nth(0), page.locator("#tokens button").nth(3)
    first.drag_to(last)
    assert page.input_value("#words") == "b b b a"
    page.locator("#tokens button").nth(3).press("ArrowLeft")
    assert page.input_value("#words") == "b b a b"
    assert noise == []
    page.context.close()


@pytest.mark.parametrize(
    ("kind", "width"), [("compact", 1400), ("compact", 390), ("faithful", 1400), ("faithful", 390)]
)
def test_no_label_is_cut_and_the_list_follows(browser, servers, kind, width):
    """Every text of a picture stands inside it and is whole; the current change and chapter are on the screen."""
    page, noise = visit(browser, servers[kind])
    page.set_viewport_size({"width": width, "height": 900})
    for button in ("#log li:nth-last-child(2) button", "#last"):
        page.locator(button).evaluate("(node) => node.click()")  # where the pointer is changes nothing
        outside = """() => [...document.querySelectorAll('#picture text, #map text')].filter((text) => {
            const own = text.getBoundingClientRect(), all = text.ownerSVGElement.getBoundingClientRect();
            return own.width && (own.left < all.left - 1 || own.right > all.right + 1 || /…/.test(text.textContent));
        }).map((text) => text.textContent)"""
        assert page.evaluate(outside) == []
        for box in ("#log", "#chapters"):
            shown = """(id) => { const all = document.querySelector(id).getBoundingClientRect();
                const own = document.querySelector(id + ' [aria-current]').getBoundingClientRect();
                return own.top >= all.top - 1 && own.bottom <= all.bottom + 1 &&
                  own.left >= all.left - 1 && own.right <= all.right + 1; }"""
            page.wait_for_function(shown, arg=box)
    assert noise == []
    page.context.close()
