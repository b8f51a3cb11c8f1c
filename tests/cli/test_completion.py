"""What shells offer, asked as their scripts ask, and seen in the shells themselves."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pexpect
import pytest

from catalog.cli.answer import ExitCode
from catalog.cli.completion import VARIABLE, Completer, Shell, complete, script_of
from catalog.cli.main_group import root
from catalog.cli.params import COLLECTION, FILE, FOLDER, STORE
from catalog.engine.stash.registry import Registry
from catalog.upgrade import PROJECT
from tests.cli.commands import MAIN, Shown, call, complaint, in_program, text
from tests.cli.conftest import Stores
from tests.cli.malformed import DAMAGES
from tests.cli.terminal import variables
from tests.cli.test_help import EVERY
from tests.cli.test_imports import HEAVY

STARTS = {
    Shell.BASH: ["--norc", "--noprofile"],
    Shell.ZSH: ["-f"],
    Shell.FISH: ["--no-config"],
}
LOADS = {
    Shell.BASH: 'eval "$(catalog completion bash)"',
    Shell.ZSH: 'eval "$(catalog completion zsh)"',
    Shell.FISH: "catalog completion fish | source",
}
BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
BREAKS = " \t\n\"'@><=;|&(:"
"""What parts words for bash, as it is when nobody changes it."""
WAIT_S = 60
NOISE = re.compile(r"\x07|\x1b\[[0-9;?]*[A-Za-z]")
"""Bells, and what moves the cursor."""

every_shell = pytest.mark.parametrize("shell", list(Shell))


def candidates(*words: str | Path) -> list[str]:
    """What is offered for the last word."""
    completer = Completer(root, [*map(str, words)])
    items = completer.get_completions(*completer.get_completion_args())
    return [item.value if item.type == "plain" else item.type for item in items]


def asked(shell: str, *given: str | Path, **changed: str) -> Shown:
    """What the program answers a script."""
    shown = in_program(*given, changed={VARIABLE: shell, **changed})
    assert shown.err == ""
    return shown


def test_commands_are_offered_by_how_they_begin() -> None:
    """In the order of the help, and those of a group inside it."""
    assert candidates("") == list(root.commands)
    assert candidates("va") == ["validate"]
    assert candidates("config", "") == ["show"]
    assert candidates("debug", "ep") == ["epoch"]


def test_options_are_offered_once_each() -> None:
    """Those of the command and of all commands; one that was given is offered again only if it may be repeated."""
    assert {"--all", "--next", "--until", "--store", "--format"} <= set(candidates("apply", "--"))
    left = candidates("apply", "--next", "--storage-option", "a=b", "--")
    assert "--next" not in left
    assert "--storage-option" in left


def test_values_of_choices_are_offered() -> None:
    """After the option, and in one word with it."""
    assert candidates("info", "--format", "") == ["text", "json"]
    assert candidates("info", "--format=j") == ["json"]
    assert candidates("completion", "") == ["bash", "zsh", "fish"]


def test_collections_are_those_of_the_version_that_the_store_is_at(store_of: Stores) -> None:
    """Of a store from before protobuf too, the engine's own included; each once where several can be given."""
    for version in (14, 19):
        found = candidates("show", "--store", store_of(version), "")
        assert {"role", "config", "migration_event"} <= set(found)
        assert "cluster_replica" not in found
    store = store_of()
    assert candidates("show", "--store", store, "") == sorted(Registry.of(PROJECT.current_types).by_name)
    assert candidates("debug", "dump", "--store", store, "--collection", "rol") == ["role"]
    assert candidates("debug", "dump", "--store", store, "--collection", "role", "--collection", "rol") == []
    assert candidates("-s", str(store), "debug", "compact", "item", "i") == ["id_alloc"]


def test_collections_are_offered_before_the_store_is_named() -> None:
    """It may come after them: those of this build then."""
    assert candidates("show", "rol") == ["role"]


