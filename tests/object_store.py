"""An object store on this machine: moto, one server for all tests of a worker."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = """
import io, socketserver, ssl, sys
from http.server import BaseHTTPRequestHandler
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer
from moto.server import create_backend_app

class Answer(ServerHandler):
    http_version = "1.1"

    def send_headers(self):
        if "Content-Length" not in self.headers and not self.status.startswith("204"):
            self.request_handler.close_connection = True  # nothing else says where the answer ends
            self.headers["Connection"] = "close"
        super().send_headers()

class Connection(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept: to open one takes as long as most requests
    disable_nagle_algorithm = True
    wbufsize = -1

    def handle_one_request(self):
        self.close_connection = True
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            return
        sent = io.BytesIO(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        answer = Answer(sent, self.wfile, self.get_stderr(), self.get_environ())
        answer.request_handler = self
        answer.run(self.server.get_app())
        self.wfile.flush()

    handle = BaseHTTPRequestHandler.handle

    def log_message(self, *told):
        pass

class Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *given):
        pass  # a client that ended

server = Server(("127.0.0.1", 0), Connection)
server.set_app(create_backend_app("s3"))  # without a dispatcher, which takes longer than most requests
if len(sys.argv) > 1:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[1:])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


def serve(*certificate: Path) -> Iterator[int]:
    """An object store on a port of this machine, in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", SERVER, *map(str, certificate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


@pytest.fixture(scope="session")
def object_store() -> Iterator[str]:
    """The address of an object store."""
    pytest.importorskip("moto", reason="the object store of these tests is moto")
    yield from (f"http://127.0.0.1:{port}" for port in serve())


def storage_options(address: str) -> dict[str, str]:
    return {
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "aws_region": "us-east-1",
        "aws_endpoint_url": address,
        "aws_allow_http": "true",
        "max_retries": "2",
        "retry_timeout": "5s",
    }


def make_bucket(address: str) -> str:
    name = f"bucket-{uuid.uuid4().hex}"
    urllib.request.urlopen(urllib.request.Request(f"{address}/{name}", method="PUT")).close()  # noqa: S310 - our own
    return name
