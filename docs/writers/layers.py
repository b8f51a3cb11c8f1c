"""The picture of the layers, drawn from the contract that `./dev lint` holds the imports to."""

from __future__ import annotations

import tomllib

from docs.links import ROOT
from docs.writers.drawing import Kind, Picture, Words, chip_lines, chip_width

SAID = {
    "cli": "the catalog command",
    "template": "projects of one's own",
    "upgrade": "the dispatch",
    "initialize": "what a new store holds",
    "checking": "upgrades tried, machines examined",
    "open": "what is done to whole stores",
    "leading": "taking the lead, waiting",
    "handle": "an open store; copies",
    "builtin": "collections brought along",
    "engine": "plans, runs, undoes steps",
    "generator": "made-up stores",
    "datasource": "collections as DataFrames",
    "stash": "transactions; columns",
    "log": "commits; sessions and jobs",
    "codec": "protobuf ↔ Arrow ↔ Spark",
    "version": "which versions there are",
    "project": "what the engine is given",
    "actions": "what a migration may declare",
    "notices": "what observers are told",
    "errors": "what a caller can meet",
    "gate": "by which name it is found",
}
"""Of a layer, by one of its modules."""
GATE = (
    ("__main__", "check snapshot release …"),
    ("check", "reads once, asks every rule"),
    ("rules", "types, frozen files, dispatch, …"),
    ("snapshot", "the recipe"),
    ("codegen", "the types as Python modules"),
    ("workspace", "everything, read once"),
    ("wire", "what bytes survive"),
    ("history", "what was released"),
)
WIDTH, LEFT, PACKAGE_WIDTH, GATE_LEFT = 820, 34, 500, 566


def layers() -> str:
    picture = Picture(
        "The layers of the catalog, and the gate beside them",
        "Imports go downward only, and the gate never imports the package. From the top: "
        + "; ".join(", ".join(layer) for layer in contract()),
        WIDTH,
    )
    bottom = _draw_package(picture)
    gate_bottom = _draw_gate(picture)
    generated = bottom + 26
    picture.box(LEFT, generated, PACKAGE_WIDTH, 44, Kind.PROJECT)
    picture.words(LEFT + 12, generated + 22, "catalog/generated", Words.NAME)
    picture.words(
        LEFT + PACKAGE_WIDTH - 12, generated + 22, "every version's types, made by codegen", Words.QUIET, "end"
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
    """The modules of each layer, from the top."""
    return [[name.strip() for name in layer.split("|")] for layer in _contract("imports go downward only")["layers"]]


def projects_own() -> set[str]:
    """The modules that the engine must not know."""
    return {name.removeprefix("catalog.") for name in _contract("the engine knows no project")["forbidden_modules"]}


def _contract(name: str) -> dict[str, list[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (found,) = [each for each in settings["tool"]["importlinter"]["contracts"] if each["name"] == name]
    return dict(found)


def _draw_package(picture: Picture) -> float:
    """A band for each layer; answers where they end."""
    own, y = projects_own(), 34.0
    picture.words(LEFT + PACKAGE_WIDTH / 2, 22, "catalog", Words.NAME, "middle")
    for layer in contract():
        said = next((SAID[name] for name in layer if name in SAID), "")
        lines = chip_lines(layer, PACKAGE_WIDTH - 16)
        used = sum(chip_width(name) + 6 for name in lines[-1])
        needs_line = used + len(said) * 6.3 + 20 > PACKAGE_WIDTH
        height = 30 * len(lines) + 10 + (20 if needs_line else 0)
        picture.box(LEFT, y, PACKAGE_WIDTH, height)
        for row, names in enumerate(lines):
            x = LEFT + 8.0
            for name in names:
                x += picture.chip(x, y + 8 + 30 * row, name, Kind.PROJECT if name in own else Kind.ENGINE) + 6
        picture.words(LEFT + PACKAGE_WIDTH - 12, y + height - 20 + (4 if needs_line else 0), said, Words.QUIET, "end")
        y += height + 4
    return y - 4


def _draw_gate(picture: Picture) -> float:
    width, y = WIDTH - 10 - GATE_LEFT, 34.0
    picture.words(GATE_LEFT + width / 2, 22, "build_tools", Words.NAME, "middle")
    for name, said in GATE:
        if not list((ROOT / "build_tools").glob(f"{name}*")):
            raise FileNotFoundError(f"build_tools/{name} is drawn, and not there")
        picture.box(GATE_LEFT, y, width, 54)
        picture.chip(GATE_LEFT + 8, y + 6, name, Kind.ENGINE)
        picture.words(GATE_LEFT + 10, y + 42, said, Words.QUIET)
        y += 58
    picture.words(GATE_LEFT + width / 2, y + 12, "the gate; in the wheel: catalog/_gate", Words.QUIET, "middle")
    return y + 24


def _draw_legend(picture: Picture, y: float) -> None:
    picture.box(LEFT, y, 18, 14, Kind.ENGINE)
    picture.words(LEFT + 26, y + 7, "the engine, which works on any project", Words.QUIET)
    picture.box(LEFT + 280, y, 18, 14, Kind.PROJECT)
    picture.words(LEFT + 306, y + 7, "this repository's own project", Words.QUIET)
