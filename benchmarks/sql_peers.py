"""The change of v17_to_v18 as Alembic does it: one row at a time, and in one SQL statement."""

from __future__ import annotations

import os
import time
from pathlib import Path

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations

ACL = {1: 15, 2: 1, 3: 1, 4: 1, 5: 16}
SQL = "CREATE TABLE orders (id BIGINT, placed TIMESTAMP, amount DECIMAL(18, 2)) USING delta"


def alembic_rates(folder: Path, rows: int) -> None:
    """Print the rates on SQLite, and on PostgreSQL if POSTGRES_DSN names one."""
    places = {"SQLite": f"sqlite:///{folder}/peer.db"}
    if dsn := os.environ.get("POSTGRES_DSN"):
        places["PostgreSQL"] = dsn
    for name, url in places.items():
        for what, change in (("row by row", _row_by_row), ("one statement", _one_statement)):
            engine = sa.create_engine(url)
            with engine.begin() as connection:
                _fill(connection, rows)
            with engine.begin() as connection:
                start = time.perf_counter()
                operations = Operations(MigrationContext.configure(connection))
                operations.add_column("item", sa.Column("privileges", sa.Text()))
                change(connection)
            seconds = time.perf_counter() - start
            print(f"Alembic on {name}, {what}, {rows:,} items: {rows / seconds:,.0f} rows/s", flush=True)
            engine.dispose()


def _fill(connection: sa.Connection, rows: int) -> None:
    connection.execute(sa.text("DROP TABLE IF EXISTS item"))
    connection.execute(
        sa.text(
            "CREATE TABLE item (id BIGINT PRIMARY KEY, schema_id BIGINT, name TEXT, kind INT, create_sql TEXT,"
            " owner_id BIGINT, UNIQUE (schema_id, name))"
        )
    )
    insert = sa.text("INSERT INTO item VALUES (:id, :schema_id, :name, :kind, :create_sql, :owner_id)")
    for start in range(1, rows + 1, 50_000):
        connection.execute(
            insert,
            [
                {"id": i, "schema_id": i % 20, "name": f"t{i}", "kind": i % 5 + 1, "create_sql": SQL, "owner_id": 1000}
                for i in range(start, min(start + 50_000, rows + 1))
            ],
        )


def _row_by_row(connection: sa.Connection) -> None:
    update = sa.text("UPDATE item SET privileges = :privileges WHERE id = :id")
    for identity, kind, owner in connection.execute(sa.text("SELECT id, kind, owner_id FROM item")).all():
        connection.execute(update, {"id": identity, "privileges": f"{owner}={ACL[kind]}/{owner}"})


def _one_statement(connection: sa.Connection) -> None:
    cases = " ".join(f"WHEN {kind} THEN '{mode}'" for kind, mode in ACL.items())
    connection.execute(
        sa.text(f"UPDATE item SET privileges = owner_id || '=' || (CASE kind {cases} END) || '/' || owner_id")  # noqa: S608 - numbers of our own
    )
