"""The book in a browser: whole, live, and without the network."""

import functools
import http.server
import json
import re
import threading
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import build_book
from normlab import exercises

MOBILE = {"viewport": {"width": 360, "height": 740}}
WIDE = {"viewport": {"width": 1280, "height": 900}}
# The largest page: what a reader of it loads, without what is cached from the first.
MOST_BYTES = 1_500_000


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def book():
    """The folder of the book, built anew where something has changed."""
    said, right = build_book.build()
    assert right, said
    return build_book.HTML


@pytest.fixture(scope="session")
def served(book):
    """The address at which a plain file server shows the book."""
    handler = functools.partial(Quiet, directory=book)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def all_pages(book):
    """The pages, as paths from the book's folder."""
    found = [p.relative_to(book).as_posix() for p in sorted(book.rglob("*.html"))]
    return [p for p in found if not p.startswith(("_static/", "_sources/"))]


@pytest.fixture(scope="session")
def visit(chromium, served):
    """Open a page of the book in one of a few tabs; the network beyond it is cut."""
    tabs = {}

    def visit(path, **options):
        key = json.dumps(options, sort_keys=True)
        if key not in tabs:
            tab = chromium.new_context(**options).new_page()
            tab.on("pageerror", lambda error: tab.complaints.append(error.stack))
            tab.on("console", lambda m: m.type == "error" and note(tab, m.text))
            tab.route(re.compile("^(?!blob:|data:)"), functools.partial(fetch, tab))
            tab.on("response", lambda r: r.status >= 400 and note(tab, r.url))
            tabs[key] = tab
        tab = tabs[key]
        tab.complaints, tab.asked = [], []
        tab.goto(path if ":" in path else served + path)
        tab.wait_for_function(
            "() => document.readyState === 'complete' &&"
            " [...document.querySelectorAll('.normlab-widget')]"
            ".every(place => ['yes', 'failed'].includes(place.dataset.mounted))"
        )
        return tab

    def note(tab, text):
        tab.complaints.append(text)

    def fetch(tab, route):
        url = route.request.url
        tab.asked.append(url)
        if url.startswith((served, build_book.HTML.as_uri())):
            route.continue_()
        else:
            tab.complaints.append(f"asked for {url}")
            route.abort()

    yield visit
    for tab in tabs.values():
        tab.context.close()


def serious(tab, contrast):
    """axe's serious findings, one line each."""
    options = {
        "resultTypes": ["violations"],
        "preload": False,
        # Two thirds of axe's time, so not on every page: all have one style sheet.
        "rules": {"color-contrast": {"enabled": contrast}},
    }
    found = Axe().run(tab, options=options)
    return [
        f"{v['id']}: {node['html'][:120]}"
        for v in found.response["violations"]
        if v["impact"] in {"serious", "critical"}
        for node in v["nodes"]
    ]


# What a page holds, gathered in one go.
HOLDS = """() => ({
  links: [...document.querySelectorAll("a[href]")].map(a => a.href),
  ids: [...document.querySelectorAll("[id]")].map(e => e.id),
  unnamed: [...document.querySelectorAll(".bd-article img, img:not([alt])")]
    .filter(i => !i.alt.trim()).map(i => i.outerHTML),
  dull: [...document.querySelectorAll("img")]
    .filter(i => /^[0-9a-f]{20,}|\\.(png|svg)$|^<Figure/.test(i.alt)).map(i => i.alt),
  mounted: [...document.querySelectorAll(".normlab-widget")]
    .map(place => place.dataset.mounted),
  math: document.querySelectorAll(".math").length,
  unset: [...document.querySelectorAll(".math")]
    .filter(m => !m.querySelector("mjx-math")).map(m => m.textContent),
  merror: [...document.querySelectorAll("mjx-merror, mjx-mtext[style*=red]")]
    .map(e => e.textContent),
  overflow: document.documentElement.scrollWidth - innerWidth,
})"""


@pytest.fixture(scope="session")
def crawl(visit, all_pages):
    """What each page holds, and what it complained of, on a narrow screen."""
    found = {}
    for path in all_pages:
        if path == "index.html":  # sends on to the first page
            continue
        tab = visit(path, **MOBILE)
        if tab.locator(".math").count():
            tab.wait_for_selector("mjx-container", state="attached")
            # Math that is out of view is set when it comes in view, and here at once.
            tab.evaluate(
                "() => MathJax.startup.promise"
                ".then(() => MathJax.startup.document.lazyTypesetAll())"
            )
        found[path] = tab.evaluate(HOLDS)
        found[path]["complaints"] = tab.complaints
        found[path]["serious"] = serious(tab, contrast=False)
    return found


