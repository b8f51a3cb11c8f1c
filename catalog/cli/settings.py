"""Settings of commands: from flags, variables, files and defaults.

The first source that has a value wins: the flag; the variable `CATALOG_…`; `[tool.catalog.env.NAME]`, then
`[tool.catalog]` in `catalog.toml` or `pyproject.toml`; the default. click's default maps are not used: a setting may
have no flag in a command, and a file may be named after the command. Reads no store.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from catalog.engine.base.duration import parse_seconds
from catalog.engine.base.fence import LOCK_TIMEOUT_S
from catalog.errors import SettingError
from catalog.errors.redaction import REDACTED, is_secret_option, redact_addresses, redact_option, secrets_of

FILES: Final = ("catalog.toml", "pyproject.toml")
FORMATS: Final = ("text", "json")
_VARIABLE = re.compile(r"\$(\$|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_WHOLE_MAX: Final = 2**63 - 1
"""The greatest number that a store can hold."""
_NOT_OURS: Final = frozenset({"unwritten", "env"})
"""Also under `[tool.catalog]`, but no settings: a list of the gate, and the tables of environments."""
OPTIONS: Final = "storage_options"


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: Any
    source: str

    @property
    def is_secret(self) -> bool:
        option = self.name.removeprefix(f"{OPTIONS}.")
        return self.value is not None and option != self.name and is_secret_option(option)

    @property
    def shown(self) -> Any:  # noqa: ANN401 - of whatever type the setting is
        if not isinstance(self.value, str):
            return REDACTED if self.is_secret else self.value
        option = self.name.removeprefix(f"{OPTIONS}.")
        return redact_addresses(self.value) if option == self.name else redact_option(option, self.value)


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its source; each storage option is a setting `storage_options.NAME`."""

    all: Mapping[str, Setting]
    troubles: tuple[SettingError, ...] = ()
    """The errors in variables and files that a forgiving command ignores."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        return self.all[name].value

    @property
    def storage_options(self) -> dict[str, str]:
        prefix = f"{OPTIONS}."
        return {name.removeprefix(prefix): own.value for name, own in self.all.items() if name.startswith(prefix)}

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must never be printed."""
        addresses = (own.value for own in self.all.values() if isinstance(own.value, str))
        return secrets_of(self.storage_options, *addresses)


def read_settings(
    flags: Mapping[str, Any],
    variables: Mapping[str, str] | None = None,
    folder: Path | None = None,
    *,
    forgiving: bool = False,
) -> Settings:
    """Merge the sources; `flags` has the options that were given.

    `forgiving` ignores all variables, or the whole file, if one of its settings is invalid.
    """
    sources = _SettingSources(os.environ if variables is None else variables, folder or Path.cwd())
    levels, troubles = [*sources.flags(flags)], []
    for level in (sources.variables, lambda: sources.file(flags)):
        try:
            levels += level()
        except SettingError as error:
            if not forgiving:
                raise
            troubles.append(error)
    found = {name: Setting(name, default, "default") for name, (default, _) in _KNOWN.items()}
    for name, value, source in reversed(levels):
        found[name] = Setting(name, value, source)
    return Settings(dict(sorted(found.items())), tuple(troubles))


def known_variables() -> frozenset[str]:
    """Return the names of all variables that are read."""
    return frozenset(
        f"CATALOG_{name.upper()}" for name in (*_KNOWN, OPTIONS, "anonymise_key", "config_file", "env", "traceback")
    )


