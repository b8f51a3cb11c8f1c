"""Errors of calls: an argument or a member that is none, a transaction that is over, an object of another process."""

from __future__ import annotations

from catalog.errors.base import CatalogError


class WrongArgumentError(CatalogError):
    call: str
    needed: str
    found: str
    fix: str
    what = "{call} takes {needed}, and was given {found}"
    why = "it was refused before anything was read or written"


class NoSuchMemberError(CatalogError, AttributeError):
    thing: str
    member: str
    fix: str
    what = "{thing} has no {member}"
    why = "it is neither a property nor a method of that class; nothing was read or written"


class TransactionEndedError(CatalogError):
    call: str
    what = "{call} came after the end of its transaction"
    why = "a transaction ends with its block: it was committed or rolled back there, and nothing can be added to it"
    next = "begin another one: `with catalog.transaction() as tx`"


class ForkedError(CatalogError):
    thing: str
    opened_by: int
    process: int
    what = "{thing} belongs to process {opened_by}, and this is process {process}, forked from it"
    why = "two processes with one lead would give out the same ids, and the end of one would release the lead of both"
    next = "open the store in this process, or start processes without fork: multiprocessing.get_context('spawn')"


class ForkedClientError(ForkedError):
    what = "{thing} cannot be used by process {process}, forked from process {opened_by} that has begun to use it"
    why = "it works in threads and connections that a fork does not copy: the child would hang, and its parent with it"
    next = "start processes without fork: multiprocessing.get_context('spawn'); or fork before the first use"
