"""The site: built strictly and offline, complete, and looked at in a browser at two widths, light and dark."""

import ast
import inspect
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from types import ModuleType

import pytest
import yaml

import thereexists
from tests.docs.blocks import ROOT
from tests.docs.site_hooks import PACKAGE, hooks


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site, built as `make docs` does: a warning is an error (unless --quiet is given, which hides them all).

    No proxy leads out: what asked for something would fail.
    """
    out = tmp_path_factory.mktemp("site")
    assert build(out).returncode == 0
    return out


def build(out, *more, live=False):
    mkdocs = "import gc; gc.disable(); from mkdocs.__main__ import cli; cli()"  # it ends before there is much garbage
    command = [sys.executable, "-c", mkdocs, "build", "--strict", "--site-dir", str(out), *more]
    nowhere = "http://127.0.0.1:9"
    environment = {"NO_MKDOCS_2_WARNING": "1", "http_proxy": nowhere, "https_proxy": nowhere, "PATH": "/usr/bin:/bin"}
    environment["THEREEXISTS_LIVE"] = "yes" if live else "no"  # run the examples, and explore: a minute
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    print(done.stdout, done.stderr)
    return done


class Assets(HTMLParser):
    """Everything that a page loads by itself; links that a reader may follow are not among it."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        loads = {"script": "src", "img": "src", "iframe": "src", "source": "src"}.get(tag)
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "preconnect", "modulepreload"):
            loads = "href"
        if loads and given.get(loads):
            self.found.append(given[loads])


def outside(html):
    parser = Assets()
    parser.feed(html)
    return [url for url in parser.found if re.match(r"(https?:)?//", url)]


def test_no_page_loads_anything_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        assert outside(page.read_text(encoding="utf-8")) == [], page.name


def test_an_asset_from_elsewhere_would_be_seen():
    assert outside('<script src="https://unpkg.com/x"></script><a href="https://example.org">a</a>') == [
        "https://unpkg.com/x"
    ]


