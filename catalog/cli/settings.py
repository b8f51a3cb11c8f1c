"""What a command was told, and by whom: a flag, a variable, a file, or nobody.

The first of these that says something stands: the flag; the variable `CATALOG_…`; `[tool.catalog.env.NAME]`, then
`[tool.catalog]` in `catalog.toml` or `pyproject.toml`; the default. Reads no store.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from catalog.errors import SettingError

FILES: Final = ("catalog.toml", "pyproject.toml")
REDACTED: Final = "********"
_SECRET = re.compile(r"secret|token|password|passwd|credential|sas|account_key|access_key|private", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(\$|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_WHOLE_MAX: Final = 2**63 - 1
"""What a store can hold."""
_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NOT_OURS: Final = frozenset({"unwritten", "env"})
"""Under `[tool.catalog]` too: what the gate reads, and the tables of environments."""
OPTIONS: Final = "storage_options"


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: Any
    source: str

    @property
    def is_secret(self) -> bool:
        return self.value is not None and is_secret(self.name)

    @property
    def shown(self) -> Any:  # noqa: ANN401 - of whatever type the setting is
        return REDACTED if self.is_secret else self.value


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting there is, each with its source; `storage_options.NAME` for each storage option."""

    all: Mapping[str, Setting]
    troubles: tuple[SettingError, ...] = ()
    """What is wrong with variables or files whose settings are left out, if that was asked for."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        return self.all[name].value

    @property
    def storage_options(self) -> dict[str, str]:
        prefix = f"{OPTIONS}."
        return {name.removeprefix(prefix): own.value for name, own in self.all.items() if name.startswith(prefix)}

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown, wherever it turns up."""
        return tuple(str(own.value) for own in self.all.values() if own.is_secret)


def read_settings(
    flags: Mapping[str, Any],
    variables: Mapping[str, str] | None = None,
    folder: Path | None = None,
    *,
    forgiving: bool = False,
) -> Settings:
    """What holds for a command with these flags; those that were not given are None.

    `forgiving` leaves out the variables, or the file, in which something is wrong.
    """
    told = _Told(os.environ if variables is None else variables, folder or Path.cwd())
    levels, troubles = [*told.flags(flags)], []
    for level in (told.variables, lambda: told.file(flags)):
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
    """The names of all variables that are read."""
    return frozenset(f"CATALOG_{name.upper()}" for name in (*_KNOWN, OPTIONS, "config_file", "env", "traceback"))


def read_environments(
    flags: Mapping[str, Any], variables: Mapping[str, str] | None = None, folder: Path | None = None
) -> Mapping[str, Mapping[str, Any]]:
    """The tables that `--env` can name, as they stand in the file."""
    told = _Told(os.environ if variables is None else variables, folder or Path.cwd())
    _, _, environments = told.tables(flags)
    return {name: table for name, table in environments.items() if isinstance(table, dict)}


def is_secret(name: str) -> bool:
    """Whether what has this name is to be shown to nobody."""
    return _SECRET.search(name) is not None


def seconds(text: object) -> float:
    """A duration: a number of seconds, or one with its unit: `500ms`, `90s`, `5m`, `2h`."""
    match = _DURATION.fullmatch(str(text).strip())
    if match is None:
        raise ValueError("a duration is a number of seconds, or one with a unit, such as 90s, 5m or 2h")
    return float(match[1]) * _UNITS_S[match[2] or "s"]


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("it is to be a text that is not empty")
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,19}", str(value)) or int(str(value)) > _WHOLE_MAX:
        raise ValueError(f"it is to be a whole number from 0 to {_WHOLE_MAX}")
    return int(str(value))


def _format(value: object) -> str:
    if value not in {"text", "json"}:
        raise ValueError("it is to be text or json")
    return str(value)


_KNOWN: Final[Mapping[str, tuple[Any, Callable[[object], Any]]]] = {
    "store": (None, _text),
    "project": ("catalog", _text),
    "spark": (None, _text),
    "deploy_generation": (None, _whole),
    "lock_timeout": (60.0, seconds),
    "timeout": (None, seconds),
    "format": ("text", _format),
    "log_format": (None, _format),
    "metrics_file": (None, _text),
    "ready_file": (None, _text),
}

_PLACES: Final = frozenset({"store", "metrics_file", "ready_file"})
"""Relative to the file that names them."""

_Level = tuple[str, Any, str]


@dataclass(frozen=True, slots=True)
class _Told:
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
                    variable, f"it is no JSON object: {error}", 'write {"aws_region": "eu-west-1"}'
                ) from error
            yield from self._options(options, variable)

    def tables(self, flags: Mapping[str, Any]) -> tuple[Path | None, dict[str, Any], dict[str, Any]]:
        """The file that settings are read from, if there is one; what it says of all environments, and of each."""
        named = self._asked(flags, "config_file")
        path = _nearest(self.folder) if named is None else Path(named)
        table = {} if path is None else _read_table(path, required=named is not None)
        environments = table.get("env", {})
        if not isinstance(environments, dict):
            raise SettingError(f"{path}: tool.catalog.env", "it is no table", "write [tool.catalog.env.NAME]")
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
            if name in _PLACES and path is not None and "://" not in value:
                value = str(path.absolute().parent / value)
            yield name, value, source

    def _options(self, options: object, source: str) -> Iterator[_Level]:
        if not isinstance(options, dict):
            raise SettingError(f"{OPTIONS} of {source}", "it is no table of options", _EXAMPLE_OPTIONS)
        for option, value in options.items():
            if not isinstance(value, str | int | float):
                raise SettingError(f"{OPTIONS}.{option} of {source}", "it is no text", _EXAMPLE_OPTIONS)
            told = str(value).lower() if isinstance(value, bool) else str(value)
            yield f"{OPTIONS}.{option}", self._expanded(told, f"{option} of {source}"), source

    def _expanded(self, value: Any, where: str) -> Any:  # noqa: ANN401 - only texts change
        def replaced(match: re.Match[str]) -> str:
            if match[2] is None:
                return "$"
            if match[2] not in self.environment:
                raise SettingError(
                    where, f"it refers to ${{{match[2]}}}, and there is no such variable", f"set {match[2]}"
                )
            return self.environment[match[2]]

        return _VARIABLE.sub(replaced, value) if isinstance(value, str) else value


_EXAMPLE_OPTIONS: Final = 'write a table such as { aws_region = "eu-west-1" }'


def _parsed(name: str, value: object, where: str) -> Any:  # noqa: ANN401
    try:
        return _KNOWN[name][1](value)
    except ValueError as error:
        raise SettingError(where, f"{value!r} does not fit: {error}", f"correct {where}") from error


def _nearest(folder: Path) -> Path | None:
    """The file with `[tool.catalog]` in this folder, or in the nearest one above it that has one."""
    for above in (folder.absolute(), *folder.absolute().parents):
        for name in FILES:
            path = above / name
            if path.is_file() and _read_table(path, required=name == FILES[0]):
                return path
    return None


def _read_table(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            table = tomllib.load(file).get("tool", {}).get("catalog")
    except OSError as error:
        raise SettingError(str(path), f"it cannot be read: {error.strerror}", "correct --config-file") from error
    except (ValueError, AttributeError, RecursionError) as error:
        raise SettingError(str(path), f"it is no TOML: {error}", "correct the file") from error
    if not isinstance(table, dict):
        if required:
            raise SettingError(str(path), "it has no table [tool.catalog]", "add one, or correct --config-file")
        return {}
    return table
