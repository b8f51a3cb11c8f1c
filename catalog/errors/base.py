"""The root of all errors, and the kinds that a caller handles alike."""

from __future__ import annotations

from typing import Any, ClassVar, dataclass_transform

from catalog.errors.redaction import redact_addresses
from catalog.errors.visible_text import visible


@dataclass_transform()
class CatalogError(Exception):
    """An error that says what happened, why, and what to do next.

    A subclass declares its facts as annotations, and three templates that are filled from the facts:

        class ClosedError(CatalogError):
            uri: str
            what = "this process has closed {uri}"
            why = "another process may lead the store by now"
            next = "open the store again"

    The facts are the parameters of the constructor, by position or by name. An instance carries them as attributes,
    and the filled templates as `what`, `why` and `next`. A template may also name a property; a tuple of texts is
    filled in with commas. An error is pickled by its facts, because Spark sends errors between processes.
    """

    what: str
    why: str
    next: str = "{fix}"
    facts: ClassVar[dict[str, str]] = {"what": "str", "why": "str", "fix": "str"}
    """The name and the declared type of each fact."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__annotations__:
            inherited = {} if cls.facts is CatalogError.facts else cls.facts
            cls.facts = inherited | cls.__annotations__

    def __init__(self, *values: object, **named: object) -> None:
        given = dict(zip(self.facts, values, strict=False)) | named
        missing = [name for name in self.facts if name not in given and not hasattr(type(self), name)]
        if missing or len(given) != len(values) + len(named) or not given.keys() <= self.facts.keys():
            raise TypeError(f"{type(self).__name__} takes {', '.join(self.facts)}")
        facts = {name: given[name] if name in given else getattr(type(self), name) for name in self.facts}
        vars(self).update({name: redact_addresses(v) if isinstance(v, str) else v for name, v in facts.items()})
        words = _Words(self)
        self.what, self.why, self.next = (
            _line(redact_addresses(template if name in self.facts else template.format_map(words)))
            for name, template in zip(("what", "why", "next"), self.templates(), strict=True)
        )
        super().__init__(f"{self.what}\nwhy:  {self.why}\nnext: {self.next}")

    def templates(self) -> tuple[str, str, str]:
        """Return what, why and next as templates; a class whose templates depend on its facts overrides this."""
        return self.what, self.why, self.next

    def __reduce__(self) -> tuple[type[CatalogError], tuple[object, ...], dict[str, Any]]:
        return type(self), tuple(getattr(self, name) for name in self.facts), vars(self)


class RetryableError(CatalogError):
    """Nothing was changed, and the same may succeed when it is tried again from the start."""


class DamagedError(CatalogError):
    """The stored bytes are not those that were written."""


class ConstraintError(CatalogError):
    """The change does not fit the rows of the store; nothing was changed."""


class _Words:
    """The attributes of an error, as the words of its templates."""

    def __init__(self, error: CatalogError) -> None:
        self.error = error

    def __getitem__(self, name: str) -> object:
        value = getattr(self.error, name)
        return ", ".join(value) if isinstance(value, tuple) and all(isinstance(one, str) for one in value) else value


def _line(text: str) -> str:
    """Return a text in one line, whatever a foreign error brought along, without what a terminal would obey."""
    return visible("; ".join(filter(None, map(str.strip, text.splitlines()))) if "\n" in text else text)
