"""All errors of the package, grouped by what a caller can do about them.

    CatalogError
    ├── RetryableError              try again from the start; nothing was changed
    │   ├── ConflictError
    │   ├── TransactionConflictError
    │   ├── CommitFailedError
    │   ├── SchemaChangedError
    │   ├── BulkWriteExpiredError
    │   ├── TimedOutError
    │   └── DiagnosisOutdatedError
    ├── IndeterminateError          find out first whether the commit happened
    ├── FencedError                 stop this process
    ├── StaleGenerationError        stop this process
    ├── ConstraintError             fix the change; it does not fit the rows of the store
    │   ├── KeyExistsError
    │   ├── NoSuchRowError
    │   ├── RowChangedError
    │   ├── ProtectedRowError
    │   ├── MarkedRowError
    │   ├── AllocatorSetBackError
    │   ├── UnknownFieldsError
    │   ├── UndeclaredEnumError
    │   ├── ValueTypeError
    │   ├── ValueMismatchError
    │   ├── NotNullError
    │   ├── CheckError
    │   ├── UniqueError
    │   ├── ForeignKeyError
    │   ├── DuplicateError
    │   └── DanglingReferenceError
    ├── UnknownCollectionError      fix the call
    ├── UnknownAllocatorError       fix the call
    ├── UnknownTableError           fix the call, or create the table
    ├── UnknownColumnError          fix the call
    ├── UnknownElementError         fix the statement
    ├── UnknownChangeError          fix the call
    ├── TableExistsError            choose another name
    ├── NameTakenError              choose another name
    ├── UnsupportedStatementError   fix the statement
    ├── StatementSyntaxError        fix the statement
    ├── UnsupportedTypeError        fix the statement
    ├── UnsupportedExpressionError  fix the expression
    ├── ExpressionFailedError       fix the row or the expression
    ├── SchemaChangeFailedError     correct the rows, and run the statement again
    ├── NotRevertibleError          run the opposite statement
    ├── ChangeStatusError           look at the change first
    ├── ChangeStoppedError          resume the change, or leave it
    ├── ChangeOvertakenError        leave the change to its owner
    ├── NeededElsewhereError        change what needs it first
    ├── RefusedChangeError          fix the statement
    ├── TableTooNewError            upgrade this program
    ├── UnfitFrameError             fix the frame
    ├── WrongArgumentError          fix the call
    ├── NoSuchMemberError           fix the call
    ├── TransactionEndedError       begin another transaction
    ├── ForkedError                 open the store in this process
    │   └── ForkedClientError       start processes without fork
    ├── IdsExhaustedError           set the allocator right
    ├── UnfitJsonError              fix the JSON
    ├── UsageError                  fix the call
    ├── SettingError                fix the setting
    ├── StoppedError                run the command again
    │   └── ChangeLeftError         carry the change on, or cancel it
    ├── FindingsError               repair what was found
    ├── ExaminationError            solve the problems found
    ├── UpgradeCheckError           correct the migrations or the rows
    ├── PageError                   choose another file for the page
    ├── ReadOnlyError               open the store in another mode
    ├── ClosedError                 open the store again
    ├── InvalidChangeError          report a bug in the program
    ├── ReadOptionError             fix the options of the query
    ├── OtherFeedError              name the right store, or begin with a new checkpoint
    ├── StatementError              fix the statement
    ├── StatementRefusedError       use a statement that reads; write by other means
    ├── SparkStartError             install Java, or give it memory
    ├── UnfitColumnError            fix the migration or the query
    ├── UnfitSchemaError            fix the schema of the shard
    ├── UnfitShardIdError           correct the row
    ├── ReaderFencedError           read with another schema
    ├── WriterSchemaError           write with the latest schema
    ├── ShardFinalizedError         use the shard that took its place
    ├── TableTooLargeError          read batch by batch
    ├── UnfitBuiltinsError          fix the list of builtins
    ├── UnfitConstraintError        fix the constraints
    ├── UninstructedSchemaError     add an instruction
    ├── UnfitEvolutionError         fix the schema or the instruction
    ├── BuiltinsTooNewError         upgrade this program
    ├── BuiltinOvertakenError       stop this process
    ├── UnmigratedBuiltinsError     open the store as leader once
    ├── UnknownProjectError         install the project, or correct its name
    │   ├── BrokenProjectError      correct its files
    │   └── OutdatedProjectError    change its imports
    ├── InitializationFailedError   correct initialize.py
    ├── UnsupportedMessageError     fix the proto
    ├── GeneratedCodeError          generate the code again
    ├── UnfrozenTypesError          make a version of the types
    ├── StoreTooOldError            upgrade the store with an earlier release first
    ├── StoreTooNewError            upgrade this program
    ├── LogTooNewError              upgrade this program
    ├── OtherTypesError             run the build that wrote the store
    ├── UpgradeNeededError          upgrade the store
    ├── LegacyRowsError             read from a later time
    ├── VersionChangedError         open the store again
    ├── RetiredError                read from a later time
    ├── NotYetInitializedError      read from a later time
    ├── NoSuchVersionError          read from an earlier time
    ├── StepRunningError            wait for the migration
    ├── UnfinishedStepError         wait for the migration, run it again, or give it up
    ├── StepRefusedError            fix the migration, or the rows it names
    ├── StepDisturbedError          stop the processes that write, and start again
    ├── StepTimedOutError           allow more time
    ├── UnwrittenStepError          write the migration
    ├── MigrationFailedError        fix the migration
    ├── ChecksumError               run the build that applied the migrations
    ├── UndoneError                 decide whether to apply the migration again
    ├── NotUndoableError            continue, or restore a copy
    ├── UndoStoppedError            remove the cause, and go on or go back
    ├── PreflightError              make room, or install what is missing
    ├── SparkJobError               remove the cause, and start again
    ├── NotInitializedError         open the store as leader once
    ├── NotAStoreError              name the right store
    │   ├── DamagedIdentityError    restore store.json
    │   ├── NotEmptyError           choose an empty place
    │   └── OtherProjectError       name the project
    ├── BeingRemovedError           finish the removal
    ├── CopyTargetError             choose an empty place
    ├── UnreadableRowError          repair the row
    ├── NoStoreError                name the right store, or make one
    ├── ForeignTableError           name the right store
    ├── NotExclusiveError           use another storage
    ├── StoreUnreachableError       make the storage reachable
    │   ├── NoAddressError          name the right place
    │   ├── NotAFolderError         name the right place
    │   ├── MissingClientError      install the client
    │   ├── StoreReadOnlyError
    │   └── StoreFullError
    └── DamagedError                repair the store
        ├── LostStashError
        ├── TornLogError
        ├── AlteredEntryError
        ├── StateLeftOutError
        ├── NotRepairableError
        ├── LossNotAcceptedError
        ├── CorruptCheckpointError
        ├── CheckpointMismatchError
        ├── MissingFileError
        ├── FilesLostError
        ├── CorruptFileError
        └── UndecodableRowError

Each error prints what happened, why, and what to do next, and carries its facts as attributes (see
`catalog.errors.base`), without secrets (`catalog.errors.redaction`). `catalog.errors.visible_text` spells out what a
terminal would obey and nobody sees.
"""