@pytest.mark.slow
def test_a_broken_link_fails_the_build(tmp_path):
    """Planted fault: a page with a link to nowhere."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for name in ("src", "examples", "benchmarks", "CHANGELOG.md"):
        (tmp_path / name).symlink_to(ROOT / name)
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    config["nav"] = [{"Home": "index.md"}]
    config["plugins"] = ["search"]
    config["not_in_nav"] = "*.md\n/reference/\n/source/\n"
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(config))
    with (tmp_path / "docs" / "index.md").open("a") as page:
        page.write("\n[nowhere](nowhere.md)\n")
    done = build(tmp_path / "out", "-f", str(tmp_path / "mkdocs.yml"))
    assert done.returncode != 0
    assert done.stderr.count("WARNING") == 1
    assert "nowhere.md" in done.stderr


def test_the_reference_has_every_public_name(site):
    reference = hooks()
    modules = {module for _, modules in reference.REFERENCE.values() for module in modules}
    public = [getattr(thereexists, name) for name in dir(thereexists)]
    assert {value.__name__ for value in public if isinstance(value, ModuleType)} <= modules
    for name, (_, listed) in reference.REFERENCE.items():
        page = (site / "reference" / f"{name}.html").read_text(encoding="utf-8")
        for module in listed:
            for public, path in reference.public_names(module).items():
                assert path is None or f'id="{path}"' in page, f"{module}.{public}"
    for public in dir(thereexists):
        known = reference.public_names("thereexists")
        assert public in known or public == "__version__"


def test_steps_of_the_proof_link_to_their_files(site):
    page = (site / "proof.html").read_text(encoding="utf-8")
    steps = [f"faithful/{s}" for s in ("quantise", "selective_shift", "value_mapping", "softmax_limit", "sparse_shift")]
    for step in (*steps, "compact/blocks"):
        target = f"source/src/thereexists/constructions/{step}.html"
        assert target in page
        assert f"constructions/{step}.py" in (site / target).read_text(encoding="utf-8")


def test_the_picture_of_the_house_is_true():
    text = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    drawn = set(re.findall(r"^  ([a-z_]+)/ ", text, flags=re.M))
    assert drawn == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    for file in re.findall(r"\b([a-z_]+\.py)\b", text.split("```text")[1].split("```")[0]):
        assert list(PACKAGE.rglob(file)) or list(ROOT.glob(f"tests/**/{file}")), file


def test_the_pictures_of_the_proof_come_from_the_script():
    """Every picture that the page shows is one that the script draws."""
    tree = ast.parse((ROOT / "benchmarks" / "proof_pictures.py").read_text())
    (pictures,) = (n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "PICTURES")
    drawn = {f"img/proof-{ast.literal_eval(key)}.svg" for key in pictures.keys}
    shown = set(re.findall(r"\((img/[^)]+)\)", (ROOT / "docs" / "proof.md").read_text(encoding="utf-8")))
    assert shown == drawn


def visit(browser, site, name, width=1280, scheme="light"):
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
    noise = []
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("requestfailed", lambda request: noise.append(request.url))
    page.on("request", lambda r: noise.append(r.url) if not r.url.startswith((site.as_uri(), "data:")) else None)
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_load_state("networkidle")
    return page, noise


@pytest.mark.parametrize(
    "name",
    [
        "index",
        "proof",
        pytest.param("patterns", marks=pytest.mark.slow),
        pytest.param("reference/witnesses", marks=pytest.mark.slow),
    ],
)
def test_pages_are_silent_and_fit(browser, site, name):
    colours = set()
    for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light")):
        page, noise = visit(browser, site, name, width, scheme)
        assert noise == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        broken = "[...document.images].filter(image => image.complete && !image.naturalWidth).length"
        assert page.evaluate(broken) == 0
        colours.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.context.close()
    assert len(colours) == 2


def test_search_works_from_the_file_system(browser, site):
    page, noise = visit(browser, site, "index")
    page.click("input.md-search__input")
    page.keyboard.type("certificate", delay=20)
    page.wait_for_selector(".md-search-result__item", timeout=20_000)
    assert noise == []
    assert "ertificate" in page.inner_text(".md-search-result__list")


def test_formulas_are_typeset_without_a_script(site):
    pytest.importorskip("latex2mathml")
    page = (site / "proof.html").read_text(encoding="utf-8")
    assert page.count("<math") > 20
    assert 'display="block"' in page
    for name in ("proof", "notation", "certificates"):
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        assert "arithmatex" not in text
        assert not re.search(r"\$[^$<]+\$", re.sub(r"<(pre|code|math|script).*?</\1>", "", text, flags=re.S))


def test_pages_lead_on_and_pictures_have_a_dark_version(browser, site):
    page, _ = visit(browser, site, "proof", scheme="dark")
    assert page.locator("a.md-footer__link--prev").count() == page.locator("a.md-footer__link--next").count() == 1
    filters = page.evaluate("[...document.querySelectorAll('.md-typeset img')].map(i => getComputedStyle(i).filter)")
    assert filters
    assert all("invert" in one for one in filters)
    page.goto((site / "notation.html").as_uri())
    broken = (
        "[...document.querySelectorAll('td code')].filter(c => c.getClientRects().length > 1).map(c => c.textContent)"
    )
    assert page.evaluate(broken) == []  # code in tables stays in one line
    page.context.close()


def test_the_notebooks_are_pages(site):
    for script in (ROOT / "examples").glob("0*.py"):
        assert "<pre" in (site / "notebooks" / f"{script.stem}.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_site_as_it_is_published(browser, tmp_path):
    """With everything run: explore live on the front page, and what the notebooks print."""
    assert build(tmp_path, live=True).returncode == 0
    notebook = (tmp_path / "notebooks" / "01_my_function.html").read_text(encoding="utf-8")
    assert "verified from the files alone: True" in notebook
    for script in (ROOT / "examples").glob("0*.py"):
        shown = (tmp_path / "notebooks" / f"{script.stem}.html").read_text(encoding="utf-8")
        results = shown.split('<div class="result">')[1:]
        assert any("<svg viewBox" in result or '<img alt="' in result for result in results), script.stem
    page, noise = visit(browser, tmp_path, "index")
    live = page.frame_locator("iframe.live")
    page.locator("iframe.live").scroll_into_view_if_needed()  # a frame outside the window loads late and stands still
    live.locator("#log button").nth(2).wait_for()
    live.locator("#next").click()
    assert live.locator("#says").text_content().startswith("Quantiser:")
    assert noise == []
    page.context.close()


@pytest.mark.parametrize("name", ["build", "Target", "plan", "certify", "verify", "load", "trace", "report", "explore",
                                  "export", "Faithful", "Compact", "Table", "memorise"])  # fmt: skip
def test_the_main_path_is_explained_argument_by_argument(name):
    """Every parameter by its name; what comes back; what is refused; an example."""
    what = getattr(thereexists, name)
    text = inspect.getdoc(what) or ""
    listed = text.partition("\nArgs:\n")[2].partition("\n\n")[0]
    for parameter in inspect.signature(what).parameters.values():
        shown = f"**{parameter.name}" if parameter.kind is parameter.VAR_KEYWORD else parameter.name
        assert re.search(rf"^    {re.escape(shown)}: ", listed, flags=re.M), f"{name}: {shown}"
    if not isinstance(what, type):
        assert "\nReturns:\n" in text or name == "explore"
        assert "\nRaises:\n" in text
    assert "te." in text or name in ("Target", "explore")


def test_the_reference_begins_with_build():
    names = [name for name, path in hooks().public_names("thereexists").items() if path is not None]
    assert names[:5] == ["build", "Target", "plan", "certify", "verify"]
    assert names.index("build") < names.index("Grid")
