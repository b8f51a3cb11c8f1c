"""Pages in a real browser: headless Chromium, spoken to through its debugging pipe, that reaches no other machine.

A page remembers what it asked for, and every error that it logged or raised.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
WAIT_S = 60.0
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # root has none, and the pages are our own
    "--disable-gpu",
    "--disable-software-rasterizer",  # pages are drawn without a GPU, and not by one in software either
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)


@dataclass(slots=True)
class Page:
    """An open page. `wait_for` and `evaluate` let events come in; look at `errors` and `requests` after them."""

    _browser: Browser
    _session: str
    _context: str
    errors: list[str] = field(default_factory=list)
    """What was logged as an error, raised and not caught, or asked for and not had."""
    requests: list[str] = field(default_factory=list)
    """The address of everything asked for, by workers and frames too."""
    _is_loaded: bool = False

    def open(self, url: str) -> None:
        """Go to an address, and wait until it is loaded."""
        self._is_loaded = False
        answer = self.call("Page.navigate", url=url)
        assert "errorText" not in answer, f"{url}: {answer['errorText']}"
        self._browser.wait(lambda: self._is_loaded, f"{url} to load")

    @property
    def outside_requests(self) -> list[str]:
        """What was asked of other machines."""
        inside = ("file:", "data:", "blob:", "about:", "http://127.0.0.1", "http://localhost")
        return [url for url in self.requests if not url.startswith(inside)]

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401 - whatever JavaScript answers
        """The value of an expression of JavaScript, waited for if it is a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> Any:  # noqa: ANN401 - as above
        """Wait until an expression is something that counts as true in JavaScript, and answer that."""
        seen: Any = None

        def is_so() -> bool:
            nonlocal seen
            counts, seen = self.evaluate(f"Promise.resolve({expression}).then(seen => [Boolean(seen), seen])")
            return bool(counts)

        self._browser.wait(is_so, expression)
        return seen

    def close(self) -> None:
        """Forget the page and its storage: one that stays open may go on drawing until the tests end."""
        self._browser.call("Target.disposeBrowserContext", {"browserContextId": self._context})

    def resize(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme: str) -> None:
        """Whether whoever looks prefers `light` or `dark`."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def take_picture(self, path: Path, *, whole: bool = False) -> None:
        """What is in the window as a PNG, or all of the page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def colour_at(self, x: float, y: float) -> tuple[int, int, int]:
        """Red, green and blue of a place in the window, from 0 to 255."""
        clip = {"x": x, "y": y, "width": 1, "height": 1, "scale": 1}
        shot = base64.b64decode(self.call("Page.captureScreenshot", format="png", clip=clip)["data"])
        start = shot.index(b"IDAT")
        data = shot[start + 4 : start + 4 + int.from_bytes(shot[start - 4 : start], "big")]
        _, red, green, blue, *_ = zlib.decompressobj().decompress(data)  # no filter changes the first pixel
        return red, green, blue

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        return self._browser.call(method, parameters, self._session)

    def hear(self, method: str, told: dict[str, Any]) -> None:
        match method:
            case "Page.loadEventFired":
                self._is_loaded = True
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])
            case "Runtime.exceptionThrown":
                details = told["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description") or details["text"])
            case "Runtime.consoleAPICalled" if told["type"] in {"error", "assert"}:
                self.errors.append(" ".join(str(said.get("value", said.get("description"))) for said in told["args"]))
            case "Log.entryAdded" if told["entry"]["level"] == "error":
                self.errors.append(f"{told['entry']['text']} {told['entry'].get('url', '')}".strip())


class Browser:
    """A running Chromium; each page has cookies and storage of its own."""

    def __init__(self, program: str, profile: Path) -> None:
        their_input, self._commands = os.pipe()
        self._answers, their_output = os.pipe()
        script = f'exec "$0" "$@" 3<&{their_input} 4>&{their_output}'  # the two that the debugging pipe is on
        self._process = subprocess.Popen(
            ["bash", "-c", script, program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(their_input, their_output),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_input)
        os.close(their_output)
        self._unread = b""
        self._next_id = 0
        self._results: dict[int, dict[str, Any]] = {}
        self._pages: dict[str, Page] = {}
        self.open_pages: list[Page] = []

    def page(self, *, width: int = 1280, height: int = 900, scheme: str = "light") -> Page:
        context = self.call("Target.createBrowserContext", {})["browserContextId"]
        target = self.call("Target.createTarget", {"url": "about:blank", "browserContextId": context})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = self._pages[session] = Page(self, session, context)
        self.open_pages.append(page)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)
        page.resize(width, height)
        page.prefer(scheme)
        return page

    @contextlib.contextmanager
    def closing(self) -> Iterator[Browser]:
        """Close in the end every page that was opened meanwhile."""
        before = list(self.open_pages)
        try:
            yield self
        finally:
            for page in self.open_pages:
                if page not in before:
                    page.close()
            self.open_pages = before

    def call(self, method: str, parameters: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        own = self._send(method, parameters, session)
        self.wait(lambda: own in self._results, method)
        answer = self._results.pop(own)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def wait(self, is_so: Callable[[], bool], what: str) -> None:
        """Let answers and events come in until something is so."""
        deadline = time.monotonic() + WAIT_S
        while not is_so():
            assert time.monotonic() < deadline, f"waited {WAIT_S:.0f} s for {what}"
            self._read(0.05)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._send("Browser.close", {}, None)
        try:
            self._process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def _send(self, method: str, parameters: dict[str, Any], session: str | None) -> int:
        self._next_id += 1
        command = {"id": self._next_id, "method": method, "params": parameters}
        os.write(self._commands, json.dumps(command | ({"sessionId": session} if session else {})).encode() + b"\0")
        return self._next_id

    def _read(self, timeout_s: float) -> None:
        if not select.select([self._answers], [], [], timeout_s)[0]:
            return
        read = os.read(self._answers, 1 << 20)
        assert read, f"Chromium ended with {self._process.wait()}"
        *messages, self._unread = (self._unread + read).split(b"\0")
        for message in messages:
            self._take(json.loads(message))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._results[message["id"]] = message
            return
        method, told = message["method"], message["params"]
        page = self._pages.get(message.get("sessionId", ""))
        if page is not None and method == "Target.attachedToTarget":
            self._pages[told["sessionId"]] = page  # a worker or a frame: what it does, the page does
            for enabled in ("Runtime.enable", "Network.enable", "Log.enable", "Runtime.runIfWaitingForDebugger"):
                self._send(enabled, {}, told["sessionId"])
        elif page is not None:
            page.hear(method, told)


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """Chromium for one test; the pages that the test opens are closed after it."""
    with chromium.closing():
        yield chromium


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium, if it is there, for all tests."""
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"there is no {', '.join(PROGRAMS)} on this machine; on Debian: apt-get install chromium")
    running = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield running
    running.close()
