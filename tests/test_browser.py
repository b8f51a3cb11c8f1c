"""The browser of the tests notices what its users rely on it to notice."""

from __future__ import annotations

from pathlib import Path

from tests.browser import Browser

WELL = "<!doctype html><title>well</title><p>seen<script>document.title += '!'</script>"


def write(folder: Path, name: str, html: str) -> str:
    page = folder / name
    page.write_text(html, encoding="utf-8")
    return page.as_uri()


def test_a_page_that_is_well_is_silent(browser: Browser, tmp_path: Path) -> None:
    """Its scripts ran, nothing was logged, and the page is all that was asked for."""
    page, url = browser.page(), write(tmp_path, "well.html", WELL)
    page.open(url)
    assert page.wait_for("document.title") == "well!"
    assert (page.errors, page.requests, page.outside_requests) == ([], [url], [])


def test_errors_and_requests_to_others_are_noticed(browser: Browser, tmp_path: Path) -> None:
    """Whether a script raises, logs, or asks another machine, also from a worker."""
    html = """<!doctype html><img src="https://example.com/a.png"><script>
        console.error("told", 1);
        new Worker(URL.createObjectURL(new Blob(['fetch("https://example.com/b").catch(() => postMessage(1))'])))
            .onmessage = () => { document.title = "asked" };
        setTimeout(() => { throw new Error("raised") })
    </script>"""
    page = browser.page()
    page.open(write(tmp_path, "ill.html", html))
    page.wait_for("document.title === 'asked'")
    assert {"https://example.com/a.png", "https://example.com/b"} == set(page.outside_requests)
    assert "told 1" in page.errors
    assert any("Error: raised" in error for error in page.errors)


def test_a_page_is_shown_as_wide_and_as_dark_as_it_is_asked_to_be(browser: Browser, tmp_path: Path) -> None:
    """And whatever is seen can be kept as a picture."""
    page = browser.page(width=400, scheme="dark")
    page.open(write(tmp_path, "well.html", WELL))
    assert page.evaluate("[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]") == [400, True]
    page.evaluate("document.body.style.background = 'rgb(200, 10, 60)'")
    assert page.colour_at(300, 300) == (200, 10, 60)
    page.take_picture(tmp_path / "seen.png")
    assert (tmp_path / "seen.png").read_bytes().startswith(b"\x89PNG")
