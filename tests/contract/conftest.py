"""A memory, a folder and a bucket for each test, and one object store for all."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.places import DeltaPlace, MemoryPlace, Place

SERVER = """
import logging, sys
from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server
logging.getLogger("werkzeug").setLevel(logging.ERROR)
WSGIRequestHandler.protocol_version = "HTTP/1.1"  # connections are kept
application = create_backend_app("s3")  # without a dispatcher, which takes longer than most requests
certificate = (sys.argv[1], sys.argv[2]) if len(sys.argv) > 1 else None
server = make_server("127.0.0.1", 0, application, threaded=True, ssl_context=certificate)
print(server.port, flush=True)
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


@pytest.fixture
def bucket(object_store: str) -> DeltaPlace:
    return DeltaPlace(f"s3://{make_bucket(object_store)}/store/stash", storage_options(object_store))


@pytest.fixture
def folder(tmp_path: Path) -> DeltaPlace:
    return DeltaPlace(str(tmp_path / "store" / "stash"))


@pytest.fixture(params=["memory", "local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    match request.param:
        case "memory":
            return MemoryPlace()
        case "local":
            return DeltaPlace(str(tmp_path / "store" / "stash"))
        case _:
            found = request.getfixturevalue("bucket")
            assert isinstance(found, DeltaPlace)
            return found
