"""A storage option that is not known to be harmless is shown to nobody, whatever a command finds or fails of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from catalog.cli.answer import ExitCode
from tests.cli.commands import Shown, in_process, in_program
from tests.object_store import make_bucket, storage_options

SECRET, TOKEN = 'hun"ter\\2', "a-token-of-a-session"
SHOWN_AS = "********"


@pytest.fixture
def options(object_store: str) -> dict[str, str]:
    return {**storage_options(object_store), "aws_secret_access_key": SECRET, "aws_session_token": TOKEN}


def _flags(options: dict[str, str], flag: str = "--storage-option") -> list[str]:
    return [word for name, value in options.items() for word in (flag, f"{name}={value}")]


def _expect_no_secret(shown: Shown) -> None:
    written = shown.out + shown.err
    for secret in (SECRET, TOKEN):
        for form in (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1]):
            assert form not in written, shown


def test_no_command_shows_a_secret(object_store: str, options: dict[str, str]) -> None:
    """On an object store, from its first start to its end; as text and as JSON."""
    store = f"s3://{make_bucket(object_store)}/store"
    flags = [*_flags(options), "--store", store]
    for words, ended in (
        (["init"], ExitCode.DONE),
        (["start"], ExitCode.DONE),
        (["info", "--check"], ExitCode.DONE),
        (["validate"], ExitCode.DONE),
        (["config", "show"], ExitCode.DONE),
        (["show", "role"], ExitCode.DONE),
        (["show", "rol"], ExitCode.USAGE),
        (["debug", "stats"], ExitCode.DONE),
        (["debug", "dump"], ExitCode.DONE),
        (["debug", "edit", "role", '{"id": {"system": 2}}', "{", "--yes"], ExitCode.USAGE),
        (["debug", "fsck"], ExitCode.DONE),
        (["undo", "--yes"], ExitCode.FAILED),
        (["clean"], ExitCode.USAGE),
        (["clean", "--dry-run"], ExitCode.DONE),
        (["info", "--no-such-flag"], ExitCode.USAGE),
    ):
        for form in ("text", "json"):
            shown = in_process("--format", form, *words, *flags)
            assert shown.exit == ended, shown
            _expect_no_secret(shown)
    assert in_process("config", "show", *flags).out.count(SHOWN_AS) == 3


def test_no_failure_shows_a_secret(object_store: str, options: dict[str, str], tmp_path: Path) -> None:
    """Not of the storage, nor of an option that is none, nor of one that is mistyped."""
    there, nowhere = f"s3://{make_bucket(object_store)}/store", {**options, "aws_endpoint_url": "http://127.0.0.1:1"}
    for form in ("text", "json"):
        for words in (
            ["info", "--store", "s3://no-such-bucket/store", *_flags(options)],
            ["start", "--store", "s3://no-such-bucket/store", *_flags(options)],
            ["info", "--store", there, *_flags(nowhere)],
            ["info", "--store", there, *_flags({**options, "my_secret_option": SECRET})],
            ["info", "--store", there, *_flags({**options, "retry_timeout": TOKEN})],
            ["info", "--store", there, "--storage-option", f"aws_secret_access_key:{SECRET}"],
            ["doctor", "--store", there, *_flags(nowhere)],
            ["debug", "copy", str(tmp_path), there, *_flags(nowhere, "--target-option")],
            ["debug", "copy", there, str(tmp_path / "x"), *_flags(options)],
        ):
            shown = in_process("--format", form, *words)
            assert shown.exit in {ExitCode.FAILED, ExitCode.USAGE}, shown
            _expect_no_secret(shown)


def test_secrets_of_variables_and_files_are_secrets_too(
    object_store: str, options: dict[str, str], tmp_path: Path
) -> None:
    """Also for whoever asks where a setting came from, and when the file or the variable is wrong."""
    store = f"s3://{make_bucket(object_store)}/store"
    own = ", ".join(f"{name} = {json.dumps(value)}" for name, value in options.items())
    (tmp_path / "catalog.toml").write_text(f'[tool.catalog]\nstore = "{store}"\nstorage_options = {{ {own} }}\n')
    shown = in_program("config", "show", cwd=tmp_path)
    assert shown.out.count(SHOWN_AS) == 3
    _expect_no_secret(shown)
    _expect_no_secret(in_program("start", cwd=tmp_path))
    (tmp_path / "catalog.toml").write_text(f"[tool.catalog]\nstorage_options = {{ {own}, x = [1] }}\n")
    _expect_no_secret(in_program("info", cwd=tmp_path, expect=ExitCode.USAGE))
    (tmp_path / "catalog.toml").unlink()
    told = json.dumps(options)
    shown = in_program("config", "show", cwd=tmp_path, changed={"CATALOG_STORAGE_OPTIONS": told})
    assert shown.out.count(SHOWN_AS) == 3
    _expect_no_secret(shown)
    _expect_no_secret(
        in_program("info", cwd=tmp_path, expect=ExitCode.USAGE, changed={"CATALOG_STORAGE_OPTIONS": told[:-1]})
    )


HIDDEN = {
    "aws_sse_customer_key_base64": "hunter-sse",
    "azure_storage_master_key": "hunter-azure",
    "master_key": "hunter-master",
    "an_option_of_tomorrow": "hunter-new",
    "proxy_url": "http://me:hunter-proxy@127.0.0.1:1",
    "aws_endpoint_url": "http://me:hunter-endpoint@127.0.0.1:1",
}


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_is_not_known_to_be_harmless_is_a_secret(form: str, tmp_path: Path) -> None:
    """An option by its name; a user and a password in a proxy, an endpoint, the store's address, or Spark's."""
    for store in ("s3://key:hunter-store@bucket/x", "az://container/x?sv=1&sig=hunter-sig", "s3://bucket/x"):
        for words in (
            ["config", "show"],
            ["info", "--spark", "sc://host/;token=hunter-token"],
            ["info"],
            ["start"],
            ["doctor"],
            ["show", "role"],
            ["debug", "copy", store, str(tmp_path / "copy"), *_flags(HIDDEN, "--target-option")],
            ["debug", "copy", str(tmp_path / "none"), store, *_flags(HIDDEN, "--target-option")],
        ):
            limits = {"max_retries": "0", "retry_timeout": "1s", "connect_timeout": "1s"}
            shown = in_process("--format", form, *words, "--store", store, *_flags(HIDDEN | limits))
            assert "hunter" not in shown.out + shown.err, shown
    shown = in_process("config", "show", "--store", "s3://k:hunter@bucket/x", "--storage-option", "aws_region=eu-1")
    assert f"s3://{SHOWN_AS}@bucket/x" in shown.out
    assert "eu-1" in shown.out
