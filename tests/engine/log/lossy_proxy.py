"""A proxy before an object store that loses answers, or holds requests back, as networks do."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_ENTRY = re.compile(r"/_delta_log/\d{20}\.json$")


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def is_log_entry(self) -> bool:
        return self.method == "PUT" and _ENTRY.search(urlsplit(self.path).path) is not None

    @property
    def is_probe(self) -> bool:
        return self.method == "PUT" and urlsplit(self.path).path.endswith(".probe")

    @property
    def is_seal(self) -> bool:
        return b'"stash.operation":"seal"' in self.body.replace(b": ", b":")


@dataclass
class Proxy:
    upstream: str
    address: str = ""
    answers_to_lose: int = 0
    """Of so many requests to write a log entry, the answer is lost."""
    hold_entries: bool = False
    """Requests to write a log entry are held back, until delivered; seals pass."""
    down: bool = False
    """Nothing gets through once a log entry was asked for."""
    held: list[Request] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    """What the store answered to requests to write a log entry."""
    cut: bool = False
    drops_conditions: bool = False
    """Conditional puts become plain ones, as with gateways that do not know them."""
    probe_answers_to_lose: int = 0
    probes: int = 0
    """The number of requests to write a probe."""

    def forward(self, request: Request) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.upstream).netloc)
        try:
            connection.request(request.method, request.path, request.body, request.headers)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if request.is_log_entry:
            self.statuses.append(answer.status)
        return answer.status, answer.getheaders(), body

    def deliver(self) -> None:
        """Let what was held back arrive."""
        while self.held:
            self.forward(self.held.pop(0))

    def answer(self, request: Request) -> tuple[int, list[tuple[str, str]], bytes] | None:
        """What the client gets; none if it gets nothing."""
        if self.down and (self.cut or request.is_log_entry):
            self.cut = True
            return None
        if self.hold_entries and request.is_log_entry and not request.is_seal:
            self.held.append(request)
            return None
        if self.drops_conditions:
            kept = {name: value for name, value in request.headers.items() if name.lower() != "if-none-match"}
            request = replace(request, headers=kept)
        answer = self.forward(request)
        if request.is_log_entry and self.answers_to_lose:
            self.answers_to_lose -= 1
            return None
        self.probes += request.is_probe
        if request.is_probe and self.probe_answers_to_lose:
            self.probe_answers_to_lose -= 1
            return None
        return answer


@contextmanager
def proxied(upstream: str) -> Iterator[Proxy]:
    proxy = Proxy(upstream)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = proxy.answer(Request(self.command, self.path, dict(self.headers.items()), body))
            self.close_connection = True
            if answer is None:
                return
            status, headers, content = answer
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in {"connection", "transfer-encoding"}:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = handle_any  # noqa: N815 - the server looks for these names

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    proxy.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
