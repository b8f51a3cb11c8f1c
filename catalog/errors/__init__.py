"""Every error a caller can meet, split by what the caller can do about it.

    CatalogError
    ├── RetryableError              try the same again from the start; nothing was changed
    │   ├── ConflictError
    │   ├── TransactionConflictError
    │   ├── CommitFailedError
    │   ├── TimedOutError
    │   └── DiagnosisOutdatedError
    ├── IndeterminateError          find out first whether it happened
    ├── FencedError                 stop this process
    ├── StaleGenerationError        stop this process
    ├── ConstraintError             fix the change; it does not fit the rows that are there
    │   ├── KeyExistsError
    │   ├── NoSuchRowError
    │   ├── RowChangedError
    │   ├── ProtectedRowError
    │   ├── MarkedRowError
    │   ├── ValueTypeError
    │   ├── DuplicateError
    │   └── DanglingReferenceError
    ├── UnknownCollectionError      fix the call
    ├── UnfitJsonError              fix the JSON
    ├── UsageError                  fix the call
    ├── SettingError                fix the setting
    ├── StoppedError                run it again
    ├── FindingsError               mend what was found
    ├── ExaminationError            mend what was found
    ├── UpgradeCheckError           mend the migrations or the rows
    ├── PageError                   name another file for the page
    ├── ReadOnlyError               open the store in another mode
    ├── ClosedError                 open the store again
    ├── InvalidChangeError          report an error of the program
    ├── ReadOptionError             fix the options of the query
    ├── OtherFeedError              name the right store, or begin anew
    ├── StatementError              fix the statement
    ├── StatementRefusedError       ask, and write by other means
    ├── SparkStartError             mend Java or its memory
    ├── UnfitColumnError            fix the migration or the query
    ├── UnfitSchemaError            fix the schema of the shard
    ├── UnfitShardIdError           correct the row
    ├── ReaderFencedError           read with another schema
    ├── WriterSchemaError           write with the latest schema
    ├── ShardFinalizedError         use the shard that took its place
    ├── TableTooLargeError          read batch by batch
    ├── UnfitBuiltinsError          fix the list of builtins
    ├── UninstructedSchemaError     add an instruction
    ├── UnfitEvolutionError         fix the schema or the instruction
    ├── BuiltinsTooNewError         upgrade this program
    ├── BuiltinOvertakenError       stop this process
    ├── UnmigratedBuiltinsError     open the store as leader once
    ├── UnknownProjectError         install the project, or correct its name
    ├── UnsupportedMessageError     fix the proto
    ├── GeneratedCodeError          generate the code again
    ├── UnfrozenTypesError          make a version of the types
    ├── StoreTooOldError            upgrade the store with an earlier release first
    ├── StoreTooNewError            upgrade this program
    ├── LogTooNewError              upgrade this program
    ├── UpgradeNeededError          upgrade the store
    ├── LegacyRowsError             read from a later time
    ├── VersionChangedError         open the store again
    ├── RetiredError                read from a later time
    ├── NoSuchVersionError          read from an earlier time
    ├── StepRunningError            wait for the migration
    ├── UnfinishedStepError         wait for the migration, run it again, or give it up
    ├── StepRefusedError            fix the migration, or the rows it names
    ├── StepDisturbedError          stop those who write, and start again
    ├── StepTimedOutError           give it more time
    ├── UnwrittenStepError          write the migration
    ├── ChecksumError               run the build that applied the migrations
    ├── UndoneError                 decide whether to apply the migration again
    ├── NotUndoableError            go on, or restore a copy
    ├── PreflightError              make room, or install what is missing
    ├── SparkJobError               mend the cause, and start again
    ├── NotInitializedError         open the store as leader once
    ├── NotAStoreError              name the right store
    │   ├── DamagedIdentityError    restore store.json
    │   └── OtherProjectError       name the project
    ├── BeingRemovedError           finish the removal
    ├── CopyTargetError             name an empty place
    ├── UnreadableRowError          mend the row
    ├── NoStoreError                name the right store, or make one
    ├── ForeignTableError           name the right store
    ├── StoreUnreachableError       mend the storage
    │   ├── StoreReadOnlyError
    │   └── StoreFullError
    └── DamagedError                repair the store
        ├── LostStashError
        ├── TornLogError
        ├── NotRepairableError
        ├── CorruptCheckpointError
        ├── MissingFileError
        ├── CorruptFileError
        └── UndecodableRowError

An error says in its own text what happened, why, and what to do next, and carries its facts as attributes. Each is
built from its facts alone, so that it survives pickling between Spark's processes.
"""

