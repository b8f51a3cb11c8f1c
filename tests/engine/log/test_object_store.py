"""What only a network can do to a log: lose answers, deliver late, be down, speak TLS."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import pickle
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.engine.log.protocol import Operation
from catalog.errors import CommitFailedError, IndeterminateError, NoStoreError, StoreUnreachableError
from tests.engine.log.lossy_proxy import Proxy, proxied
from tests.engine.log.places import DeltaPlace, append, change, created, tail
from tests.object_store import make_bucket, serve, storage_options


@pytest.fixture
def proxy(object_store: str) -> Iterator[Proxy]:
    with proxied(object_store) as found:
        yield found


@pytest.fixture
def behind_proxy(object_store: str, proxy: Proxy) -> DeltaPlace:
    return DeltaPlace(f"s3://{make_bucket(object_store)}/stash", storage_options(proxy.address))


@pytest.mark.parametrize("lost", [1, 10])
def test_a_commit_whose_answer_is_lost_lands_once(behind_proxy: DeltaPlace, proxy: Proxy, lost: int) -> None:
    """The client tries again and is refused by its own commit; it is acknowledged once all the same."""
    log, state = created(behind_proxy)
    proxy.answers_to_lose = lost
    proxy.statuses.clear()
    asked = change(tail(log, state))
    commit = log.compare_and_append(state, asked)
    assert proxy.statuses[0] == 200
    assert set(proxy.statuses[1:]) == {412}
    assert [found.txid for found in log.commits(1, log.verify())] == [asked.txid]
    assert log.state(1) == state.after(commit)
    proxy.answers_to_lose = 0
    append(log, state.after(commit))


def test_a_commit_that_arrives_late_finds_its_version_taken(behind_proxy: DeltaPlace, proxy: Proxy) -> None:
    """What was said to have failed never lands, even if the network brings it later."""
    log, state = created(behind_proxy)
    asked = change(tail(log, state))
    proxy.hold_entries = True
    with pytest.raises(CommitFailedError, match="commit 1 of"):
        log.compare_and_append(state, asked)
    proxy.hold_entries = False
    proxy.statuses.clear()
    assert proxy.held
    proxy.deliver()
    assert set(proxy.statuses) == {412}
    assert log.commit(log.verify()).operation is Operation.SEAL
    append(log, log.state(1))
    assert asked.txid not in {found.txid for found in log.commits(0, 2)}


def test_a_commit_into_a_dead_network_is_in_doubt(behind_proxy: DeltaPlace, proxy: Proxy) -> None:
    """Nobody knows whether it arrived, and nobody says so."""
    log, state = created(behind_proxy)
    asked = change(tail(log, state))
    proxy.down = True
    with pytest.raises(IndeterminateError, match=f"check whether log entry 1 carries {asked.txid}"):
        log.compare_and_append(state, asked)
    proxy.down = False
    assert log.verify() == 0


def test_a_store_that_does_not_answer_says_so(bucket: DeltaPlace) -> None:
    """So does a bucket that does not exist."""
    dead = DeltaPlace(bucket.uri, {**bucket.options, "aws_endpoint_url": "http://127.0.0.1:1"})
    with pytest.raises(StoreUnreachableError, match="cannot"):
        dead.open().verify()
    with pytest.raises(StoreUnreachableError, match="cannot"):
        dead.open().create("first")
    absent = DeltaPlace("s3://no-such-bucket/stash", bucket.options)
    with pytest.raises((StoreUnreachableError, NoStoreError), match="no-such-bucket"):
        absent.open().verify()
    with pytest.raises(StoreUnreachableError, match="no-such-bucket"):
        absent.open().create("first")


def test_a_log_goes_to_another_process_as_what_it_was_made_from(bucket: DeltaPlace) -> None:
    """Options included."""
    log, state = created(bucket)
    state = append(log, state)
    assert pickle.loads(pickle.dumps(log)).state(1) == state  # noqa: S301 - our own


def test_a_store_behind_tls_is_trusted_by_its_certificate_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named by the option `aws_ca_bundle`; without it, or with another, there is no connection."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    authority = certify(tmp_path)
    for port in serve(tmp_path / "server.pem", tmp_path / "server.key"):
        address = f"https://127.0.0.1:{port}"
        context = ssl.create_default_context(cafile=str(authority))
        request = urllib.request.Request(f"{address}/bucket", method="PUT")  # noqa: S310 - our own
        urllib.request.urlopen(request, context=context).close()  # noqa: S310
        options = {**storage_options(address), "aws_allow_http": "false"}
        with pytest.raises(StoreUnreachableError, match="cannot"):
            DeltaPlace("s3://bucket/stash", options).open().create("first")
        monkeypatch.setenv("SSL_CERT_FILE", "")  # so that what the log sets is undone after the test
        monkeypatch.delenv("SSL_CERT_FILE")
        trusted = DeltaPlace("s3://bucket/stash", {**options, "aws_ca_bundle": str(authority)})
        log, state = created(trusted)
        append(log, state)
        assert os.environ["SSL_CERT_FILE"] == str(authority)
        assert DeltaPlace("s3://bucket/stash", options).open().verify() == 1


def certify(folder: Path) -> Path:
    """Make a certificate authority and a server certificate signed by it."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - where it is present
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    def name(text: str) -> object:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    now = dt.datetime.now(dt.UTC)
    day = dt.timedelta(days=1)
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())

    def issue(subject: str, key: ec.EllipticCurvePrivateKey, extensions: list[tuple[object, bool]]) -> bytes:
        builder = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name("authority"))
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - day).not_valid_after(now + day)
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        signed: bytes = builder.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        return signed

    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    (folder / "authority.pem").write_bytes(
        issue("authority", authority_key, [(x509.BasicConstraints(ca=True, path_length=None), True)])
    )
    (folder / "server.pem").write_bytes(
        issue("server", server_key, [(address, False), (x509.BasicConstraints(ca=False, path_length=None), True)])
    )
    (folder / "server.key").write_bytes(
        server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return folder / "authority.pem"
