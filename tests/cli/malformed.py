"""Command lines that are wrong, and places that are no store of ours or a damaged one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from catalog.upgrade import PROJECT
from tests.cli.histories import pretend_version

STORE = "<store>"
"""Stands for a sound store of the current version in a command line."""
Case = tuple[str, ...]

READING: dict[str, Case] = {
    "info": (),
    "validate": (),
    "show": ("role",),
    "subscribe": ("role", "--once"),
    "history": (),
    "sql": ("SHOW TABLES",),
    "tables": (),
    "ddl list": (),
    "debug dump": (),
    "debug epoch": (),
    "debug stats": (),
    "debug fsck": (),
}
WRITING: dict[str, Case] = {
    "start": (),
    "apply": (),
    "undo": ("--yes",),
    "abort": ("--yes",),
    "ddl run": ("CREATE TABLE t (id BIGINT)",),
    "debug edit": ("role", '{"id": {"system": 2}}', '{"name": "x"}', "--yes"),
    "debug delete": ("role", '{"id": {"system": 2}}', "--yes"),
    "debug compact": (),
    "debug vacuum": (),
}
TEXTS = {
    "empty": "",
    "a space": " ",
    "a newline": "a\nb",
    "a NUL": "a\0b",
    "a surrogate": "\udcff",
    "an escape": "\x1b[31mred",
    "very long": "x" * 5000,
    "braces": "{",
    "an emoji": "🪣",
    "a traversal": "../../etc/passwd",
    "a percent": "%s%n",
}
NUMBERS = ("-1", "1e3", "0x10", "ten", "", "1.5", "99999999999999999999999999", "٣" * 5000)


def _wrong_places() -> Iterator[Case]:
    """Files that cannot be written."""
    for verb in ("start", "apply"):
        for flag in ("--metrics-file", "--ready-file"):
            for place in ("", "a\0b", "no/such/folder/file", "x" * 5000, "."):
                yield (verb, "--store", STORE, flag, place)
        yield (verb, "--store", STORE, "--log-format", "xml")


def wrong_calls() -> Iterator[Case]:
    """Command lines that no store can make right."""
    words = {**READING, **WRITING, "init": (), "repair": ("--yes",), "clean": (), "doctor": ()}
    for path, own in words.items():
        store = ("--store", STORE)
        yield (*path.split(), *own, *store, "--no-such-option")
        yield (*path.split(), *own, "--store")
        yield (*path.split(), *own, *store, "--format", "yaml")
        yield (*path.split(), *own, *store, "--storage-option", "no-pair")
        if path != "debug compact":
            yield (*path.split(), *own, *store, "surplus")
    yield from ((*path.split(),) for path in ("infoo", "-x", "--", "debug nothing", "config hide", "debug -q"))
    for missing in (
        ("show",),
        ("debug", "edit"),
        ("debug", "edit", "role"),
        ("debug", "delete"),
        ("debug", "copy", "x"),
    ):
        yield (*missing, "--store", STORE) if missing[1:] != ("copy", "x") else missing
    yield from _wrong_places()
    yield ("debug", "copy", STORE, "copy", "--anonymise", "--anonymise-key", "short")
    yield ("debug", "copy", STORE, "copy", "--anonymise-key", "a key that is long enough")
    for number in NUMBERS:
        yield ("apply", "--store", STORE, "--until", number)
        yield ("undo", "--yes", "--store", STORE, "--to", number)
        yield ("start", "--store", STORE, "--deploy-generation", number)
        if number != "99999999999999999999999999":  # as many rows as that are all
            yield ("show", "role", "--store", STORE, "--limit", number)
        yield ("show", "role", "--store", STORE, "--as-of", number)
        yield ("subscribe", "role", "--once", "--store", STORE, "--since", number)
        yield ("subscribe", "role", "--since", "now", "--store", STORE, "--until", number)
    for time in ("-5s", "soon", "5 days", "", "1e9", "nan"):
        yield ("start", "--store", STORE, "--lock-timeout", time)
        yield ("debug", "vacuum", "--store", STORE, "--retention", time)
        yield ("subscribe", "role", "--once", "--store", STORE, "--since", time)
    for text in TEXTS.values():
        yield ("show", text, "--store", STORE)
        yield ("subscribe", text, "--store", STORE)
        yield ("show", "role", "--key", text, "--store", STORE)
        yield ("show", "role", "--where", text, "--store", STORE)
        yield ("debug", "dump", "--ignore", text, "--store", STORE)
        yield ("debug", "edit", "role", text, "{}", "--yes", "--store", STORE)
        yield ("debug", "edit", "role", '{"id": {"system": 2}}', text, "--yes", "--store", STORE)
        yield ("debug", "delete", text, '{"id": 1}', "--yes", "--store", STORE)
        yield ("debug", "compact", text, "--store", STORE)
        yield ("clean", "--name", text, "--store", STORE)
        yield ("info", "--env", text, "--store", STORE)
        yield ("info", "--config-file", text or "none", "--store", STORE)
        yield ("info", "--store", text)
    yield from (*_wrong_pages(), *_wrong_rows(), *_wrong_statements())
    yield ("apply", "--all", "--next", "--store", STORE)
    yield ("subscribe", "role", "--once", "--until", "5", "--store", STORE)
    yield ("subscribe", "role", "--until", "1", "--store", STORE)
    yield from _wrong_projects()
    yield ("debug", "generate", "--store", STORE)
    yield ("debug", "generate", "--version", "13", "--store", "new")
    yield ("debug", "generate", "--rows", "-1", "--store", "new")
    yield ("debug", "copy", STORE, STORE)


def _wrong_projects() -> Iterator[Case]:
    yield from (("new",), ("new", "project", "surplus"), ("new", STORE))
    yield from (("new", "project", "--name", text) for text in TEXTS.values())
    yield from (("create", "--amend", "--renumber"), ("create", "why", "--root", "/nowhere"))


def _wrong_pages() -> Iterator[Case]:
    for place in ("", "a\0b", ".", "none/page.html", "/dev/null"):
        yield ("debug", "stats", "--html", place, "--store", STORE)
        yield ("debug", "upgrade-check", "--html", place, STORE)


def _wrong_statements() -> Iterator[Case]:
    for number in NUMBERS:
        yield ("sql", "SHOW TABLES", "--store", STORE, "--as-of", number)
    wrong = ("DROP TABLE role", "SELECT 1; SELECT 2", "SELECT 'x", "SELECT /* 1", ";", "-- nothing", *TEXTS.values())
    for statement in wrong:
        yield ("sql", statement, "--store", STORE)
    yield ("sql", "--store", STORE)
    for time in ("-5s", "soon", "5 days", "", "1e9", "nan"):
        yield ("history", "--store", STORE, "--since", time)


def _wrong_rows() -> Iterator[Case]:
    key = '{"id": {"system": 2}}'
    for wrong in (
        "[]",
        "null",
        "3",
        '"id"',
        "{}x",
        '{"id": }',
        '{"id": {"system": -1}}',
        '{"id": {"system": 1e400}}',
        '{"id": {"system": 99999999999999999999}}',
        '{"id": {"system": true}}',
        '{"id": {"system": 2, "user": 3}}',
        '{"di": 1}',
        "[" * 5000,
        '{"id":' * 2000,
        "id=",
        "=2",
        "id",
    ):
        yield ("show", "role", "--key", wrong, "--store", STORE)
        yield ("debug", "delete", "role", wrong, "--yes", "--store", STORE)
    for wrong in (
        '{"name": 3}',
        '{"name": "x", "colour": 1}',
        '{"name": NaN}',
        '{"permissions": -1}',
        '{"name": "\\ud800"}',
    ):
        yield ("debug", "edit", "role", key, wrong, "--yes", "--store", STORE)
    for wrong in ("name", "=", "name~(", "colour=1", "name.first=1", "key.=1", "name=~=", "~"):
        if wrong != "name=~=":
            yield ("show", "role", "--where", wrong, "--store", STORE)


def _wrong_file(content: bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "catalog.toml").write_bytes(content)

    return make


CONFIG_FILES: dict[str, Callable[[Path], None]] = {
    "missing": lambda _: None,
    "a folder": lambda folder: (folder / "catalog.toml").mkdir(),
    "no TOML": _wrong_file(b"[tool.catalog"),
    "no text": _wrong_file(b"\xff\xfe\x00"),
    "no table": _wrong_file(b"[tool.other]\n"),
    "no tool": _wrong_file(b"tool = 3\n"),
    "a list": _wrong_file(b"tool.catalog = [1]\n"),
    "an unknown setting": _wrong_file(b"[tool.catalog]\nstor = 'x'\n"),
    "a number for a store": _wrong_file(b"[tool.catalog]\nstore = 3\n"),
    "an empty store": _wrong_file(b"[tool.catalog]\nstore = ''\n"),
    "no such variable": _wrong_file(b"[tool.catalog]\nstore = '${NO_SUCH_VARIABLE}'\n"),
    "a wrong time": _wrong_file(b"[tool.catalog]\ntimeout = 'later'\n"),
    "a wrong format": _wrong_file(b"[tool.catalog]\nformat = 'xml'\n"),
    "a wrong generation": _wrong_file(b"[tool.catalog]\ndeploy_generation = -1\n"),
    "no such project": _wrong_file(b"[tool.catalog]\nstore = 'x'\nproject = 'no_such_project'\n"),
    "a project that is none": _wrong_file(b"[tool.catalog]\nstore = 'x'\nproject = 'json'\n"),
    "a project with dots": _wrong_file(b"[tool.catalog]\nstore = 'x'\nproject = '..'\n"),
    "options that are none": _wrong_file(b"[tool.catalog]\nstore = 'x'\nstorage_options = 3\n"),
    "environments that are none": _wrong_file(b"[tool.catalog]\nstore = 'x'\nenv = 3\n"),
}


def _identity(**changed: object) -> Callable[[Path], None]:
    def damage(store: Path) -> None:
        file = store / "store.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))

    return damage


def _bytes(path: str, content: bytes) -> Callable[[Path], None]:
    def damage(store: Path) -> None:
        (store / path).write_bytes(content)

    return damage


def _newest_entry(store: Path) -> Path:
    return max((store / "stash" / "_delta_log").glob("*.json"))


def _tear(store: Path) -> None:
    entry = _newest_entry(store)
    entry.write_bytes(entry.read_bytes()[:-20])


def _foreign(store: Path) -> None:
    """A Delta table of somebody else's where the stash is to be."""
    shutil.rmtree(store / "stash" / "_delta_log")
    shutil.rmtree(store / "stash" / "_archive", ignore_errors=True)
    log = store / "stash" / "_delta_log"
    log.mkdir()
    schema = json.dumps({"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]})
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "1",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 0,
            }
        },
    ]
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))


