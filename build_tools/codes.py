"""All codes that the gate can report, each with its title and the reason for the rule.

Codes are stable: a retired code is never used for another rule. The reference page is generated from this table.
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
        "a proto imports another", "a snapshot must contain all of its types: an imported file could change later"
    ),
    "T103": Code(
        "a proto uses a custom option",
        "the option is defined outside the file, so the snapshot would be incomplete",
    ),
    "T104": Code(
        "a proto is not proto3", "presence, defaults and enums differ elsewhere, and the wire rules assume proto3"
    ),
    "T105": Code("a map in a key", "a map has no order, so equal keys could have different bytes"),
    "T106": Code(
        "a float in a key", "0.0 equals -0.0 and NaN does not equal itself, so equal keys could have different bytes"
    ),
    "T107": Code("a recursive type", "a message of unbounded depth has no fixed columns, so Spark cannot represent it"),
    "T108": Code("half a collection", "a collection is a pair of messages, XKey and XValue, found by name"),
    "T109": Code(
        "an engine collection is missing", "the store keeps its version, fence and events there, in every project"
    ),
    "T110": Code(
        "a field number is used again", "rows and backups that still contain the old field would be read as the new one"
    ),
    "T111": Code(
        "an engine collection changed incompatibly",
        "every build reads it, at every version, before any migration has run",
    ),
    "T112": Code(
        "a name of the engine changed",
        "the engine reads and writes its collections by name, so another name means something else to it",
    ),
    "T113": Code(
        "a deleted number is not reserved",
        "if it is reserved, protoc itself refuses to use it again",
    ),
    # S: the snapshots, frozen
    "S201": Code(
        "the current types changed without a new version",
        "stores of this version were written with the earlier types",
    ),
    "S202": Code("a snapshot changed", "it describes the rows of stores of its version; a changed one misreads them"),
    "S203": Code("a snapshot is missing", "stores of that version could no longer be read or migrated"),
    "S204": Code(
        "a file does not belong among the snapshots", "that folder holds only the frozen types of supported versions"
    ),
    # H: recorded hashes
    "H300": Code("the recorded hashes cannot be read", "they distinguish a frozen file from an edited one"),
    "H301": Code("a hash is not recorded", "a file without a recorded hash can change unnoticed"),
    "H302": Code("a recorded hash belongs to nothing", "an entry without its file hides that the file is missing"),
    "H303": Code(
        "a released hash was edited",
        "the released file changed together with its hash, and stores in production used the old one",
    ),
    "H304": Code(
        "a released entry was removed or its release changed",
        "stores in production were written by that release",
    ),
    "H305": Code("the history cannot be checked", "without the history an edited hash cannot be detected"),
    # V: the versions
    "V400": Code(
        "the versions cannot be read", "the gate reads them from version.py, and every other rule depends on them"
    ),
    "V401": Code(
        "the version was bumped alone",
        "a version consists of a snapshot, a migration and an arm of the dispatch, not of a number alone",
    ),
    "V402": Code(
        "StashVersion is not MIN..STASH_VERSION", "type checking proves the dispatch complete against that type"
    ),
    "V403": Code(
        "another branch has already made this version", "two different kinds of stores would have the same version"
    ),
    "V404": Code("an unresolved merge", "a file with conflict markers is not valid on either branch"),
    # C: what else is declared about rows: constraints, private texts, the rows of a new store
    "C900": Code("the constraints cannot be read", "the gate compares them with the types of every version"),
    "C901": Code("a constraint names no such collection", "the first write that it applies to would fail"),
    "C902": Code("a constraint names no such field", "the first write of a row of the collection would fail"),
    "C903": Code("a constraint does not fit the types", "no row could be compared by it, so every write would fail"),
    "C904": Code(
        "privacy.py names a text that no version has",
        "the entry has no effect on an anonymised copy, or orders a list by a field that does not exist",
    ),
    "C905": Code("initialize.py does not fit the types", "no new store could be made, and no test store either"),
    # D: the dispatch
    "D500": Code(
        "the dispatch cannot be read", "the gate verifies from its syntax that every version has its migration"
    ),
    "D501": Code("an arm is missing", "a store of that version could not be upgraded"),
    "D502": Code("an arm occurs twice", "the second can never run"),
    "D503": Code("an arm runs another version's migration", "it would read the rows with the wrong types"),
    "D504": Code("a guarded arm has no plain arm after it", "builds outside the guard would find no migration"),
    "D505": Code("the dispatch does not end in assert_never", "type checking could not find a missing arm"),
    "D506": Code(
        "an arm is out of order or does not belong", "the arms are the supported versions, in ascending order"
    ),
    "D507": Code(
        "a migration is imported too early", "a start-up without upgrades would load every snapshot and its codec"
    ),
    # M: the migrations, one per step
    "M600": Code("a migration cannot be read", "the gate reads what it does from its syntax tree"),
    "M601": Code("a migration is missing", "stores of the earlier version could not be upgraded"),
    "M602": Code("a file does not belong among the migrations", "each step has one module, so that it can be frozen"),
    "M603": Code("a migration has no docstring", "later readers could not find out what changed and why"),
    "M604": Code("a migration has no upgrade()", "the engine calls it to get the actions"),
    "M605": Code(
        "the list of actions is not a plain list", "a plan is printed and checked without running the migration"
    ),
    "M606": Code("an action that does not exist", "a migration can only declare the actions of catalog.actions"),
    "M607": Code("an action names no such collection", "it would do nothing, or fail in production"),
    "M608": Code(
        "a forbidden import in a migration",
        "a migration must do the same for ever, whatever happens to other code, settings and clocks",
    ),
    "M609": Code(
        "a released migration was edited", "stores already upgraded by it would differ from stores upgraded now"
    ),
    "M610": Code(
        "an unreleased migration differs from its hash", "the recorded hash must be the one that a release freezes"
    ),
    "M611": Code(
        "no action covers a changed collection", "its rows would stay in the old form and be read as the new types"
    ),
    "M612": Code(
        "a wire_compatible claim does not hold",
        "unchanged rows would lose or change content when they are read as the new type",
    ),
    "M613": Code("a collection disappears", "its rows would stay in the store, and no code could read them"),
    "M614": Code("a new collection is not created", "a plan must declare where each collection comes from"),
    "M615": Code("an action is undecided", "it is not yet decided what happens to the rows"),
    "M616": Code("a stub is not written", "it raises instead of doing its work"),
    "M617": Code("a migration has no test", "nothing shows that old rows become the right new ones"),
    "M618": Code("a field name is used again", "JSON, dumps and queries that use the name would mix two meanings"),
    "M619": Code("a type is narrowed", "values that do not fit would be truncated without an error"),
    "M620": Code(
        "a migration reaches outside", "its output must depend on the rows alone, so that it can be run again"
    ),
    # I: imports elsewhere
    "I700": Code(
        "a frozen type is used outside the migrations",
        "code that uses it would need it for ever, and old versions could never be retired",
    ),
    "I701": Code("a module cannot be read", "the gate verifies from its syntax tree that it uses no frozen types"),
    # B: the builtins, and the instructions that migrate their data from earlier builds
    "B800": Code(
        "the instructions cannot be read", "the gate verifies from their syntax that none was lost or changed"
    ),
    "B801": Code(
        "a released instruction is gone",
        "a store of an earlier build would not be migrated, and would refuse to start or lose rows",
    ),
    "B802": Code(
        "an instruction was added to a released build",
        "stores that are past that build would never execute it, and stores that did could not be upgraded further",
    ),
    "B803": Code("an instruction is for a later build", "this build would not execute it, and refuses to load"),
    "B804": Code(
        "an instruction occurs twice",
        "it is not defined which of two instructions for one builtin and build is valid",
    ),
    "B805": Code(
        "the fingerprints of the last release are not recorded",
        "no test would find a schema that changed without an instruction, and every start would fail",
    ),
    "B806": Code(
        "the fingerprints of a release were edited", "stores in production have the schemas that were released"
    ),
}