def test_versions_are_those_that_a_store_can_go_to(store_of: Stores) -> None:
    """Forward for an upgrade, back for an undo, and any for a store that is made up."""
    store = store_of(19)
    assert candidates("apply", "--store", store, "--until", "") == ["20", "21", "22"]
    assert candidates("apply", "--store", store, "--until=21") == ["21"]
    assert candidates("undo", "--store", store, "--to", "") == ["18", "17", "16", "15", "14"]
    assert candidates("debug", "generate", "--version", "1") == ["14", "15", "16", "17", "18", "19"]


def test_environments_are_those_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the file that is found or named; their stores count for what is offered after them."""
    monkeypatch.chdir(tmp_path)
    assert candidates("info", "--env", "") == []
    file = tmp_path / "catalog.toml"
    file.write_text('[tool.catalog.env.production]\nstore = "a"\n[tool.catalog.env.staging]\n', encoding="utf-8")
    assert candidates("info", "--env", "") == ["production", "staging"]
    assert candidates("-c", str(file), "info", "--env", "s") == ["staging"]
    call("debug", "generate", "--version", "20", "--rows", "10", "--store", tmp_path / "a")
    assert candidates("--env", "production", "apply", "--until", "") == ["21", "22"]


def test_files_and_folders_are_looked_up_by_the_shell() -> None:
    """For everything that names one."""
    assert candidates("info", "--store", "x") == ["dir"]
    assert candidates("info", "-c", "") == ["file"]
    assert candidates("debug", "copy", "a", "") == ["dir"]
    kinds = {"FILE": FILE, "DIR": FOLDER, "URI": STORE}
    for command in EVERY.values():
        for own in command.params:
            assert own.metavar not in kinds or own.type is kinds[own.metavar], (command.name, own.name)
            assert own.name not in {"collection", "collections"} or own.type is COLLECTION, command.name


def test_what_bash_parts_is_put_together_again(tmp_path: Path, store_of: Stores) -> None:
    """At colons and equals signs, which stand in addresses and options; and only what it replaces is answered."""
    assert asked("bash", "catalog info --format=j", BREAKS).out == "word\tjson\n"
    assert asked("bash", "catalog info --format=j", " ").out == "word\t--format=json\n"
    assert asked("bash", "catalog -s s3://bucket/prefix info --ch", BREAKS).out == "word\t--check\n"
    shutil.copytree(store_of(), tmp_path / "it's a store")
    assert asked("bash", f"""catalog -s "{tmp_path}/it's a store" show ro""", BREAKS).out == "word\trole\n"
    assert asked("bash", "catalog -s ~/it\\'s\\ a\\ store show ro", BREAKS, HOME=str(tmp_path)).out == "word\trole\n"
    assert asked("bash", "catalog -s '~/it", BREAKS).out == "dir\n"


def test_what_is_said_of_a_candidate_stands_beside_it() -> None:
    """In shells that show it; bash is told none."""
    (line,) = asked("zsh", "valid").out.splitlines()
    assert line.split("\t") == ["word", "validate", EVERY["validate",].help.partition("\n")[0]]  # type: ignore[union-attr]
    assert asked("bash", "catalog valid", BREAKS).out == "word\tvalidate\n"


@pytest.mark.parametrize("damage", DAMAGES)
def test_nothing_is_said_about_a_store_that_cannot_be_read(store_of: Stores, damage: str) -> None:
    """Neither to the one who types, nor as a candidate."""
    store = store_of()
    DAMAGES[damage](store)
    assert complete(root, "zsh", ["show", "--store", str(store), ""]) == ""


def test_nothing_is_offered_where_something_is_wrong(tmp_path: Path) -> None:
    """A shell that is none, a command that is none, settings that are none, no words at all: silence."""
    (tmp_path / "catalog.toml").write_text("[tool.catalog", encoding="utf-8")
    for shell, given in (
        ("tcsh", ["in"]),
        ("zsh", []),
        ("bash", ["catalog in"]),
        ("zsh", ["no-such-command", ""]),
        ("zsh", ["show", "--store", str(tmp_path / "none"), ""]),
        ("fish", ["show", "-c", str(tmp_path / "catalog.toml"), ""]),
        ("fish", ["info", "-c", str(tmp_path / "catalog.toml"), "--env", ""]),
        ("zsh", ["show", "--store", "s3://no-such-bucket/x", "--storage-option", "no-pair", ""]),
    ):
        assert complete(root, shell, given) == "", given
    assert asked("tcsh", "in").out == ""
    assert asked("zsh", "show", "--store", tmp_path / "none", "", CATALOG_FORMAT="json").out == ""


def test_nobody_waits_for_a_store_that_does_not_answer() -> None:
    """A few seconds at most, and then nothing is offered."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "x"}
        keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
        began = time.monotonic()
        assert asked("zsh", "show", "--store", "s3://bucket/x", "", **options, **keys).out == ""
        assert time.monotonic() - began < WAIT_S


