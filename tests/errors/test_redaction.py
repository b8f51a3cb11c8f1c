"""Secrets: what is not known to be harmless is one, in options and in addresses."""

from __future__ import annotations

import pickle
import traceback

import pytest

from catalog.errors import StoreUnreachableError
from catalog.errors.redaction import (
    REDACTED,
    is_secret_option,
    redact,
    redact_addresses,
    redact_option,
    redacted_cause,
    secrets_of,
)
from catalog.events import Failed, Opening, Ready


@pytest.mark.parametrize(
    "name",
    [
        *("aws_secret_access_key", "aws_access_key_id", "aws_session_token", "AWS_SSE_CUSTOMER_KEY_BASE64"),
        *("azure_storage_master_key", "master_key", "azure_storage_sas_key", "azure_client_secret", "sas_token"),
        *("google_service_account_key", "google_service_account", "bearer_token", "aws_web_identity_token_file"),
        *("anything_that_a_later_client_takes", "key", "pwd", "s3_key", "region_secret", ""),
    ],
)
def test_an_option_that_is_not_known_to_be_harmless_is_a_secret(name: str) -> None:
    """So that one which a later client knows is none by accident."""
    assert is_secret_option(name)
    assert "hunter2" in secrets_of({name: "hunter2"})


@pytest.mark.parametrize(
    "name",
    [
        "aws_region",
        "AWS_ENDPOINT_URL",
        "allow_http",
        "aws_allow_http",
        "timeout",
        "azure_storage_account_name",
        "region",
    ],
)
def test_harmless_options_are_shown(name: str) -> None:
    """They are what a person looks for."""
    assert not is_secret_option(name)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("s3://key:secret@bucket/dir", f"s3://{REDACTED}@bucket/dir"),
        ("s3://key:se/cr+et@bucket/dir", f"s3://{REDACTED}@bucket/dir"),
        ("http://user@proxy:3128", f"http://{REDACTED}@proxy:3128"),
        ("http://user:p%40ss@proxy:3128/", f"http://{REDACTED}@proxy:3128/"),
        ("az://c/dir?sv=2024&sig=a%2Fb%3D", f"az://c/dir?sv={REDACTED}&sig={REDACTED}"),
        ("sc://host:15002/;token=abc;use_ssl=true", f"sc://host:15002/;token={REDACTED};use_ssl=true"),
        ("https://h/x#access_token=abc", f"https://h/x#access_token={REDACTED}"),
        ("jdbc:postgresql://u:p@h/db", f"jdbc:postgresql://{REDACTED}@h/db"),
        ("s3://bucket/user@example.org/store", "s3://bucket/user@example.org/store"),
        ("http://host:9000/a@b", "http://host:9000/a@b"),
        ("s3://bucket/dir", "s3://bucket/dir"),
        ("s3://key:p@ss@bucket/dir", f"s3://{REDACTED}@bucket/dir"),
        ("s3://key:pa'ss@bucket/dir", f"s3://{REDACTED}@bucket/dir"),
        ("http://me:1234@host:99/x", f"http://{REDACTED}@host:99/x"),
        (
            "https://b.example/x?X-Amz-Credential=a/b&X-Amz-Signature=c",
            f"https://b.example/x?X-Amz-Credential={REDACTED}&X-Amz-Signature={REDACTED}",
        ),
        ("/a/folder?x=1", "/a/folder?x=1"),
    ],
)
def test_an_address_is_shown_without_what_it_authenticates_by(address: str, shown: str) -> None:
    """Wherever in a text it stands; the place itself can be told."""
    assert redact_addresses(address) == shown
    assert redact_addresses(f'cannot open "{address}": x') == f'cannot open "{shown}": x'
    assert redact_addresses(shown) == shown


def test_parts_of_an_address_are_secrets_by_themselves() -> None:
    """A client may tell them apart from it, or decoded."""
    found = secrets_of({"proxy_url": "http://me:p%40ss@h:1"}, "s3://b/x?sig=ab%2Fcd", None)
    assert {"p%40ss", "p@ss", "ab%2Fcd", "ab/cd"} <= set(found)
    assert redact("denied for p@ss and ab/cd", found) == f"denied for {REDACTED} and {REDACTED}"


def test_an_error_tells_no_secret_of_an_address() -> None:
    """Also after pickling, which is how Spark sends it."""
    error = StoreUnreachableError("s3://key:hunter2@bucket/x?sig=hunter3", "open", "GET http://a:hunter4@h/ failed")
    for told in (error, pickle.loads(pickle.dumps(error))):  # noqa: S301
        assert "hunter" not in f"{told} {told.what} {told.why} {told.next}"
        assert "bucket/x" in told.what


def test_facts_of_an_error_tell_no_secret_of_an_address() -> None:
    """Those who log an error by its attributes log no more than its text."""
    error = StoreUnreachableError("s3://key:hunter2@bucket/x", "open", "GET http://a:hunter4@h/ failed")
    assert "hunter" not in repr(vars(error))
    assert error.place == f"s3://{REDACTED}@bucket/x"


def test_events_tell_no_secret_of_an_address() -> None:
    """Observers write them to logs, metrics and files."""
    events = (
        Opening("s3://key:hunter2@bucket/x", "catalog", "leader", "1", 22),
        Ready("s3://key:hunter2@bucket/x", "leader", 22, 0, 1, 5, 0.1),
        Failed.of(ValueError("no http://a:hunter4@h/"), 0.1),
    )
    assert "hunter" not in repr(events)


def test_a_proxy_without_a_scheme_is_told_without_its_user() -> None:
    """Its value is no address, and its name is harmless."""
    assert redact_option("proxy_url", "me:hunter@host:1") == f"{REDACTED}@host:1"
    assert redact_option("region", "eu-1") == "eu-1"
    assert "me:hunter" in secrets_of({"proxy_url": "me:hunter@host:1"})


def test_secrets_of_variables_are_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients take them from there; files and places that variables name are none."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter-variable")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "hunter-sas")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/token")
    assert {"hunter-variable", "hunter-sas"} <= set(secrets_of({}))
    assert "/var/run/token" not in secrets_of({})


def test_the_errors_behind_an_error_tell_no_secret() -> None:
    """A traceback shows them too, at any depth; one without a secret stays as it is."""
    secret = "hun/ter+2"  # noqa: S105 - it is nobody's

    outer = RuntimeError("outside")
    outer.__cause__ = OSError(f"denied: {secret} or hun%2Fter%2B2")
    shown = "".join(traceback.format_exception(redacted_cause(outer, [secret])))
    assert "ter" not in shown
    assert f"OSError: denied: {REDACTED} or {REDACTED}" in shown
    outer.__cause__ = OSError("nothing")
    assert redacted_cause(outer, [secret]) is outer


def test_a_secret_is_found_however_it_is_quoted() -> None:
    """As JSON, as Python, as it is."""
    secret = 'hun"ter\\2 é'  # noqa: S105 - it is nobody's
    for form in (secret, repr(secret), '"hun\\"ter\\\\2 é"', '"hun\\"ter\\\\2 \\u00e9"'):
        assert "ter" not in redact(f"x {form} y", [secret])
