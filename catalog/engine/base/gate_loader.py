"""The gate by its name here: the wheel carries it inside the package, a checkout beside it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def gate_name() -> str:
    return "catalog._gate" if find_spec("catalog._gate") else "build_tools"


def load_gate(module: str) -> Any:  # noqa: ANN401 - a module of the gate, which has two names
    return import_module(f"{gate_name()}.{module}")