def test_it_loads_less_than_a_look_at_the_store(store_of: Stores) -> None:
    """No Spark, no tables; for commands and options neither Arrow nor Delta."""
    store = str(store_of())
    report = "\nimport atexit, json; atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))"
    code = f"import sys{report}\n{MAIN}"

    def loaded(*words: str, **changed: str) -> set[str]:
        command = [sys.executable, "-c", code, *words]
        done = subprocess.run(command, env=variables(**changed), capture_output=True, text=True, check=True)
        assert done.stdout
        return set(json.loads(done.stderr))

    asking = {VARIABLE: "zsh"}
    light, heavy = loaded("inf", **asking), loaded("show", "--store", store, "ro", **asking)
    assert {"pyarrow", "deltalake", "google.protobuf", "numpy"}.isdisjoint(light)
    assert {name.partition(".")[0] for name in heavy}.isdisjoint(HEAVY)
    assert len(heavy) < len(loaded("info", "--store", store))


def test_the_script_is_printed_for_a_shell_that_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As text to be evaluated, whatever settings say, unless an envelope is asked for; of others, which there are."""
    for shell in Shell:
        assert text("completion", shell) == script_of(shell)
        assert call("completion", shell) == {"shell": shell, "script": script_of(shell)}
    (tmp_path / "catalog.toml").write_text("[tool.catalog", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CATALOG_FORMAT", "json")
    assert text("completion", "bash") == script_of(Shell.BASH)
    monkeypatch.delenv("CATALOG_FORMAT")
    monkeypatch.chdir("/")
    assert "'bash', 'zsh', 'fish'" in complaint("completion", "tcsh", expect=ExitCode.USAGE)[0]
    assert complaint("completion", expect=ExitCode.USAGE)[0].startswith("missing argument 'SHELL'")


@contextmanager
def typing(shell: Shell, folder: Path, *first: str, loads: bool = True) -> Iterator[pexpect.spawn]:
    """A shell in which the script was loaded, and somebody about to type in a folder."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} on this machine")
    programs = folder / "programs"
    programs.mkdir()
    (programs / "catalog").write_text(f"#!{sys.executable}\n{MAIN}\n", encoding="utf-8")
    (programs / "catalog").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    child = pexpect.spawn(
        str(shutil.which(shell)),
        STARTS[shell],
        env=variables(TERM="dumb", PATH=path, HOME=str(folder), PS1="> ", XDG_DATA_HOME=str(folder)),
        cwd=folder,
        encoding="utf-8",
        dimensions=(40, 200),
        timeout=WAIT_S,
    )
    try:
        for line in (*first, LOADS[shell] if loads else "", "echo rea''dy"):
            child.sendline(line)
        child.expect("\nready")
        yield child
    finally:
        child.close(force=True)


