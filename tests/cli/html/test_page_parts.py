"""What pages are made of: differences of types, charts as geometry, quantities, and the place of a page."""

from __future__ import annotations

import os
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from catalog.cli.html.charts import AFTER, BEFORE, ONLY, Quantity, Series, Tone, end_to_end, side_by_side, trend
from catalog.cli.html.output_file import page_place
from catalog.cli.html.schema_diff import DiffKind, differences
from catalog.cli.text.formats import brief_count, duration, share
from catalog.errors import PageError, UsageError
from catalog.errors.visible_text import visible
from catalog.tools.fsck.findings import MEANINGS, FsckCode
from catalog.upgrade import PROJECT
from tests.cli.html.made_pages import MADE_AT

Told = dict[str, list[tuple[str, str, str]]]


def told(previous: int, version: int) -> Told:
    """What changed, by message: the change, the numbers, and the field before and after."""
    return {
        part.name: [
            (
                own.change.value,
                own.numbers,
                " → ".join(f"{side.type} {side.name}" for side in (own.before, own.after) if side is not None),
            )
            for own in part.members
            if own.change is not DiffKind.SAME
        ]
        for part in differences(PROJECT, previous, version).parts
    }


def test_a_field_that_comes_or_goes_is_told_with_its_number() -> None:
    """What a role may create became one set of bits."""
    assert told(15, 16) == {
        "RoleValue": [
            ("removed", "2", "bool create_db"),
            ("removed", "3", "bool create_role"),
            ("removed", "4", "bool create_cluster"),
            ("added", "6", "uint64 permissions"),
        ]
    }


def test_a_field_of_the_same_name_under_another_number_is_retyped() -> None:
    """A role's id is a choice now; the new message is added as a whole, and says where it is used."""
    found = told(16, 17)
    assert found["RoleKey"] == [("retyped", "1 → 2", "uint64 id → RoleId id")]
    assert found["RoleValue"] == [("retyped", "5 → 7", "repeated uint64 member_of → repeated RoleId member_of")]
    whole = {part.name: part for part in differences(PROJECT, 16, 17).parts}
    assert whole["RoleId"].change is DiffKind.ADDED
    assert {"role", "database", "cluster"} <= set(whole["RoleId"].collections)
    assert whole["RoleKey"].collections == ("role",)


def test_a_message_that_goes_is_removed_with_all_its_fields() -> None:
    """And nothing else changes with a collection that is retired."""
    assert told(20, 21) == {
        "TimestampKey": [("removed", "1", "string timeline")],
        "TimestampValue": [("removed", "1", "uint64 ts")],
    }


def test_rows_of_before_protobuf_are_compared_by_name() -> None:
    """Only what really differs is told: JSON had a map where protobuf has a list."""
    found = differences(PROJECT, 14, 15)
    assert found.by_name
    assert told(14, 15) == {
        "ClusterValue": [("retyped", "4", "map<string, string> spark_conf → repeated SparkSetting spark_conf")],
        "SparkSetting": [("added", "1", "string name"), ("added", "2", "string value")],
    }


def test_versions_that_are_the_same_differ_in_nothing() -> None:
    """At every version, and the counts of a whole upgrade are those of its parts."""
    for version in range(PROJECT.minimum, PROJECT.current + 1):
        assert differences(PROJECT, version, version).parts == ()
    whole = differences(PROJECT, 15, 22)
    changes = [own.change for part in whole.parts for own in part.members if own.change is not DiffKind.SAME]
    assert sum(whole.counts.values()) == len(changes) > 0


def test_bars_are_as_long_as_their_share_of_the_longest() -> None:
    """The largest first; each says its numbers in words as well."""
    shown = [Quantity("small", (10.0, 5.0), "10 → 5"), Quantity("large", (0.0, 40.0), "0 → 40")]
    chart = side_by_side("x", "Rows", (BEFORE, AFTER), shown)
    assert [row.label for row in chart.rows] == ["large", "small"]
    assert [[bar.width for bar in row.bars] for row in chart.rows] == [[0.0, 100.0], [25.0, 12.5]]
    tops = [bar.y for row in chart.rows for bar in row.bars]
    assert tops == sorted(set(tops))
    assert chart.height_px > tops[-1]
    assert chart.summary == "before and after. large: 0 → 40; small: 10 → 5"


def test_a_chart_draws_the_largest_and_counts_the_rest() -> None:
    """Nothing at all is a chart too."""
    chart = side_by_side("x", "Rows", (ONLY,), [Quantity(f"{n}", (float(n),), f"{n}") for n in range(20)])
    assert [row.label for row in chart.rows][:2] == ["19", "18"]
    assert (len(chart.rows), chart.more, chart.legend) == (12, "and 8 smaller ones", ())
    assert side_by_side("x", "Rows", (ONLY,), [Quantity("none", (0.0,), "0")]).rows[0].bars[0].width == 0
    assert side_by_side("x", "Rows", (ONLY,), []).height_px >= 0


def test_parts_of_a_bar_stand_end_to_end() -> None:
    """In the order of the steps, whatever they took."""
    series = (Series("own", Tone.STRONG), Series("other", Tone.QUIET))
    chart = end_to_end("x", "Time", series, [Quantity("a", (1.0, 1.0), ""), Quantity("b", (3.0, 1.0), "")])
    assert [[(bar.start, bar.width) for bar in row.bars] for row in chart.rows] == [
        [(0.0, 25.0), (25.0, 25.0)],
        [(0.0, 75.0), (75.0, 25.0)],
    ]


