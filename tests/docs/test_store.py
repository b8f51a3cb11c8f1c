"""Every example of docs/store.md does what it says."""

from __future__ import annotations

import re
import ssl
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from catalog import open_catalog
from catalog.engine.spark.session import local_session
from catalog.objects import SettingKey, SettingValue
from catalog.tools.fsck.findings import FsckCode
from tests.conftest import ROOT
from tests.docs.pages import examples, run_example
from tests.engine.log.test_object_store import certify
from tests.object_store import serve

PAGE = ROOT / "docs" / "store.md"
EXAMPLES = examples(PAGE)
FOLDER = "/var/lib/catalog"


@pytest.fixture
def object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, str]]:
    """What the page says of one, and what is here instead: behind TLS, with an authority of its own."""
    monkeypatch.setenv("SSL_CERT_FILE", "")  # so that what a store sets is undone after the test
    monkeypatch.delenv("SSL_CERT_FILE")
    authority = certify(tmp_path)
    for port in serve(tmp_path / "server.pem", tmp_path / "server.key"):
        address = f"https://127.0.0.1:{port}"
        request = urllib.request.Request(f"{address}/bucket", method="PUT")  # noqa: S310 - our own
        urllib.request.urlopen(request, context=ssl.create_default_context(cafile=authority)).close()  # noqa: S310
        yield {"https://objects.example.com": address, "/etc/ssl/authority.pem": str(authority)}


def test_the_examples_run_in_order(tmp_path: Path, object_store: Mapping[str, str]) -> None:
    """Each builds on those before it; the retry is one."""
    names: dict[str, Any] = {}
    store = tmp_path / "store"
    for section, found in EXAMPLES.items():
        for example in found if section != "Spark" else ():
            run_example(example, names, {FOLDER: str(store), **object_store})
    with open_catalog(store, "member") as catalog, open_catalog(store, "member") as other:
        seen: list[str] = []

        def interrupted(tx: Any) -> None:  # noqa: ANN401 - as on the page
            seen.append(tx.get(SettingKey(name="colour")).value)
            if len(seen) == 1:
                with other.transaction() as first:
                    first.update(SettingKey(name="colour"), SettingValue(value="blue"))
            tx.update(SettingKey(name="colour"), SettingValue(value="grey"))

        names["run"](catalog, interrupted)
        assert seen == ["green", "blue"]


@pytest.mark.spark
def test_the_examples_in_spark_run(tmp_path: Path) -> None:
    """On the one session that all tests of Spark share."""
    local_session(settings={"spark.master": "local[2]"})
    names: dict[str, object] = {}
    for section, found in EXAMPLES.items():
        for example in found if section != "Object stores" else ():
            run_example(example, names, {FOLDER: str(tmp_path / "store")})


def test_every_code_of_a_finding_is_explained() -> None:
    """Those that fsck has, and no others."""
    assert set(re.findall(r"\bF\d{3}\b", PAGE.read_text(encoding="utf-8"))) == set(FsckCode)