from catalog.errors.builtins import (
    BuiltinOvertakenError,
    BuiltinsTooNewError,
    UnfitBuiltinsError,
    UnfitEvolutionError,
    UninstructedSchemaError,
    UnmigratedBuiltinsError,
)
from catalog.errors.commands import (
    ExaminationError,
    FindingsError,
    PageError,
    SettingError,
    StoppedError,
    UnfinishedStepError,
    UpgradeCheckError,
    UsageError,
)
from catalog.errors.commits import (
    ClosedError,
    CommitFailedError,
    ConflictError,
    DiagnosisOutdatedError,
    FencedError,
    IndeterminateError,
    InvalidChangeError,
    NoSuchVersionError,
    ReadOnlyError,
    RetiredError,
    StaleGenerationError,
    StepRunningError,
    TimedOutError,
    TransactionConflictError,
)
from catalog.errors.migrations import (
    ChecksumError,
    NotUndoableError,
    PreflightError,
    SparkJobError,
    StepDisturbedError,
    StepRefusedError,
    StepTimedOutError,
    UndoneError,
    UnwrittenStepError,
)
from catalog.errors.queries import StatementError, StatementRefusedError
from catalog.errors.root import (
    CatalogError,
    ConstraintError,
    DamagedError,
    RetryableError,
)
from catalog.errors.rows import (
    DanglingReferenceError,
    DuplicateError,
    KeyExistsError,
    MarkedRowError,
    NoSuchRowError,
    OtherFeedError,
    ProtectedRowError,
    ReadOptionError,
    RowChangedError,
    UnfitColumnError,
    UnfitJsonError,
    UnknownCollectionError,
    ValueTypeError,
)
from catalog.errors.shards import (
    ReaderFencedError,
    ShardFinalizedError,
    TableTooLargeError,
    UnfitSchemaError,
    UnfitShardIdError,
    WriterSchemaError,
)
from catalog.errors.stores import (
    BeingRemovedError,
    CopyTargetError,
    CorruptCheckpointError,
    CorruptFileError,
    DamagedIdentityError,
    ForeignTableError,
    LostStashError,
    MissingFileError,
    NoStoreError,
    NotAStoreError,
    NotInitializedError,
    NotRepairableError,
    OtherProjectError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnreachableError,
    TornLogError,
    UndecodableRowError,
    UnreadableRowError,
)
from catalog.errors.versions import (
    GeneratedCodeError,
    LegacyRowsError,
    LogTooNewError,
    SparkStartError,
    StoreTooNewError,
    StoreTooOldError,
    UnfrozenTypesError,
    UnknownProjectError,
    UnsupportedMessageError,
    UpgradeNeededError,
    VersionChangedError,
)

__all__ = [
    "BeingRemovedError",
    "BuiltinOvertakenError",
    "BuiltinsTooNewError",
    "CatalogError",
    "ChecksumError",
    "ClosedError",
    "CommitFailedError",
    "ConflictError",
    "ConstraintError",
    "CopyTargetError",
    "CorruptCheckpointError",
    "CorruptFileError",
    "DamagedError",
    "DamagedIdentityError",
    "DanglingReferenceError",
    "DiagnosisOutdatedError",
    "DuplicateError",
    "ExaminationError",
    "FencedError",
    "FindingsError",
    "ForeignTableError",
    "GeneratedCodeError",
    "IndeterminateError",
    "InvalidChangeError",
    "KeyExistsError",
    "LegacyRowsError",
    "LogTooNewError",
    "LostStashError",
    "MarkedRowError",
    "MissingFileError",
    "NoStoreError",
    "NoSuchRowError",
    "NoSuchVersionError",
    "NotAStoreError",
    "NotInitializedError",
    "NotRepairableError",
    "NotUndoableError",
    "OtherFeedError",
    "OtherProjectError",
    "PageError",
    "PreflightError",
    "ProtectedRowError",
    "ReadOnlyError",
    "ReadOptionError",
    "ReaderFencedError",
    "RetiredError",
    "RetryableError",
    "RowChangedError",
    "SettingError",
    "ShardFinalizedError",
    "SparkJobError",
    "SparkStartError",
    "StaleGenerationError",
    "StatementError",
    "StatementRefusedError",
    "StepDisturbedError",
    "StepRefusedError",
    "StepRunningError",
    "StepTimedOutError",
    "StoppedError",
    "StoreFullError",
    "StoreReadOnlyError",
    "StoreTooNewError",
    "StoreTooOldError",
    "StoreUnreachableError",
    "TableTooLargeError",
    "TimedOutError",
    "TornLogError",
    "TransactionConflictError",
    "UndecodableRowError",
    "UndoneError",
    "UnfinishedStepError",
    "UnfitBuiltinsError",
    "UnfitColumnError",
    "UnfitEvolutionError",
    "UnfitJsonError",
    "UnfitSchemaError",
    "UnfitShardIdError",
    "UnfrozenTypesError",
    "UninstructedSchemaError",
    "UnknownCollectionError",
    "UnknownProjectError",
    "UnmigratedBuiltinsError",
    "UnreadableRowError",
    "UnsupportedMessageError",
    "UnwrittenStepError",
    "UpgradeCheckError",
    "UpgradeNeededError",
    "UsageError",
    "ValueTypeError",
    "VersionChangedError",
    "WriterSchemaError",
]