def test_a_trend_stands_on_zero_and_shares_its_time_with_others() -> None:
    """Its upper end is a round number above the highest value."""
    days = [MADE_AT + timedelta(days=number) for number in range(5)]
    drawn = trend("x", "Rows", [(days[1], 50), (days[3], 150)], (days[0], days[4]))
    assert [(dot.x, dot.y) for dot in drawn.dots] == [(25.0, 66.667), (75.0, 0.0)]
    assert (drawn.top, drawn.latest, drawn.change) == ("150", "150", "+200.0 %")
    assert (drawn.first, drawn.last) == ("2026-11-17", "2026-11-21")
    assert drawn.line == "M25 66.667L75 0"
    assert "2 measurements: 2026-11-18" in drawn.summary


def test_a_trend_of_one_point_or_of_nothing_is_drawn() -> None:
    """At its right end, where now is."""
    once = trend("x", "Rows", [(MADE_AT, 7)], (MADE_AT, MADE_AT))
    assert ([(dot.x, dot.y) for dot in once.dots], once.change, once.top) == ([(100.0, 12.5)], "", "8")
    assert "once" in once.summary
    assert [
        trend("x", "Rows", [(MADE_AT, before), (MADE_AT, after)], (MADE_AT, MADE_AT)).change
        for before, after in ((0, 5), (7, 7), (8, 2), (2, 2_000))
    ] == ["", "unchanged", "-75.0 %", "1,000-fold"]
    none = trend("x", "Rows", [(MADE_AT, 0)], (MADE_AT, MADE_AT))
    assert (none.top, none.dots[0].y) == ("1", 100.0)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0.0 s"),
        (0.04, "< 0.1 s"),
        (9.96, "10.0 s"),
        (59.4, "59 s"),
        (61, "1 min 1 s"),
        (3599.7, "1 h 0 min"),
        (9000, "2 h 30 min"),
    ],
)
def test_a_duration_is_as_exact_as_somebody_plans(seconds: float, expected: str) -> None:
    """And never a minute of sixty seconds."""
    assert duration(seconds) == expected


def test_a_count_in_a_chart_is_exact_up_to_a_million() -> None:
    """And never takes more room than that."""
    shown = [brief_count(number) for number in (0, 999_999, 1_000_000, 888_888_888, 1_234_567_890_123)]
    assert shown == ["0", "999,999", "1.0 M", "888.9 M", "1.2 T"]


def test_a_share_is_all_or_nothing_only_if_it_is() -> None:
    """However close it comes."""
    assert [share(part) for part in (0, 0.00001, 0.5, 0.123, 0.99999, 1)] == [
        "0 %", "< 0.1 %", "50 %", "12.3 %", "> 99.9 %", "100 %",
    ]  # fmt: skip


def test_characters_that_no_page_may_hold_are_spelt_out() -> None:
    """Those that turn a text around as well; letters of any script stay."""
    assert visible("a\0b\x1b[31m\udcff\u202ec\nd é 🪣") == "a\\u0000b\\u001b[31m\\udcff\\u202ec\nd é 🪣"


def test_every_code_has_its_meaning() -> None:
    """As the heading that findings of it stand under."""
    assert MEANINGS.keys() == set(FsckCode)


def test_a_page_replaces_what_was_there_as_a_whole(tmp_path: Path) -> None:
    """Until then that is as it was; who may read it stays the same, and a link stays one."""
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    page.write_text("before")
    page.chmod(0o640)
    link.symlink_to(page)
    with page_place(str(link)) as place:
        assert page.read_text() == "before"
        place.fill("after é")
    assert page.read_text(encoding="utf-8") == "after é"
    assert stat.S_IMODE(page.stat().st_mode) == 0o640
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, page]


def test_a_page_that_is_not_filled_leaves_nothing(tmp_path: Path) -> None:
    """Whatever went wrong meanwhile."""
    with pytest.raises(RuntimeError), page_place(str(tmp_path / "page.html")):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_new_page_can_be_read_as_any_new_file_can(tmp_path: Path) -> None:
    """Drafts of other programs are their owner's alone; a page is to be handed on."""
    plain = tmp_path / "plain"
    plain.touch()
    with page_place(str(tmp_path / "page.html")) as place:
        place.fill("")
    assert (tmp_path / "page.html").stat().st_mode == plain.stat().st_mode


def test_a_place_where_no_page_can_be_is_refused(tmp_path: Path) -> None:
    """Before anything is done: no folder, a folder, under a file, a pipe, a device, a circle, no name at all."""
    (tmp_path / "file").touch()
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    places = ("none/page.html", ".", "file/page.html", "pipe", "circle", "a\0b", "x" * 300, "circle/page.html")
    for name in (*(f"{tmp_path}/{place}" for place in places), "/dev/null", ""):
        with pytest.raises(UsageError, match="no page can be written"), page_place(name):
            pytest.fail(f"{name!r} was taken")
    assert sorted(tmp_path.iterdir()) == before


def test_a_page_that_cannot_be_put_there_any_more_says_so(tmp_path: Path) -> None:
    """The folder went while the command ran."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with page_place(str(folder / "page.html")) as place:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        with pytest.raises(PageError, match="No such file or directory"):
            place.fill("page")