def typed(child: pexpect.spawn, line: str, expected: str) -> str:
    """Type a line, and look until what is expected is there; then the line is given up. Answers what was shown."""
    child.send(line)
    shown = ""
    while expected not in (plain := NOISE.sub("", shown)):
        try:
            shown += child.read_nonblocking(1000, WAIT_S)
        except pexpect.TIMEOUT:
            pytest.fail(f"{expected!r} is not in {plain!r}")
    child.sendcontrol("u")
    return plain


@every_shell
def test_a_shell_completes_what_is_typed(shell: Shell, tmp_path: Path, store_of: Stores) -> None:
    """Commands, options, values, collections, versions, environments and folders, in a shell with no other setup."""
    shutil.copytree(store_of(19), tmp_path / "older")
    (tmp_path / "catalog.toml").write_text('[tool.catalog.env.production]\nstore = "older"\n', encoding="utf-8")
    with typing(shell, tmp_path) as child:
        typed(child, "catalog vali\t", "catalog validate ")
        typed(child, "catalog debug upgr\t", "catalog debug upgrade-check ")
        typed(child, "catalog apply --dry\t", "catalog apply --dry-run ")
        typed(child, "catalog info --format j\t", "catalog info --format json ")
        typed(child, "catalog info --format=j\t", "catalog info --format=json ")
        typed(child, "catalog show -s older time\t", "catalog show -s older timestamp ")
        typed(child, "catalog apply --env prod\t", "catalog apply --env production ")
        typed(child, "catalog apply --env production --until 20\t", "--until 20 ")
        typed(child, "catalog info -s old\t", "catalog info -s older/")
        typed(child, "catalog info --store=old\t", "catalog info --store=older/")
        typed(child, "catalog info -c cat\t", "catalog info -c catalog.toml ")
        typed(child, "~/programs/catalog show -s ~/older time\t", "catalog show -s ~/older timestamp ")


@every_shell
def test_a_shell_shows_no_error_in_the_prompt(shell: Shell, tmp_path: Path) -> None:
    """What is typed next stands right behind what was typed before, whatever was wrong with it."""
    with typing(shell, tmp_path) as child:
        for line in ("catalog show -s nowhere x", "catalog show -s s3://nowhere/x x", "catalog no-such-command x"):
            shown = typed(child, f"{line}\ty", f"{line}y")
            assert "why:" not in shown
            assert "Traceback" not in shown


def test_bash_completes_beside_the_package_for_completion(tmp_path: Path) -> None:
    """Which many have, and which treats words in its own way."""
    if not BASH_COMPLETION.exists():
        pytest.skip("bash-completion is not installed")
    with typing(Shell.BASH, tmp_path, f". {BASH_COMPLETION}") as child:
        typed(child, "catalog info --format=j\t", "catalog info --format=json ")
        typed(child, "catalog -s s3://bucket/x vali\t", "catalog -s s3://bucket/x validate ")


def test_zsh_takes_the_script_as_a_file_of_its_own(tmp_path: Path) -> None:
    """In a folder of its path for functions, where it is loaded when it is needed."""
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "_catalog").write_text(script_of(Shell.ZSH), encoding="utf-8")
    first = "fpath=(~/functions $fpath); autoload -Uz compinit; compinit -i"
    with typing(Shell.ZSH, tmp_path, first, loads=False) as child:
        typed(child, "catalog vali\t", "catalog validate ")


def test_the_scripts_are_in_order() -> None:
    """As each shell reads them without running them."""
    for shell in Shell:
        if shutil.which(shell):
            subprocess.run([shell, "-n"], input=script_of(shell), text=True, check=True)


def test_every_parameter_answers_what_shells_ask() -> None:
    """None fails, whatever its command is."""
    for path, command in EVERY.items():
        for own in command.params:
            if isinstance(own, click.Option) and not own.is_flag:
                candidates(*path, own.opts[-1], "")
