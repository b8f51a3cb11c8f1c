"""The site is whole: every page is in it once, its links lead somewhere, and nothing on it comes from elsewhere."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urldefrag

import pytest

from docs import website
from docs.navigation import misplaced
from tests.browser import Browser
from tests.conftest import ROOT

LOOKED_AT = ("index.html", "architecture.html", "store.html", "reference/cli.html", "reference/types.html")
NO_PROSE = {"code", "pre", "script", "style"}
SEARCHED = """[...document.querySelectorAll("*")].map(found => found.shadowRoot?.textContent ?? "").join("")"""


@dataclass
class Html(HTMLParser):
    """What a page has and what it leads to."""

    links: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    """What is fetched to show it."""
    anchors: set[str] = field(default_factory=set)
    prose: list[str] = field(default_factory=list)
    """What stands in it as words, and not as code."""
    _inside: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        if tag in NO_PROSE:
            self._inside.append(tag)
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        self.parts += [found[name] for name in ("src", "srcset", "data") if name in found]
        if tag == "link" and found.get("rel") != "canonical":
            self.parts.append(found["href"])
        elif tag == "a" and "href" in found:
            self.links.append(found["href"])

    def handle_endtag(self, tag: str) -> None:
        if tag in NO_PROSE:
            self._inside.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.prose.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    assert website.build(folder) == ""
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Html]:
    read = {}
    for path in sorted(site.rglob("*.html")):
        page = Html()
        page.feed(path.read_text(encoding="utf-8"))
        read[path] = page
    return read


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site on a server of this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_every_page_is_in_the_navigation() -> None:
    """Once, and nothing else is."""
    assert misplaced() == []


def test_every_page_is_on_the_site(site: Path) -> None:
    """Those of the top folder and the types too; what writes the pages is not."""
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    others = {Path(name).with_suffix(".html") for name in ("contributing.md", "changelog.md", "reference/types.md")}
    assert pages | others == {path.relative_to(site) for path in site.rglob("*.html")} - {Path("404.html")}
    assert list(site.rglob("*.py")) == []


def test_every_link_of_the_site_leads_somewhere(site: Path, pages: dict[Path, Html]) -> None:
    """To a file that is there, and to an anchor that is in it."""
    broken = []
    for path, page in pages.items():
        for link in page.links:
            target, anchor = urldefrag(link)
            if "://" in link or path.name == "404.html":
                continue
            there = (path.parent / unquote(target)).resolve() if target else path
            there = there / "index.html" if there.is_dir() else there
            if not there.is_file() or (anchor and there in pages and anchor not in pages[there].anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_nothing_of_the_markup_is_left(site: Path, pages: dict[Path, Html]) -> None:
    """What the code host understands the site does too."""
    left = re.compile(r"`|\*\*|\]\(|^\s*\|", re.MULTILINE)
    found = {
        str(path.relative_to(site)): [said for said in page.prose if left.search(said)] for path, page in pages.items()
    }
    assert {path: said for path, said in found.items() if said} == {}


def test_nothing_on_the_site_comes_from_elsewhere(site: Path, pages: dict[Path, Html]) -> None:
    """No font, script, style or picture; all of them are there."""
    for path, page in pages.items():
        own = path.parent if path.name != "404.html" else site
        assert [part for part in page.parts if "//" in part or not (own / part.lstrip("/")).is_file()] == [], path


@pytest.mark.parametrize("place", ["files", "server"])
@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_page_opens_without_a_complaint(name: str, place: str, site: Path, address: str, browser: Browser) -> None:
    """As a file and from a server: no error, nothing asked of others, every picture shown."""
    page = browser.page()
    page.open(f"{address}/{name}" if place == "server" else (site / name).as_uri())
    page.wait_for("document.querySelector('.md-search__button') && document.readyState === 'complete'")
    assert page.evaluate("[...document.images].filter(image => !image.naturalWidth).map(image => image.src)") == []
    assert (page.errors, page.outside_requests) == ([], [])


@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_page_fits_on_a_narrow_screen(name: str, site: Path, browser: Browser) -> None:
    """Wide code, tables and pictures scroll by themselves; the page does not."""
    page = browser.page(width=360, height=740)
    page.open((site / name).as_uri())
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("place", ["files", "server"])
def test_search_finds_a_word(place: str, site: Path, address: str, browser: Browser) -> None:
    """Whoever has the files alone can search them."""
    page = browser.page()
    page.open(f"{address}/index.html" if place == "server" else (site / "index.html").as_uri())
    page.wait_for("document.querySelector('.md-search__button')")
    page.evaluate("document.querySelector('.md-search__button').click()")
    page.wait_for("[...document.querySelectorAll('*')].some(found => found.shadowRoot?.activeElement)")
    page.call("Input.insertText", text="heartbeat")
    page.wait_for(f"{SEARCHED}.includes('Leaders and members')")
    assert (page.errors, page.outside_requests) == ([], [])


def test_whoever_copies_from_a_console_gets_its_commands(site: Path, browser: Browser) -> None:
    """Without prompts, and without what the commands printed."""
    page = browser.page()
    page.open((site / "howto" / "recover.html").as_uri())
    page.wait_for("document.querySelector('.language-console button')")
    page.evaluate("document.execCommand = () => { window.copied = String(getSelection()); return true }; 0")
    page.evaluate("document.querySelector('.language-console button').click()")
    commands = page.wait_for("window.copied")
    assert commands == "catalog info -s /srv/catalog --check\ncatalog debug fsck -s /srv/catalog"


def test_pages_and_pictures_are_light_or_dark_as_whoever_reads_prefers(site: Path, browser: Browser) -> None:
    """By the system's setting at first, and by the switch from then on."""
    page = browser.page(scheme="dark")
    page.open((site / "architecture.html").as_uri())
    band = page.evaluate(
        "(({x, y, width}) => [x + width * 0.35, y + width * 0.066])(document.images[0].getClientRects()[0])"
    )
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    for switch, shown, is_light in (("1", "default", True), ("2", "slate", False)):
        assert page.wait_for(scheme) != shown
        page.evaluate(f"document.querySelector('label[for=__palette_{switch}]').click()")
        page.wait_for(f"{scheme} === '{shown}'")
        assert [sum(page.colour_at(*at)) > 380 for at in ((5, 400), band)] == [is_light, is_light]


def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And leaves the site that is there as it is."""
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "docs", copy / "docs")
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, copy)
    monkeypatch.setattr(website, "ROOT", copy)
    glossary = copy / "docs" / "glossary.md"
    glossary.write_text(glossary.read_text(encoding="utf-8") + "\n[fence](store.md#no-such)\n", encoding="utf-8")
    (tmp_path / "site").mkdir()
    problems = website.build(tmp_path / "site")
    assert "the site cannot be built" in problems
    assert "no-such" in problems
    assert list((tmp_path / "site").iterdir()) == []