def test_the_book_has_every_chapter_and_page(crawl):
    chapters = [path for path in crawl if path.startswith("notebooks/")]
    sources = sorted((build_book.ROOT / "notebooks").glob("*.ipynb"))
    assert [Path(path).stem for path in chapters] == [path.stem for path in sources]
    for (
        name
    ) in "intro playground glossary references api instructors changelog".split():
        assert f"book/{name}.html" in crawl


def test_no_page_asks_another_machine_or_reports_an_error(crawl):
    assert {path: p["complaints"] for path, p in crawl.items() if p["complaints"]} == {}


def test_no_page_scrolls_sideways_on_a_phone(crawl):
    assert {path: p["overflow"] for path, p in crawl.items() if p["overflow"] > 0} == {}


def test_every_picture_says_what_it_shows(crawl):
    bad = {path: p["unnamed"] + p["dull"] for path, p in crawl.items()}
    assert {path: pictures for path, pictures in bad.items() if pictures} == {}


def test_every_formula_is_set(crawl):
    assert sum(page["math"] for page in crawl.values()) > 100
    assert {path: p["unset"] for path, p in crawl.items() if p["unset"]} == {}
    assert {path: p["merror"] for path, p in crawl.items() if p["merror"]} == {}


def test_every_explorer_is_live(crawl):
    mounted = {path: p["mounted"] for path, p in crawl.items() if p["mounted"]}
    assert {path for path, places in mounted.items() if set(places) != {"yes"}} == set()
    assert {"book/intro.html", "book/playground.html"} < mounted.keys()
    assert sum(path.startswith("notebooks/") for path in mounted) >= 6


def test_no_link_inside_the_book_is_dead(crawl, book, served):
    dead = set()
    for path, page in crawl.items():
        for link in page["links"]:
            url, fragment = urldefrag(urljoin(served + path, link))
            if not url.startswith(served):
                assert urlsplit(url).scheme in {"https", "http", "mailto"}, link
                continue
            target = unquote(url.removeprefix(served)) or "index.html"
            if not (book / target).is_file():
                dead.add((path, target))
            elif fragment and target in crawl and "=" not in fragment:
                if unquote(fragment) not in crawl[target]["ids"]:
                    dead.add((path, f"{target}#{fragment}"))
    assert dead == set()


def test_no_page_is_heavy(crawl, book):
    weights = {}
    for path in crawl:
        text = (book / path).read_text(encoding="utf-8")
        pictures = set(re.findall(r'<img [^>]*src="([^"]+)"', text))
        files = [(book / path).parent / unquote(picture) for picture in pictures]
        weights[path] = len(text.encode()) + sum(f.stat().st_size for f in files)
    assert {path: size for path, size in weights.items() if size > MOST_BYTES} == {}


def test_axe_finds_nothing_serious_on_any_page(crawl):
    assert {path: p["serious"] for path, p in crawl.items() if p["serious"]} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["book/intro", "book/glossary", "notebooks/05_instan"])
def test_axe_finds_nothing_serious_on_a_wide_screen(visit, all_pages, path, scheme):
    [page] = [name for name in all_pages if name.startswith(path)]
    tab = visit(page, color_scheme=scheme, **WIDE)
    assert serious(tab, contrast=True) == []


def test_a_chapter_opened_as_a_file_is_live(visit, book):
    tab = visit((book / "notebooks/06_groupnorm.html").as_uri(), **WIDE)
    picker = tab.locator(".normlab-widget[data-widget=axis_picker]").first
    picker.get_by_role("button", name="BatchNorm", exact=True).click()
    assert picker.get_by_label("Pattern").input_value() == "[N] C [H W]"
    tab.locator("mjx-container").first.wait_for()
    assert tab.complaints == []