# ruff: noqa: F403, F405 - the modules are private, their errors public; the tests compare __all__ with the tree above

from catalog.errors.base import *
from catalog.errors.calls import *
from catalog.errors.cli import *
from catalog.errors.commits import *
from catalog.errors.migrations import *
from catalog.errors.rows import *
from catalog.errors.shards import *
from catalog.errors.stores import *
from catalog.errors.tables import *
from catalog.errors.versions import *

# fmt: off
__all__ = [
    "AllocatorSetBackError", "AlteredEntryError", "BeingRemovedError", "BrokenProjectError", "BuiltinOvertakenError",
    "BuiltinsTooNewError", "BulkWriteExpiredError", "CatalogError", "ChangeLeftError",
    "ChangeOvertakenError", "ChangeStatusError", "ChangeStoppedError", "CheckError", "CheckpointMismatchError",
    "ChecksumError", "ClosedError", "CommitFailedError", "ConflictError", "ConstraintError",
    "CopyTargetError", "CorruptCheckpointError", "CorruptFileError", "DamagedError", "DamagedIdentityError",
    "DanglingReferenceError", "DiagnosisOutdatedError", "DuplicateError", "ExaminationError", "ExpressionFailedError",
    "FencedError", "FilesLostError", "FindingsError", "ForeignKeyError", "ForeignTableError", "ForkedClientError",
    "ForkedError", "GeneratedCodeError", "IdsExhaustedError", "IndeterminateError", "InitializationFailedError",
    "InvalidChangeError", "KeyExistsError", "LegacyRowsError", "LogTooNewError", "LossNotAcceptedError",
    "LostStashError", "MarkedRowError", "MigrationFailedError", "MissingClientError", "MissingFileError",
    "NameTakenError", "NeededElsewhereError", "NoAddressError", "NoStoreError", "NoSuchMemberError", "NoSuchRowError",
    "NoSuchVersionError", "NotAFolderError", "NotAStoreError", "NotEmptyError", "NotExclusiveError",
    "NotInitializedError", "NotNullError", "NotRepairableError", "NotRevertibleError", "NotUndoableError",
    "NotYetInitializedError", "OtherFeedError", "OtherProjectError", "OtherTypesError", "OutdatedProjectError",
    "PageError", "PreflightError", "ProtectedRowError", "ReadOnlyError", "ReadOptionError", "ReaderFencedError",
    "RefusedChangeError", "RetiredError", "RetryableError", "RowChangedError", "SchemaChangeFailedError",
    "SchemaChangedError", "SettingError", "ShardFinalizedError", "SparkJobError", "SparkStartError",
    "StaleGenerationError", "StateLeftOutError", "StatementError", "StatementRefusedError", "StatementSyntaxError",
    "StepDisturbedError", "StepRefusedError", "StepRunningError", "StepTimedOutError", "StoppedError",
    "StoreFullError", "StoreReadOnlyError", "StoreTooNewError", "StoreTooOldError", "StoreUnreachableError",
    "TableExistsError", "TableTooLargeError", "TableTooNewError", "TimedOutError", "TornLogError",
    "TransactionConflictError", "TransactionEndedError", "UndeclaredEnumError", "UndecodableRowError",
    "UndoStoppedError", "UndoneError", "UnfinishedStepError", "UnfitBuiltinsError", "UnfitColumnError",
    "UnfitConstraintError", "UnfitEvolutionError", "UnfitFrameError", "UnfitJsonError", "UnfitSchemaError",
    "UnfitShardIdError", "UnfrozenTypesError", "UninstructedSchemaError", "UniqueError", "UnknownAllocatorError",
    "UnknownChangeError", "UnknownCollectionError", "UnknownColumnError", "UnknownElementError", "UnknownFieldsError",
    "UnknownProjectError", "UnknownTableError", "UnmigratedBuiltinsError", "UnreadableRowError",
    "UnsupportedExpressionError", "UnsupportedMessageError", "UnsupportedStatementError", "UnsupportedTypeError",
    "UnwrittenStepError", "UpgradeCheckError", "UpgradeNeededError", "UsageError", "ValueMismatchError",
    "ValueTypeError", "VersionChangedError", "WriterSchemaError", "WrongArgumentError",
]
# fmt: on
