"""The pages in a real browser: headless Chromium, where there is one."""

import pytest


def visit(browser, file, **context):
    """The page, and everything it said or asked for beyond itself."""
    page = browser.new_context(**context).new_page()
    noise = []
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("request", lambda request: noise.append(request.url) if request.url != file.as_uri() else None)
    page.goto(file.as_uri())
    return page, noise


@pytest.fixture(scope="module")
def files(folders, head, tokens, machines, page_of, tmp_path_factory):
    at = tmp_path_factory.mktemp("pages")
    every = {**folders, **machines, "head": head[1], "tokens": tokens["memorise"]}
    return {kind: page_of(every[kind]).save(at / f"{kind}.html") for kind in every}


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["equivariant", "compact", "sparse", "head", "tokens", "doubling", "counting"])
def test_a_page_loads_silently_and_fits(browser, files, kind):
    page, noise = visit(browser, files[kind])
    colours = set()
    for scheme, width in (("light", 1100), ("dark", 1100), ("light", 390)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert (
            page.evaluate(
                "Math.min(...[...document.querySelectorAll('svg:not(.strengths, .mark)')].map(s => s.clientHeight))"
            )
            > 20
        )
        colours.add(background(page))
    assert noise == []
    assert page.locator("svg").count() == page.get_by_role("img").count() > 0
    assert len(colours) == 2
    page.context.close()


def test_noise_would_be_heard(browser, files, tmp_path):
    """Planted faults: a script, which the page's own policy stops aloud, and a picture from elsewhere without it."""
    document = files["compact"].read_text(encoding="utf-8")
    scripted, asking = tmp_path / "scripted.html", tmp_path / "asking.html"
    scripted.write_text(document.replace("</main>", "<script>document.body.textContent = ''</script></main>"))
    page, noise = visit(browser, scripted)
    assert any("Content Security Policy" in line for line in noise)
    assert "What was built" in page.inner_text("body")
    asking.write_text('<img src="http://127.0.0.1:9/x.png">')
    assert any("127.0.0.1" in line for line in visit(browser, asking)[1])


def test_keys_lead_through_the_page(browser, files):
    page, _ = visit(browser, files["sparse"])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "What was built"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**#stages")  # the address follows the key a moment later
    page.context.close()


def test_a_head_can_be_zoomed_and_flipped_without_a_script(browser, files):
    page, noise = visit(browser, files["head"], viewport={"width": 1000, "height": 900})
    wide = "document.querySelector('.pane svg').clientWidth"
    shown = "[...document.querySelectorAll('.layer')].map(l => getComputedStyle(l).display)"
    whole, pane = page.evaluate(wide), page.locator(".pane")
    assert page.evaluate(shown) == ["inline", "none", "none"]
    page.check("#zoom3")
    assert page.evaluate(wide) == pytest.approx(4 * whole, abs=2)
    pane.evaluate("p => { p.scrollLeft = 99; }")
    before = pane.screenshot()
    page.focus("#layer1")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(shown) == ["none", "inline", "none"]
    assert pane.evaluate("p => p.scrollLeft") == 99  # the same place of another layer
    assert pane.screenshot() != before  # the mask is drawn, from the page itself
    assert noise == []
    page.context.close()


def test_dark_pages_print_on_white(browser, files):
    page, _ = visit(browser, files["faithful"], color_scheme="dark")
    dark = background(page)
    page.emulate_media(media="print", color_scheme="dark")
    assert background(page) == "rgb(255, 255, 255)" != dark
    page.set_viewport_size({"width": 680, "height": 960})  # what A4 leaves between its margins
    assert page.evaluate("document.documentElement.scrollWidth") <= 680
    assert page.evaluate("[...document.querySelectorAll('.wide')].every(e => e.scrollWidth <= e.clientWidth)")
    assert page.pdf().startswith(b"%PDF")
