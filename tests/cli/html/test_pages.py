"""Pages as people see them: in a real browser, narrow and wide, light and dark, by keyboard, and on paper."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import html5lib
import pytest

from catalog.cli.commands.debug_upgrade_check import UpgradeCheckResult
from catalog.cli.html.charts import BarChart
from catalog.cli.html.upgrade_check import check_page, store_part
from catalog.tools.upgrade_check.report import CollectionReport
from catalog.upgrade import PROJECT
from tests.browser import Browser, Page
from tests.cli.conftest import Stores
from tests.cli.html import made_pages
from tests.cli.html.made_pages import HOSTILE, STAMP, failed_verdict, real_verdict, up_to_date
from tests.volatile import volatile_folder

Open = Callable[..., Page]

PAGES: dict[str, Callable[[], str]] = {
    "checks of several stores": lambda: made_pages.checks(failed_verdict(), up_to_date()),
    "a check that failed": lambda: made_pages.checks(failed_verdict()),
    "a store that is up to date": lambda: made_pages.checks(up_to_date()),
    "a hostile check": made_pages.hostile_check,
    "statistics over time": made_pages.statistics,
    "hostile statistics": lambda: made_pages.statistics(HOSTILE),
    "statistics of a year": lambda: made_pages.statistics(count=365, shape=False),
    "statistics of one measurement": lambda: made_pages.statistics(count=1),
    "statistics of nothing": lambda: made_pages.statistics(count=0, shape=False, collections=0),
}

_CONTRAST = """
[...document.querySelectorAll("main *, header *")].flatMap(element => {
    const told = [...element.childNodes].filter(node => node.nodeType === 3).map(node => node.data.trim()).join("");
    if (!told || element.closest(".unseen, title, desc") || !element.checkVisibility()) return [];
    const parse = text => {
        const numbers = text.match(/[\\d.]+/g).map(Number);
        const scale = text.startsWith("color(") ? 255 : 1;
        return [...numbers.slice(0, 3).map(part => part * scale), numbers[3] ?? 1];
    };
    const light = ([red, green, blue]) => [red, green, blue].map(part => part / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
    let behind = element, ground = [0, 0, 0, 0];
    for (; behind && ground[3] < 1; behind = behind.parentElement) {
        ground = parse(getComputedStyle(behind).backgroundColor);
    }
    const style = getComputedStyle(element);
    const [ink, paper] = [light(parse(element.closest("svg") ? style.fill : style.color)), light(ground)];
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    return ratio < 4.5 ? [`${told.slice(0, 30)}: ${ratio.toFixed(2)}`] : [];
})
"""
"""Texts that are hard to read: fainter against what is behind them than WCAG allows."""


@dataclass(frozen=True, slots=True)
class Shown:
    page: Page
    url: str


def show(browser: Browser, folder: Path, html: str, *, width: int = 1280, scheme: str = "light") -> Shown:
    """Put a page into a file, and open it."""
    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")
    page = browser.page(width=width, scheme=scheme)
    page.open(file.as_uri())
    return Shown(page, file.as_uri())


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Open:
    return lambda html, **seen: show(browser, tmp_path, html, **seen).page


@pytest.fixture(scope="module", params=PAGES)
def shown(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[Shown]:
    """Each page, opened once for all that is looked at."""
    with volatile_folder() as folder, chromium.closing():
        yield show(chromium, Path(folder), PAGES[request.param]())


def _expect_silence(shown: Shown) -> None:
    shown.page.evaluate("document.title")  # what it had to say has come by now
    assert shown.page.errors == []
    assert [url for url in shown.page.requests if not url.startswith("data:")] == [shown.url]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_valid(name: str) -> None:
    """A parser that forgives nothing takes it; each id stands once, and each that is named is there."""
    document = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(PAGES[name]())
    ids = [own.get("id") for own in document.iter() if own.get("id")]
    assert len(ids) == len(set(ids))
    named = {word for own in document.iter() for word in own.get("aria-labelledby", "").split()}
    linked = {own.get("href")[1:] for own in document.iter("a")}
    labelled = {own.get("for") for own in document.iter("label")}
    assert named | linked | labelled <= set(ids)


def test_a_page_is_silent_and_asks_nobody(shown: Shown) -> None:
    """No error in the console, no request but for itself, no script, and no sideways scrolling at any width."""
    for width in (360, 768, 1920):
        shown.page.resize(width, 900)
        assert shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
    assert shown.page.evaluate("document.scripts.length") == 0
    _expect_silence(shown)


def test_every_text_can_be_read(shown: Shown) -> None:
    """In both colour schemes, with everything unfolded."""
    shown.page.evaluate("document.querySelectorAll('details').forEach(own => { own.open = true })")
    for scheme in ("light", "dark"):
        shown.page.prefer(scheme)
        assert shown.page.evaluate(_CONTRAST) == [], scheme


def test_a_page_has_an_order_that_can_be_heard(shown: Shown) -> None:
    """Headings descend one by one, charts say what they show, tables name their columns, what scrolls has a name."""
    page = shown.page
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4,h5')].map(own => Number(own.tagName[1]))")
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    roles = [own.get("role", {}).get("value") for own in tree]
    named = {role: [] for role in ("image", "region")}  # type: dict[str, list[str]]
    for own, role in zip(tree, roles, strict=True):
        if role in named and not own["ignored"]:
            named[role].append(own["name"]["value"])
    assert len(named["image"]) == page.evaluate("document.querySelectorAll('svg[role=img]').length")
    assert all(named["image"])
    assert all(named["region"])
    assert page.evaluate("[...document.querySelectorAll('th')].every(own => own.scope)")


def test_what_a_store_says_stays_text(browser: Browser, tmp_path: Path) -> None:
    """Wherever it stands: nothing of it becomes an element, runs, or is asked for; and it can all be read."""
    for html in (made_pages.hostile_check(), made_pages.statistics(HOSTILE)):
        hostile = show(browser, tmp_path, html)
        page = hostile.page
        _expect_silence(hostile)
        assert page.evaluate("typeof window.hurt") == "undefined"
        assert page.evaluate("document.querySelectorAll('script, img, iframe, object, embed').length") == 0
        assert page.evaluate("document.body.textContent.split('<script>window.hurt=1</script>').length") > 5
        assert "\u202e" not in html
        assert "49" not in page.evaluate("document.title")


def test_a_page_refuses_scripts_and_requests_by_itself(opened: Open) -> None:
    """If an escape were ever missing, nothing would run and nobody would be asked."""
    broken = made_pages.statistics().replace("</main>", f"{HOSTILE}<style>main {{ display: none }}</style></main>")
    page = opened(broken)
    assert page.wait_for("document.querySelector('img') && document.querySelector('img').complete")
    assert page.evaluate("typeof window.hurt") == "undefined"
    assert page.evaluate("document.querySelector('main').checkVisibility()")
    assert any("Content Security Policy" in error for error in page.errors)


def test_colours_follow_the_system_or_the_switch(opened: Open) -> None:
    """By keyboard too; nothing is stored for it."""
    ground = "getComputedStyle(document.body).backgroundColor"
    page = opened(made_pages.statistics(), scheme="light")
    light = page.evaluate(ground)
    page.prefer("dark")
    dark = page.evaluate(ground)
    assert light != dark
    page.evaluate("document.getElementById('theme-auto').focus()")
    _press(page, "ArrowRight", 39)
    assert page.evaluate("document.activeElement.id") == "theme-light"
    assert page.evaluate(ground) == light
    _press(page, "ArrowRight", 39)
    page.prefer("light")
    assert page.evaluate(ground) == dark
    assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]


def test_a_page_can_be_used_by_keyboard(opened: Open) -> None:
    """First comes a way past the head; what scrolls can be reached, and what is folded opens."""
    page = opened(made_pages.checks(failed_verdict()), width=360)
    _press(page, "Tab", 9)
    assert page.evaluate("document.activeElement.className") == "skip"
    seen = set()
    while "SUMMARY" not in seen:
        _press(page, "Tab", 9)
        seen.add(page.evaluate("document.activeElement.className || document.activeElement.tagName"))
    assert seen == {"INPUT", "A", "scroll", "SUMMARY"}
    page.evaluate("document.querySelector('section > .part > summary').focus()")
    _press(page, "Enter", 13)
    assert page.evaluate("document.querySelector('section > .part').open")
    assert page.evaluate("[...document.querySelectorAll('.scroll')].every(own => own.tabIndex === 0)")


def test_a_page_is_printed_in_black_on_white(opened: Open) -> None:
    """Whatever it looks like on the screen: without its switch, with the types unfolded, and within the paper."""
    page = opened(made_pages.checks(failed_verdict(), failed_verdict()), scheme="dark")
    page.evaluate("document.getElementById('theme-dark').checked = true")
    preference = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.resize(700, 900)
    page.call("Emulation.setEmulatedMedia", media="print", features=preference)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.evaluate("document.querySelector('.theme').checkVisibility()")
    assert page.evaluate("document.querySelector('.part table').getBoundingClientRect().height") > 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    printed = page.call("Page.printToPDF", printBackground=True)["data"]
    assert base64.b64decode(printed).startswith(b"%PDF-")


def test_a_verdict_is_the_first_thing_to_be_seen(opened: Open, store_of: Stores) -> None:
    """Of real stores: whether they can be upgraded, and if not why, on the first screen; and all of them at once."""
    good, bad = real_verdict(store_of(21)), real_verdict(store_of(21), bad=True)
    page = opened(made_pages.checks(good))
    assert page.evaluate("document.querySelector('h2').innerText") == "Can be upgraded"
    assert page.evaluate("document.querySelector('.tiles').getBoundingClientRect().bottom < 900")
    assert page.evaluate("document.title").startswith(f"Can be upgraded: {good.store}")
    page = opened(made_pages.checks(bad))
    assert page.evaluate("document.querySelector('h2').innerText") == "Cannot be upgraded as it is"
    reasons = page.evaluate("[...document.querySelectorAll('.reasons li')].map(own => own.innerText)")
    assert sorted(reasons) == [
        "before the upgrade: F306: rows that encode to other bytes (21)",
        "before the upgrade: F401: duplicate values of unique fields",
        "before the upgrade: F402: references to missing rows",
    ]
    assert page.evaluate("document.querySelector('.reasons').getBoundingClientRect().bottom < 900")
    page = opened(made_pages.checks(good, bad))
    assert page.evaluate("document.querySelector('h2').innerText") == "1 of 2 stores can be upgraded"
    assert page.evaluate("document.querySelectorAll('article').length") == 2
    page.evaluate("document.querySelectorAll('tbody a')[1].click()")
    assert page.evaluate("document.querySelector('article:target h2').innerText") == "Cannot be upgraded as it is"


def test_samples_of_findings_are_shown_and_the_others_counted(opened: Open) -> None:
    """The first rows at once, those that are listed unfold, the rest is a number."""
    page = opened(made_pages.checks(failed_verdict()))
    group = "document.getElementById('store-1-v18_to_v19-rule-1')"
    assert page.evaluate(f"{group}.querySelector('h4').innerText").split("\n")[-1].endswith("1,120")
    assert page.evaluate(f"{group}.querySelectorAll('.samples')[0].rows.length") == 1 + 8
    assert page.evaluate(f"{group}.querySelectorAll('.samples')[1].rows.length") == 1 + 92
    assert "1,020 more are counted" in page.evaluate(f"{group}.innerText")


def test_charts_are_drawn_to_scale(opened: Open) -> None:
    """Bars and dots are where the numbers say, however wide the page is."""
    (rows, *_) = store_part(PROJECT, failed_verdict(), "store-1").charts
    for width in (360, 1280):
        page = opened(made_pages.checks(failed_verdict()), width=width)
        _expect_bars(page, rows)
    page = opened(made_pages.statistics(count=3))
    dots = page.evaluate(
        "(box => [...document.querySelectorAll('.charts.wide circle')].slice(0, 3)"
        ".map(own => own.getBoundingClientRect())"
        ".map(own => [(own.x + own.width / 2 - box.x) / box.width, (own.y + own.height / 2 - box.y) / box.height]))"
        "(document.querySelector('.charts.wide .trend svg').getBoundingClientRect())"
    )
    totals = [1_000 + 50, 1_040 + 1, 1_080 + 2]
    expected = [(number / 2, 1 - total / 1_500) for number, total in enumerate(totals)]
    assert [pytest.approx(own, abs=0.01) for own in expected] == dots


def test_texts_of_a_chart_keep_clear_of_each_other(opened: Open) -> None:
    """However long names and numbers are: on the narrowest screen, on a wide one, and on paper."""
    verdict, many = failed_verdict(), 888_888_888
    long = CollectionReport("the_longest_name_of_all_collections", "", many, many, many, many, 0, 0, 0, 0, 0)
    grown = replace(long, rows_after=999_999_999, bytes_after=999_999_999)
    steps = (replace(verdict.steps[0], collections=(long, grown), seconds=3_599.0, own_s=3_000.0),)
    page = opened(made_pages.checks(replace(verdict, steps=steps)))
    for width, media in ((360, "screen"), (1280, "screen"), (690, "print")):
        page.resize(width, 900)
        page.call("Emulation.setEmulatedMedia", media=media)
        gaps = page.evaluate(
            "[...document.querySelectorAll('.bars .value')].map(own => own.getBoundingClientRect().left"
            " - own.previousElementSibling.getBoundingClientRect().right)"
        )
        assert len(gaps) == 3
        assert min(gaps) > 4, (width, media)


def _expect_bars(page: Page, chart: BarChart) -> None:
    drawn: list[list[Any]] = page.evaluate(
        f"(svg => [...svg.querySelectorAll('.quiet, .strong')].map(own => [own.getAttribute('class'),"
        " own.getBoundingClientRect().width / svg.getBoundingClientRect().width]))"
        f"(document.querySelector('[aria-labelledby^={chart.id}]'))"
    )
    bars = [bar for row in chart.rows for bar in row.bars if bar.width]
    assert [[str(bar.tone), pytest.approx(bar.width / 100, abs=0.001)] for bar in bars] == drawn


def test_secrets_are_blotted_before_they_are_escaped() -> None:
    """A secret with a quote or a backtick in it is one on a page as well."""
    secret = 'hun"ter`<2>'  # noqa: S105 - nobody's
    verdict = failed_verdict(f"at {secret} there")
    shown = check_page(PROJECT, UpgradeCheckResult((verdict,)), STAMP, lambda text: text.replace(secret, "********"))
    assert "hun" not in shown
    assert "at ******** there" in shown


def _press(page: Page, key: str, code: int) -> None:
    pressed: dict[str, object] = {"key": key, "code": key, "windowsVirtualKeyCode": code}
    page.call("Input.dispatchKeyEvent", type="keyDown", text="\r" if key == "Enter" else "", **pressed)
    page.call("Input.dispatchKeyEvent", type="keyUp", **pressed)
