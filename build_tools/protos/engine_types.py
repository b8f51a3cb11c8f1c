"""The types of the engine's collections, as the engine uses them: each number with its name and its declared type."""

from __future__ import annotations

from typing import Final

ENGINE_TYPES: Final[dict[str, dict[int, tuple[str, str]]]] = {
    "ConfigKey": {
        1: ("name", "string"),
    },
    "ConfigValue": {
        1: ("number", "uint64 in the oneof value"),
        2: ("text", "string in the oneof value"),
    },
    "FenceTokenKey": {
        1: ("scope", "string"),
    },
    "FenceTokenValue": {
        1: ("deploy_generation", "uint64"),
        2: ("epoch", "uint64"),
        3: ("holder", "string"),
    },
    "MigrationEventKey": {
        1: ("id", "uint64"),
    },
    "MigrationEventValue": {
        1: ("version", "uint64"),
        2: ("name", "string"),
        3: ("state", "MigrationState"),
        4: ("checksum", "string"),
        5: ("started_ms", "uint64"),
        6: ("completed_ms", "optional uint64"),
        7: ("previous", "uint64"),
        8: ("error", "string"),
        9: ("rows_before", "optional uint64"),
        10: ("rows_after", "optional uint64"),
        11: ("bytes_before", "optional uint64"),
        12: ("bytes_after", "optional uint64"),
        13: ("build", "string"),
        14: ("deploy_generation", "uint64"),
        15: ("epoch", "uint64"),
    },
    "MigrationState": {
        0: ("MIGRATION_STATE_UNSPECIFIED", "value"),
        1: ("MIGRATION_STATE_RUNNING", "value"),
        2: ("MIGRATION_STATE_MIGRATED", "value"),
        3: ("MIGRATION_STATE_ERROR", "value"),
        4: ("MIGRATION_STATE_UNDONE", "value"),
    },
}
"""A version may have more than these, and versions from before one of them have less."""
