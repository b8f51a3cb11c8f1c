"""Tables into a file or a pipe: rich would print the same."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from catalog.cli.screen import make_console
from catalog.cli.text.formats import size
from catalog.cli.text.table import TextTable, table

WIDTH = 100
cells = st.text("abc 1,[]:-_/", max_size=12).map(str.strip) | st.sampled_from(["é", "漢", "a\nb", "a\tb", "x" * 60])
rows = st.lists(st.tuples(cells, cells, cells), max_size=5)


def by_rich(made: TextTable) -> str:
    out = io.StringIO()
    make_console(out).print(made)
    return out.getvalue()


@given(rows)
def test_plain_text_is_what_rich_prints(found: list[tuple[str, str, str]]) -> None:
    """Or it is left to rich: if a line must be broken, or its width is not the number of its characters."""
    made = table(["version", "step"], ["rows"], found)
    plain = made.plain(WIDTH)
    assert plain in (None, by_rich(made))
    if all(cell.isascii() and cell.isprintable() and len(cell) <= 12 for row in found for cell in row):
        assert plain is not None


@given(st.integers(0, 10**27))
def test_sizes_have_units_of_a_thousand(number: int) -> None:
    """As rich tells them."""
    from rich.filesize import decimal  # noqa: PLC0415 - the peer

    assert size(number) == decimal(number)
