"""The picture of the layers, drawn from the contracts that `./dev lint` checks the imports against."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docs.links import ROOT
from docs.writers.drawing import Kind, Picture, Words, chip_lines, chip_width

PACKAGE_CONTRACT, ENGINE_CONTRACT = "imports go downward only", "the engine's imports go downward only"
PROJECT_CONTRACT = "the engine knows no project"
PURPOSES: Mapping[str, str] = {
    "cli": "the catalog command",
    "tools": "operations on whole stores",
    "engine.store": "open, lead, serve a store",
    "engine.migrate": "steps on Spark; tables declared in code",
    "engine.spark": "sessions, jobs, DataFrames, SQL",
    "engine.stash": "rows by key; rows in columns",
    "engine.log": "atomic commits on Delta Lake",
    "engine.storage": "folders, object stores; protobuf ↔ Arrow",
    "engine.base": "values that know no store",
    "upgrade": "the project",
    "authoring": "the public API",
}
"""Of a band of the picture, by the first module in it."""
GATE = (
    ("cli", "check, snapshot, release, …"),
    ("check", "reads once, runs every rule"),
    ("rules", "types, frozen files, dispatch, …"),
    ("verbs", "new version, release, retire, …"),
    ("workspace", "everything that rules read"),
    ("protos", "types, wire rules, codegen"),
    ("sources", "Python files, hashes, git"),
)
WIDTH, LEFT, PACKAGE_WIDTH, GATE_LEFT = 820, 34, 500, 566
FRAME = 28
"""Height of the title of the engine's frame."""


@dataclass(frozen=True, slots=True)
class Band:
    """One row of the picture: a layer, or neighbouring layers of one owner."""

    owner: str
    names: tuple[str, ...]


def layers() -> str:
    """Return the picture as SVG."""
    picture = Picture(
        "The layers of the catalog, and the gate beside them",
        "Imports go downward only, and the gate never imports the package. From the top: "
        + "; ".join(", ".join(band.names) for band in bands()),
        WIDTH,
    )
    bottom = _draw_package(picture)
    gate_bottom = _draw_gate(picture)
    generated = bottom + 26
    picture.box(LEFT, generated, PACKAGE_WIDTH, 44, Kind.PROJECT)
    picture.words(LEFT + 12, generated + 22, "catalog/generated", Words.NAME)
    picture.words(
        LEFT + PACKAGE_WIDTH - 12, generated + 22, "the types of every version, by codegen", Words.QUIET, "end"
    )
    middle = GATE_LEFT + (WIDTH - 10 - GATE_LEFT) / 2
    picture.arrow((middle, gate_bottom), (middle, generated + 22), (LEFT + PACKAGE_WIDTH, generated + 22))
    picture.words(middle + 10, (gate_bottom + generated) / 2, "codegen", Words.QUIET)
    picture.arrow((LEFT + 60, generated), (LEFT + 60, bottom))
    picture.arrow((LEFT + PACKAGE_WIDTH, 54), (GATE_LEFT, 54))
    picture.arrow((14, 46), (14, bottom))
    picture.words(14, 22, "imports", Words.QUIET, "start")
    _draw_legend(picture, generated + 66)
    return picture.svg(generated + 92)


def contract() -> list[list[str]]:
    """Return the modules of each layer from the top, as paths below `catalog`; the engine's packages follow it."""
    found: list[list[str]] = []
    for layer in _contract(PACKAGE_CONTRACT)["layers"]:
        found.append(_siblings(layer))
        if found[-1] == ["engine"]:
            found += [[f"engine.{name}" for name in _siblings(inner)] for inner in _contract(ENGINE_CONTRACT)["layers"]]
    return found


def project_modules() -> set[str]:
    """Return the modules of this repository's project: those the engine must not import, and the version numbers."""
    forbidden = _contract(PROJECT_CONTRACT)["forbidden_modules"]
    return {"version", *(name.removeprefix("catalog.") for name in forbidden)}


def bands() -> list[Band]:
    """Return the rows of the picture: the project's layers are one, and so are those of the public API below it."""
    found: list[Band] = []
    for names in contract():
        owner = _owner(names)
        if found and owner in {"project", "api"} and found[-1].owner == owner:
            found[-1] = Band(owner, (*found[-1].names, *names))
        elif names != ["engine"]:
            found.append(Band(owner, tuple(names)))
    return found


