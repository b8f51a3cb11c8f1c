"""Version 18 to 19: comments on items and their columns move to a collection of their own.

For whom: every store that has comments. Why: a comment inside an item rewrites the item, and its statement
with it, whenever somebody edits a sentence; and only items could have one. As rows of `comment` they can be
on any object.

`comment` is created. `item` is rewritten without `comment` and `column_comments`, everything else in it
unchanged. For each item there come, besides the item itself:

- if it has a comment, a row with `item_id` and no column;
- for each column comment, a row with `item_id` and the position as `column`.

An item without comments makes no row. A comment that is there but empty makes a row with an empty text:
whoever wrote it meant something, and this step does not judge it. Two comments on one column of an item
would be rows with one key; as it is not known which of them is right, the step then fails and names the
key.
"""

from collections.abc import Iterator

from catalog.actions import Action, create, per_row
from catalog.generated import objects_v18_pb2 as v18
from catalog.generated import objects_v19_pb2 as v19


def upgrade() -> list[Action]:
    """Declare the step: items, row by row, into themselves and their comments."""
    return [
        create("comment"),
        per_row("item", move_comments, into=("comment",)),
    ]


def move_comments(
    key: v18.ItemKey, value: v18.ItemValue
) -> Iterator[tuple[v19.ItemKey, v19.ItemValue] | tuple[v19.CommentKey, v19.CommentValue]]:
    """Yield the item without comments, then its own comment if there is one, then each column comment."""
    item = v19.ItemValue.FromString(value.SerializeToString())
    item.DiscardUnknownFields()  # the comments; nothing else has a number that v19 does not know
    yield v19.ItemKey(id=key.id), item
    if value.HasField("comment"):
        yield v19.CommentKey(item_id=key.id), v19.CommentValue(comment=value.comment)
    seen: set[int] = set()
    for column in value.column_comments:
        if column.position in seen:
            message = f"item {key.id}: two comments on column {column.position}"
            raise ValueError(message)
        seen.add(column.position)
        yield v19.CommentKey(item_id=key.id, column=column.position), v19.CommentValue(comment=column.comment)
