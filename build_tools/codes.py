"""Every code the gate can report, with its title and why it matters.

Codes are stable: a retired code is never given to something else. The reference page is generated from this table.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    title: str
    why: str


CODES: dict[str, Code] = {
    # T: the types
    "T100": Code("the types are missing", "without proto/objects.proto there is nothing to build, freeze or migrate"),
    "T101": Code(
        "a proto does not compile", "no code can be generated from it and no store of its version can be read"
    ),
    "T102": Code(
        "a proto imports another", "a snapshot must hold all of its types: an imported file could change under it"
    ),
    "T103": Code(
        "a proto uses a custom option",
        "an option is defined outside the file, so the snapshot would not hold all of it",
    ),
    "T104": Code(
        "a proto is not proto3", "presence, defaults and enums differ elsewhere, and the wire rules assume proto3"
    ),
    "T105": Code("a map in a key", "a map has no order, so equal keys could have different bytes"),
    "T106": Code("a float in a key", "0.0 and -0.0 are equal and NaN is not, so keys would not be their bytes"),
    "T107": Code("a recursive type", "a message of unbounded depth has no columns, so Spark could not hold it"),
    "T108": Code("half a collection", "a collection is a pair of messages, XKey and XValue, found by name"),
    "T109": Code(
        "an engine collection is missing", "the store keeps its version, fence and events there, in every project"
    ),
    "T110": Code(
        "a field number is used again", "rows and backups that still hold the old field would be read as the new one"
    ),
    "T111": Code(
        "an engine collection changed incompatibly",
        "every build reads it, at every version, before any migration has run",
    ),
    # S: the snapshots, frozen
    "S201": Code(
        "the current types changed without a new version",
        "stores of this version were written with the types as they were",
    ),
    "S202": Code("a snapshot changed", "it says what stores of its version hold; a changed one misreads them"),
    "S203": Code("a snapshot is missing", "stores of that version could no longer be read or migrated"),
    "S204": Code(
        "a file does not belong among the snapshots", "only the frozen types of supported versions live there"
    ),
    # H: recorded hashes
    "H300": Code("the recorded hashes cannot be read", "they are what tells a frozen file from an edited one"),
    "H301": Code("a hash is not recorded", "what has no recorded hash can change unseen"),
    "H302": Code("a recorded hash belongs to nothing", "an entry without its file hides that the file is gone"),
    "H303": Code(
        "a released hash was edited", "the released file changed and its hash with it: stores in production disagree"
    ),
    "H304": Code(
        "a released entry was removed or its release changed",
        "a release, once made, is a fact about stores in production",
    ),
    "H305": Code("the history cannot be checked", "without it an edited hash looks like a true one"),
    # V: the versions and who made them
    "V400": Code(
        "the versions cannot be read", "the gate reads them from version.py, and everything else counts from them"
    ),
    "V401": Code(
        "the version was bumped alone",
        "a version is its snapshot, its migration and its arm; the number alone is a promise",
    ),
    "V402": Code(
        "StashVersion is not MIN..STASH_VERSION", "type checking proves the dispatch complete against that type"
    ),
    "V403": Code(
        "another branch already made this version", "two different stores would both call themselves that version"
    ),
    "V404": Code("an unresolved merge", "a file with conflict markers is neither branch's version"),
    # D: the dispatch
    "D500": Code("the dispatch cannot be read", "the gate proves from its syntax that every version has its migration"),
    "D501": Code("an arm is missing", "a store of that version could not be upgraded"),
    "D502": Code("an arm stands twice", "the second can never run"),
    "D503": Code("an arm runs another version's migration", "it would read the rows with the wrong types"),
    "D504": Code("a guarded arm has no plain arm after it", "builds outside the guard would find no migration"),
    "D505": Code("the dispatch does not end in assert_never", "type checking could not see a missing arm"),
    "D506": Code(
        "an arm is out of order or does not belong", "the arms are the supported versions, in ascending order"
    ),
    "D507": Code(
        "a migration is imported too early", "a start-up without upgrades would load every snapshot and its codec"
    ),
    # M: the migrations, one per step
    "M600": Code("a migration cannot be read", "the gate reads what it does from its syntax tree"),
    "M601": Code("a migration is missing", "stores of the earlier version could not be upgraded"),
    "M602": Code("a file does not belong among the migrations", "one module per step is what lets each be frozen"),
    "M603": Code("a migration has no docstring", "nobody could tell in a year what changed and why"),
    "M604": Code("a migration has no upgrade()", "the engine asks it for its actions"),
    "M605": Code("the list of actions is not a plain one", "a plan is printed and checked without running anything"),
    "M606": Code(
        "an action that does not exist", "a migration may declare what catalog.actions offers, and nothing else"
    ),
    "M607": Code("an action names no such collection", "it would do nothing, or fail in production"),
    "M608": Code(
        "a forbidden import in a migration", "a migration must keep its meaning while code, settings and clocks go on"
    ),
    "M609": Code(
        "a released migration was edited", "stores already upgraded by it would differ from stores upgraded now"
    ),
    "M610": Code(
        "an unreleased migration differs from its hash", "the recorded hash must be the one that a release freezes"
    ),
    "M611": Code(
        "no action covers a changed collection", "its rows would stay in the old form and be read in the new one"
    ),
    "M612": Code(
        "a wire_compatible claim does not hold",
        "rows left as they are would lose or change content when read as the new type",
    ),
    "M613": Code("a collection vanishes", "its rows would stay in the store, and nothing would know how to read them"),
    "M614": Code("a new collection is not created", "a plan must say where each collection comes from"),
    "M615": Code("an action is undecided", "nobody has said yet what happens to the rows"),
    "M616": Code("a stub is not written", "it raises instead of doing its work"),
    "M617": Code("a migration has no test", "nobody has shown that old rows become the right new ones"),
    "M618": Code("a field name is used again", "JSON, dumps and queries by that name would mix two meanings"),
    "M619": Code("a type is narrowed", "values that do not fit would be cut without a word"),
    "M620": Code(
        "a migration reaches outside", "its output must depend on the rows alone, so that it can be run again"
    ),
    # I: imports elsewhere
    "I700": Code(
        "a frozen type is used outside the migrations",
        "code that uses it would need it for ever, and versions could not retire",
    ),
    "I701": Code("a module cannot be read", "the gate reads from its syntax tree that it uses no frozen types"),
    # B: the builtins, and the instructions by which data of earlier builds become theirs
    "B800": Code("the instructions cannot be read", "the gate proves from their syntax that none was lost or changed"),
    "B801": Code(
        "a released instruction is gone",
        "a store of a build before it would not be migrated, and refuse to start or lose rows",
    ),
    "B802": Code(
        "an instruction is new to a build that is released",
        "stores that went past that build would never follow it, and stores that did could not go on from there",
    ),
    "B803": Code("an instruction is for a build to come", "this build would not follow it, and refuses to load"),
    "B804": Code("an instruction stands twice", "of two about one builtin and build nobody can tell which counts"),
    "B805": Code(
        "the fingerprints of the last release are not recorded",
        "a schema that changed since without an instruction would be seen by no test, and stop every start",
    ),
    "B806": Code(
        "the fingerprints of a release were edited", "stores in production have the schemas that were released"
    ),
}