def _owner(names: Sequence[str]) -> str:
    if names[0].startswith("engine"):
        return "engine"
    if names[0] in {"cli", "tools"}:
        return "program"
    return "project" if project_modules().issuperset(names) else "api"


def _siblings(layer: str) -> list[str]:
    """Return the modules of one layer: `a | b` may not import each other, `a : b` may."""
    return re.split(r"\s*[|:]\s*", layer)


def _contract(name: str) -> dict[str, Any]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (found,) = [each for each in settings["tool"]["importlinter"]["contracts"] if each["name"] == name]
    return dict(found)


def _draw_package(picture: Picture) -> float:
    """Draw the bands, those of the engine in a frame; return where they end."""
    y = 34.0
    picture.words(LEFT + PACKAGE_WIDTH / 2, 22, "catalog", Words.NAME, "middle")
    inner = [band for band in bands() if band.owner == "engine"]
    for band in bands():
        if band == inner[0]:
            height = FRAME + sum(_height(each, PACKAGE_WIDTH - 20) + 4 for each in inner) + 6
            picture.box(LEFT, y, PACKAGE_WIDTH, height)
            picture.words(LEFT + 12, y + FRAME / 2 + 1, "engine", Words.NAME)
            picture.words(LEFT + PACKAGE_WIDTH - 12, y + FRAME / 2 + 1, "knows no project", Words.QUIET, "end")
            y += FRAME
        inset = 10.0 if band in inner else 0.0
        y += _draw_band(picture, band, LEFT + inset, y, PACKAGE_WIDTH - 2 * inset) + 4
        if band == inner[-1]:
            y += 10
    return y - 4


def _draw_band(picture: Picture, band: Band, left: float, y: float, width: float) -> float:
    """Draw one band; return its height."""
    height = _height(band, width)
    kind = Kind.PROJECT if band.owner == "project" else Kind.ENGINE
    picture.box(left, y, width, height)
    for row, names in enumerate(chip_lines(_chips(band), width - 16)):
        x = left + 8.0
        for name in names:
            x += picture.chip(x, y + 8 + 30 * row, name, kind) + 6
    picture.words(left + width - 12, y + height - 20, PURPOSES[band.names[0]], Words.QUIET, "end")
    return height


def _height(band: Band, width: float) -> float:
    """Return the height of a band: its lines of names, and one more if the purpose does not fit after the last."""
    lines = chip_lines(_chips(band), width - 16)
    used = sum(chip_width(name) + 6 for name in lines[-1])
    return 30 * len(lines) + 10 + (24 if used + len(PURPOSES[band.names[0]]) * 6.3 + 20 > width else 0)


def _chips(band: Band) -> list[str]:
    return [name.removeprefix("engine.") for name in band.names]


def _draw_gate(picture: Picture) -> float:
    width, y = WIDTH - 10 - GATE_LEFT, 34.0
    picture.words(GATE_LEFT + width / 2, 22, "build_tools", Words.NAME, "middle")
    for name, purpose in GATE:
        if not list((ROOT / "build_tools").glob(f"{name}*")):
            raise FileNotFoundError(f"the picture shows build_tools/{name}, which does not exist")
        picture.box(GATE_LEFT, y, width, 54)
        picture.chip(GATE_LEFT + 8, y + 6, name, Kind.ENGINE)
        picture.words(GATE_LEFT + 10, y + 42, purpose, Words.QUIET)
        y += 58
    picture.words(GATE_LEFT + width / 2, y + 12, "the gate; in the wheel: catalog/_gate", Words.QUIET, "middle")
    return y + 24


def _draw_legend(picture: Picture, y: float) -> None:
    picture.box(LEFT, y, 18, 14, Kind.ENGINE)
    picture.words(LEFT + 26, y + 7, "serves any project", Words.QUIET)
    picture.box(LEFT + 280, y, 18, 14, Kind.PROJECT)
    picture.words(LEFT + 306, y + 7, "this repository's own project", Words.QUIET)