def _no_identity_but_a_folder(store: Path) -> None:
    (store / "store.json").unlink()
    (store / "store.json").mkdir()


def _no_stash_but_a_file(store: Path) -> None:
    shutil.rmtree(store / "stash")
    (store / "stash").write_text("x", encoding="utf-8")


def _empty(store: Path) -> None:
    shutil.rmtree(store)
    store.mkdir()


def _file(store: Path) -> None:
    shutil.rmtree(store)
    store.write_text("a file", encoding="utf-8")


def _loop(store: Path) -> None:
    shutil.rmtree(store)
    store.symlink_to(store)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "store.json is empty": _bytes("store.json", b""),
    "store.json is cut": _bytes("store.json", b'{"id": "'),
    "store.json is garbage": _bytes("store.json", b"\x00\xff" * 40),
    "store.json is a list": _bytes("store.json", b"[]"),
    "store.json has other fields": _bytes("store.json", b'{"id": "x", "colour": 1}'),
    "store.json nests without end": _bytes("store.json", b"[" * 100_000),
    "store.json is gone": lambda store: (store / "store.json").unlink(),
    "store.json is a folder": _no_identity_but_a_folder,
    "another project's": _identity(project="other"),
    "a future layout": _identity(layout=99),
    "the stash is gone": lambda store: shutil.rmtree(store / "stash"),
    "the stash is a file": _no_stash_but_a_file,
    "the log is gone": lambda store: shutil.rmtree(store / "stash" / "_delta_log"),
    "the newest entry is empty": lambda store: _newest_entry(store).write_bytes(b""),
    "the newest entry is cut": _tear,
    "the newest entry is garbage": lambda store: _newest_entry(store).write_bytes(b"\x00\xff{" * 90),
    "a foreign table": _foreign,
    "a future version": lambda store: pretend_version(store, PROJECT.current + 1),
    "a version of before the first": lambda store: pretend_version(store, 3),
    "a folder of nothing": _empty,
    "a file": _file,
    "a loop": _loop,
}
"""What can be wrong with a place where a store is said to be."""

ANSWERED: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("a future version", "a version of before the first"),
        frozenset({"info", "validate", "history", "debug epoch", "abort", "debug vacuum", "init"}),
    ),
    "a folder of nothing": frozenset({"start", "init"}),
}
"""What is not refused there: looking at a store of another build, and beginning where nothing is."""