def read_environments(flags: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the tables of the settings file that `--env` can name."""
    _, _, environments = _SettingSources(os.environ, Path.cwd()).tables(flags)
    return {name: table for name, table in environments.items() if isinstance(table, dict)}


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("it must be a text that is not empty")
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,19}", str(value)) or int(str(value)) > _WHOLE_MAX:
        raise ValueError(f"it must be a whole number from 0 to {_WHOLE_MAX}")
    return int(str(value))


def _format(value: object) -> str:
    if value not in FORMATS:
        raise ValueError(f"it must be {' or '.join(FORMATS)}")
    return str(value)


_KNOWN: Final[Mapping[str, tuple[Any, Callable[[object], Any]]]] = {
    "store": (None, _text),
    "project": ("catalog", _text),
    "spark": (None, _text),
    "class_archive": (None, _text),
    "deploy_generation": (None, _whole),
    "lock_timeout": (LOCK_TIMEOUT_S, parse_seconds),
    "timeout": (None, parse_seconds),
    "format": ("text", _format),
    "log_format": (None, _format),
    "metrics_file": (None, _text),
    "ready_file": (None, _text),
}

_PLACES: Final = frozenset({"store", "class_archive", "metrics_file", "ready_file"})
"""Paths, relative to the file that names them."""
_OFF: Final = "off"
"""In the place of a path: there is none."""

_Level = tuple[str, Any, str]


@dataclass(frozen=True, slots=True)
class _SettingSources:
    environment: Mapping[str, str]
    folder: Path

    def flags(self, flags: Mapping[str, Any]) -> Iterator[_Level]:
        for name, value in flags.items():
            if name in _KNOWN and value is not None:
                flag = f"--{name.replace('_', '-')}"
                yield name, _parsed(name, value, flag), flag
        for option, value in (flags.get(OPTIONS) or {}).items():
            yield f"{OPTIONS}.{option}", value, "--storage-option"

    def variables(self) -> Iterator[_Level]:
        for name in _KNOWN:
            variable = f"CATALOG_{name.upper()}"
            if value := self.environment.get(variable):
                yield name, _parsed(name, value, variable), variable
        variable = f"CATALOG_{OPTIONS.upper()}"
        if raw := self.environment.get(variable):
            try:
                options = json.loads(raw)
            except ValueError as error:
                raise SettingError(
                    variable, f"it is not a JSON object: {error}", 'write {"aws_region": "eu-west-1"}'
                ) from error
            yield from self._options(options, variable)

    def tables(self, flags: Mapping[str, Any]) -> tuple[Path | None, dict[str, Any], dict[str, Any]]:
        """Return the path of the settings file, its table `[tool.catalog]`, and its tables of environments."""
        named = self._asked(flags, "config_file")
        path = _nearest(self.folder) if named is None else Path(named)
        table = {} if path is None else _read_table(path, required=named is not None)
        environments = table.get("env", {})
        if not isinstance(environments, dict):
            raise SettingError(f"{path}: tool.catalog.env", "it is not a table", "write [tool.catalog.env.NAME]")
        return path, table, environments

    def file(self, flags: Mapping[str, Any]) -> Iterator[_Level]:
        path, table, environments = self.tables(flags)
        environment = self._asked(flags, "env")
        if environment is not None:
            if not isinstance(environments.get(environment), dict):
                known = ", ".join(sorted(environments)) or "none"
                where = "no file with [tool.catalog] was found" if path is None else f"{path.name} has: {known}"
                raise SettingError(
                    f"environment {environment}", where, f"add [tool.catalog.env.{environment}], or correct --env"
                )
            yield from self._table(environments[environment], path, f"tool.catalog.env.{environment}")
        if path is not None:
            own = {name: value for name, value in table.items() if name not in _NOT_OURS}
            yield from self._table(own, path, "tool.catalog")

    def _asked(self, flags: Mapping[str, Any], name: str) -> str | None:
        flag: str | None = flags.get(name)
        return self.environment.get(f"CATALOG_{name.upper()}") or None if flag is None else flag

    def _table(self, table: Mapping[str, Any], path: Path | None, heading: str) -> Iterator[_Level]:
        source = f"[{heading}] in {path.name if path else ''}"
        for name, raw in table.items():
            where = f"{name} under {source}"
            if name == OPTIONS:
                yield from self._options(raw, source)
                continue
            if name not in _KNOWN:
                close = get_close_matches(name, [*_KNOWN, OPTIONS], 1)
                known = f"did you mean {close[0]}?" if close else f"there are {', '.join((*_KNOWN, OPTIONS))}"
                raise SettingError(where, "there is no such setting", known)
            value = _parsed(name, self._expanded(raw, where), where)
            if name in _PLACES and path is not None and "://" not in value and value != _OFF:
                value = str(path.absolute().parent / value)
            yield name, value, source

    def _options(self, options: object, source: str) -> Iterator[_Level]:
        if not isinstance(options, dict):
            raise SettingError(f"{OPTIONS} of {source}", "it is not a table of options", _EXAMPLE_OPTIONS)
        for option, value in options.items():
            if not isinstance(value, str | int | float):
                raise SettingError(f"{OPTIONS}.{option} of {source}", "it is not a text", _EXAMPLE_OPTIONS)
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield f"{OPTIONS}.{option}", self._expanded(text, f"{option} of {source}"), source

    def _expanded(self, value: Any, where: str) -> Any:  # noqa: ANN401 - only texts change
        def replaced(match: re.Match[str]) -> str:
            if match[2] is None:
                return "$"
            if match[2] not in self.environment:
                raise SettingError(where, f"it refers to ${{{match[2]}}}, which is not set", f"set {match[2]}")
            return self.environment[match[2]]

        return _VARIABLE.sub(replaced, value) if isinstance(value, str) else value


_EXAMPLE_OPTIONS: Final = 'write a table such as { aws_region = "eu-west-1" }'


def _parsed(name: str, value: object, where: str) -> Any:  # noqa: ANN401
    try:
        return _KNOWN[name][1](value)
    except ValueError as error:
        raise SettingError(where, f"{value!r} is not valid: {error}", f"correct {where}") from error


def _nearest(folder: Path) -> Path | None:
    """Find the settings file: in this folder, or in the nearest one above it that has one with `[tool.catalog]`."""
    for above in (folder.absolute(), *folder.absolute().parents):
        for name in FILES:
            path = above / name
            if path.is_file() and _read_table(path, required=name == FILES[0]):
                return path
    return None


def _read_table(path: Path, *, required: bool) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - there may be no file

    try:
        with path.open("rb") as file:
            table = tomllib.load(file).get("tool", {}).get("catalog")
    except OSError as error:
        raise SettingError(str(path), f"it cannot be read: {error.strerror}", "correct --config-file") from error
    except (ValueError, AttributeError, RecursionError) as error:
        raise SettingError(str(path), f"it is not valid TOML: {error}", "correct the file") from error
    if not isinstance(table, dict):
        if required:
            raise SettingError(str(path), "it has no table [tool.catalog]", "add one, or correct --config-file")
        return {}
    return table