def test_the_outputs_wait_for_the_prediction(visit):
    tab = visit("notebooks/06_groupnorm.html", **WIDE)
    answer = tab.locator("details.answer").first
    output = answer.locator(".cell_output")
    assert not output.is_visible()
    answer.locator("summary").press("Enter")
    assert output.is_visible()
    predictions = tab.locator("p.predict").count()
    # Two predictions may share a cell, and an explorer is not hidden.
    assert predictions - 3 <= tab.locator("details.answer").count() <= predictions
    tab.get_by_label("Show answers at once").check()
    tab.reload()
    assert tab.locator("details.answer .cell_output").last.is_visible()
    tab.get_by_label("Show answers at once").uncheck()


def test_the_playgrounds_address_holds_its_state(visit, served):
    tab = visit("book/playground.html", **WIDE)
    picker = tab.locator(".normlab-widget[data-widget=axis_picker]").first
    picker.get_by_role("button", name="InstanceNorm", exact=True).click()
    tab.wait_for_function("() => location.hash.includes('axis_picker-1')")
    address = tab.url
    again = visit("book/intro.html", **WIDE)
    again.goto(address)
    again.locator(".normlab-widget[data-mounted=yes]").first.wait_for()
    assert again.get_by_label("Pattern").first.input_value() == "N C [H W]"


def test_a_place_to_start_from_sets_the_playground(visit):
    tab = visit("book/playground.html", **WIDE)
    pattern = tab.get_by_label("Pattern").first
    for link in tab.locator(".states a").all():
        link.click()
        shown = link.locator("xpath=following-sibling::code").inner_text()
        expect(pattern).to_have_value(shown)
    assert tab.complaints == []


def test_the_search_finds_a_section(visit):
    tab = visit("search.html?q=gradient+accumulation", **WIDE)
    tab.locator("#search-results li a").first.wait_for()
    found = tab.locator("#search-results li a").all_inner_texts()
    assert any("BatchNorm" in text for text in found)
    assert tab.complaints == []


def test_the_notebook_of_a_chapter_can_be_downloaded(visit, book):
    tab = visit("notebooks/06_groupnorm.html", **WIDE)
    with tab.expect_download() as download:
        tab.get_by_role("link", name="Download .ipynb").click()
    source = build_book.ROOT / "notebooks" / "06_groupnorm.ipynb"
    got = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert got == json.loads(source.read_text(encoding="utf-8"))


def test_the_guide_sorts_every_exercise(visit):
    tab = visit("book/instructors.html", **WIDE)
    rows = tab.locator("#the-exercises-by-difficulty tbody tr")
    easier = rows.locator("td:nth-child(2) a").all_inner_texts()
    harder = rows.locator("td:nth-child(3) a").all_inner_texts()
    chapters = exercises.chapters().values()
    assert sorted(easier + harder) == sorted(
        exercise.number for found in chapters for exercise in found.values()
    )
    assert [n for n in easier if n.startswith("6.")] == ["6.1", "6.2", "6.3"]
    assert [n for n in harder if n.startswith("1.")] == ["1.5", "1.6"]


def test_a_chapter_names_where_it_runs(visit):
    tab = visit("notebooks/06_groupnorm.html", **WIDE)
    colab = tab.get_by_role("link", name="Colab").get_attribute("href")
    assert colab.endswith("/normlab/normlab/blob/main/notebooks/06_groupnorm.ipynb")
    tab.get_by_text("JupyterHub", exact=True).click()
    tab.get_by_label("Address of your hub").fill("https://hub.example.edu/")
    tab.get_by_role("button", name="Open", exact=True).click()
    hub = "https://hub.example.edu/hub/user-redirect/git-pull?repo="
    assert any(url.startswith(hub) for url in tab.asked)


def test_on_paper_there_are_answers_and_no_buttons(visit):
    tab = visit("notebooks/06_groupnorm.html", **WIDE)
    # Only once it has started can MathJax hear that the page is to be printed.
    tab.wait_for_function("() => window.MathJax?.startup?.promise")
    tab.evaluate("() => MathJax.startup.promise")
    tab.emulate_media(media="print")
    tab.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    assert not tab.locator(".launchers").is_visible()
    assert not tab.locator(".bd-sidebar-primary").is_visible()
    assert tab.locator("details.answer .cell_output").last.is_visible()
    tab.wait_for_function(
        "() => [...document.querySelectorAll('.math')]"
        ".every(math => math.querySelector('mjx-math'))"
    )
    tab.emulate_media(media="screen")
