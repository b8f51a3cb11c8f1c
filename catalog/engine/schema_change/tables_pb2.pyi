from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TableState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TABLE_STATE_UNSPECIFIED: _ClassVar[TableState]
    TABLE_STATE_CREATED: _ClassVar[TableState]
    TABLE_STATE_PUBLIC: _ClassVar[TableState]

class ElementKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ELEMENT_KIND_UNSPECIFIED: _ClassVar[ElementKind]
    ELEMENT_KIND_PRIMARY: _ClassVar[ElementKind]
    ELEMENT_KIND_INDEX: _ClassVar[ElementKind]
    ELEMENT_KIND_UNIQUE: _ClassVar[ElementKind]
    ELEMENT_KIND_CHECK: _ClassVar[ElementKind]
    ELEMENT_KIND_NOT_NULL: _ClassVar[ElementKind]
    ELEMENT_KIND_FOREIGN_KEY: _ClassVar[ElementKind]

class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATE_UNSPECIFIED: _ClassVar[State]
    STATE_DELETE: _ClassVar[State]
    STATE_WRITE: _ClassVar[State]
    STATE_CHECK: _ClassVar[State]
    STATE_PUBLIC: _ClassVar[State]

class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATUS_UNSPECIFIED: _ClassVar[Status]
    STATUS_PENDING: _ClassVar[Status]
    STATUS_RUNNING: _ClassVar[Status]
    STATUS_WAITING: _ClassVar[Status]
    STATUS_PAUSED: _ClassVar[Status]
    STATUS_HOLDING: _ClassVar[Status]
    STATUS_SUCCEEDED: _ClassVar[Status]
    STATUS_FAILED: _ClassVar[Status]
    STATUS_CANCELLED: _ClassVar[Status]

class StageKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STAGE_KIND_UNSPECIFIED: _ClassVar[StageKind]
    STAGE_KIND_ANNOUNCE: _ClassVar[StageKind]
    STAGE_KIND_CLOSE: _ClassVar[StageKind]
    STAGE_KIND_EDIT: _ClassVar[StageKind]
    STAGE_KIND_BUILD: _ClassVar[StageKind]
    STAGE_KIND_REORGANISE: _ClassVar[StageKind]
    STAGE_KIND_VALIDATE: _ClassVar[StageKind]
    STAGE_KIND_ITEM: _ClassVar[StageKind]
    STAGE_KIND_HOLD: _ClassVar[StageKind]

class ItemVerb(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ITEM_VERB_UNSPECIFIED: _ClassVar[ItemVerb]
    ITEM_VERB_INSERT: _ClassVar[ItemVerb]
    ITEM_VERB_DELETE: _ClassVar[ItemVerb]
    ITEM_VERB_RENAME: _ClassVar[ItemVerb]
TABLE_STATE_UNSPECIFIED: TableState
TABLE_STATE_CREATED: TableState
TABLE_STATE_PUBLIC: TableState
ELEMENT_KIND_UNSPECIFIED: ElementKind
ELEMENT_KIND_PRIMARY: ElementKind
ELEMENT_KIND_INDEX: ElementKind
ELEMENT_KIND_UNIQUE: ElementKind
ELEMENT_KIND_CHECK: ElementKind
ELEMENT_KIND_NOT_NULL: ElementKind
ELEMENT_KIND_FOREIGN_KEY: ElementKind
STATE_UNSPECIFIED: State
STATE_DELETE: State
STATE_WRITE: State
STATE_CHECK: State
STATE_PUBLIC: State
STATUS_UNSPECIFIED: Status
STATUS_PENDING: Status
STATUS_RUNNING: Status
STATUS_WAITING: Status
STATUS_PAUSED: Status
STATUS_HOLDING: Status
STATUS_SUCCEEDED: Status
STATUS_FAILED: Status
STATUS_CANCELLED: Status
STAGE_KIND_UNSPECIFIED: StageKind
STAGE_KIND_ANNOUNCE: StageKind
STAGE_KIND_CLOSE: StageKind
STAGE_KIND_EDIT: StageKind
STAGE_KIND_BUILD: StageKind
STAGE_KIND_REORGANISE: StageKind
STAGE_KIND_VALIDATE: StageKind
STAGE_KIND_ITEM: StageKind
STAGE_KIND_HOLD: StageKind
ITEM_VERB_UNSPECIFIED: ItemVerb
ITEM_VERB_INSERT: ItemVerb
ITEM_VERB_DELETE: ItemVerb
ITEM_VERB_RENAME: ItemVerb

class TableKey(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    def __init__(self, id: _Optional[int] = ...) -> None: ...

class TableValue(_message.Message):
    __slots__ = ("state", "cur", "min", "columns", "elements", "next_column", "change", "features", "name")
    STATE_FIELD_NUMBER: _ClassVar[int]
    CUR_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_COLUMN_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    state: TableState
    cur: int
    min: int
    columns: _containers.RepeatedCompositeFieldContainer[Column]
    elements: _containers.RepeatedCompositeFieldContainer[Element]
    next_column: int
    change: int
    features: _containers.RepeatedScalarFieldContainer[str]
    name: str
    def __init__(self, state: _Optional[_Union[TableState, str]] = ..., cur: _Optional[int] = ..., min: _Optional[int] = ..., columns: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., elements: _Optional[_Iterable[_Union[Element, _Mapping]]] = ..., next_column: _Optional[int] = ..., change: _Optional[int] = ..., features: _Optional[_Iterable[str]] = ..., name: _Optional[str] = ...) -> None: ...

class Column(_message.Message):
    __slots__ = ("id", "name", "type", "state", "since", "initial_default", "write_default", "computed", "replaces", "up", "hidden")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    INITIAL_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    WRITE_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    COMPUTED_FIELD_NUMBER: _ClassVar[int]
    REPLACES_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    type: str
    state: State
    since: int
    initial_default: Literal
    write_default: Expression
    computed: Expression
    replaces: int
    up: Expression
    hidden: bool
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., type: _Optional[str] = ..., state: _Optional[_Union[State, str]] = ..., since: _Optional[int] = ..., initial_default: _Optional[_Union[Literal, _Mapping]] = ..., write_default: _Optional[_Union[Expression, _Mapping]] = ..., computed: _Optional[_Union[Expression, _Mapping]] = ..., replaces: _Optional[int] = ..., up: _Optional[_Union[Expression, _Mapping]] = ..., hidden: _Optional[bool] = ...) -> None: ...

class Element(_message.Message):
    __slots__ = ("id", "name", "kind", "state", "since", "columns", "stored", "check", "support", "target", "target_element", "built", "hidden")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    SUPPORT_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    TARGET_ELEMENT_FIELD_NUMBER: _ClassVar[int]
    BUILT_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    kind: ElementKind
    state: State
    since: int
    columns: _containers.RepeatedScalarFieldContainer[int]
    stored: _containers.RepeatedScalarFieldContainer[int]
    check: Expression
    support: int
    target: int
    target_element: int
    built: bool
    hidden: bool
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., kind: _Optional[_Union[ElementKind, str]] = ..., state: _Optional[_Union[State, str]] = ..., since: _Optional[int] = ..., columns: _Optional[_Iterable[int]] = ..., stored: _Optional[_Iterable[int]] = ..., check: _Optional[_Union[Expression, _Mapping]] = ..., support: _Optional[int] = ..., target: _Optional[int] = ..., target_element: _Optional[int] = ..., built: _Optional[bool] = ..., hidden: _Optional[bool] = ...) -> None: ...

class Literal(_message.Message):
    __slots__ = ("type", "truth", "number", "real", "text", "raw", "list")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TRUTH_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REAL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    RAW_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    type: str
    truth: bool
    number: int
    real: float
    text: str
    raw: bytes
    list: Literals
    def __init__(self, type: _Optional[str] = ..., truth: _Optional[bool] = ..., number: _Optional[int] = ..., real: _Optional[float] = ..., text: _Optional[str] = ..., raw: _Optional[bytes] = ..., list: _Optional[_Union[Literals, _Mapping]] = ...) -> None: ...

class Literals(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[Literal]
    def __init__(self, values: _Optional[_Iterable[_Union[Literal, _Mapping]]] = ...) -> None: ...

class Expression(_message.Message):
    __slots__ = ("column", "literal", "call")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    LITERAL_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    column: ColumnUse
    literal: Literal
    call: Call
    def __init__(self, column: _Optional[_Union[ColumnUse, _Mapping]] = ..., literal: _Optional[_Union[Literal, _Mapping]] = ..., call: _Optional[_Union[Call, _Mapping]] = ...) -> None: ...

class ColumnUse(_message.Message):
    __slots__ = ("id", "type")
    ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    id: int
    type: str
    def __init__(self, id: _Optional[int] = ..., type: _Optional[str] = ...) -> None: ...

class Call(_message.Message):
    __slots__ = ("function", "arguments", "type")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    function: str
    arguments: _containers.RepeatedCompositeFieldContainer[Expression]
    type: str
    def __init__(self, function: _Optional[str] = ..., arguments: _Optional[_Iterable[_Union[Expression, _Mapping]]] = ..., type: _Optional[str] = ...) -> None: ...

class SchemaChangeKey(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    def __init__(self, id: _Optional[int] = ...) -> None: ...

class SchemaChangeValue(_message.Message):
    __slots__ = ("statement", "stages", "images", "status", "stage", "owner_epoch", "owner", "options", "read_ts", "chunks_done", "chunks", "rows_done", "rows_total", "failure", "events", "submitted_ms", "ended_ms", "is_visible", "done_until", "new_table")
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    OWNER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    READ_TS_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_DONE_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    ROWS_DONE_FIELD_NUMBER: _ClassVar[int]
    ROWS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_MS_FIELD_NUMBER: _ClassVar[int]
    IS_VISIBLE_FIELD_NUMBER: _ClassVar[int]
    DONE_UNTIL_FIELD_NUMBER: _ClassVar[int]
    NEW_TABLE_FIELD_NUMBER: _ClassVar[int]
    statement: str
    stages: _containers.RepeatedCompositeFieldContainer[Stage]
    images: _containers.RepeatedCompositeFieldContainer[Image]
    status: Status
    stage: int
    owner_epoch: int
    owner: str
    options: ChangeOptions
    read_ts: int
    chunks_done: _containers.RepeatedScalarFieldContainer[int]
    chunks: int
    rows_done: int
    rows_total: int
    failure: Failure
    events: _containers.RepeatedCompositeFieldContainer[ChangeEvent]
    submitted_ms: int
    ended_ms: int
    is_visible: bool
    done_until: bytes
    new_table: int
    def __init__(self, statement: _Optional[str] = ..., stages: _Optional[_Iterable[_Union[Stage, _Mapping]]] = ..., images: _Optional[_Iterable[_Union[Image, _Mapping]]] = ..., status: _Optional[_Union[Status, str]] = ..., stage: _Optional[int] = ..., owner_epoch: _Optional[int] = ..., owner: _Optional[str] = ..., options: _Optional[_Union[ChangeOptions, _Mapping]] = ..., read_ts: _Optional[int] = ..., chunks_done: _Optional[_Iterable[int]] = ..., chunks: _Optional[int] = ..., rows_done: _Optional[int] = ..., rows_total: _Optional[int] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., events: _Optional[_Iterable[_Union[ChangeEvent, _Mapping]]] = ..., submitted_ms: _Optional[int] = ..., ended_ms: _Optional[int] = ..., is_visible: _Optional[bool] = ..., done_until: _Optional[bytes] = ..., new_table: _Optional[int] = ...) -> None: ...

class Stage(_message.Message):
    __slots__ = ("kind", "text", "edits", "table", "element", "is_visible", "item", "needs_empty")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    EDITS_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    IS_VISIBLE_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    NEEDS_EMPTY_FIELD_NUMBER: _ClassVar[int]
    kind: StageKind
    text: str
    edits: _containers.RepeatedCompositeFieldContainer[Edit]
    table: int
    element: int
    is_visible: bool
    item: Item
    needs_empty: bool
    def __init__(self, kind: _Optional[_Union[StageKind, str]] = ..., text: _Optional[str] = ..., edits: _Optional[_Iterable[_Union[Edit, _Mapping]]] = ..., table: _Optional[int] = ..., element: _Optional[int] = ..., is_visible: _Optional[bool] = ..., item: _Optional[_Union[Item, _Mapping]] = ..., needs_empty: _Optional[bool] = ...) -> None: ...

class Edit(_message.Message):
    __slots__ = ("table", "put_column", "drop_column", "put_element", "drop_element", "state", "create", "drop", "name", "bump")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    PUT_COLUMN_FIELD_NUMBER: _ClassVar[int]
    DROP_COLUMN_FIELD_NUMBER: _ClassVar[int]
    PUT_ELEMENT_FIELD_NUMBER: _ClassVar[int]
    DROP_ELEMENT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CREATE_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    BUMP_FIELD_NUMBER: _ClassVar[int]
    table: int
    put_column: Column
    drop_column: int
    put_element: Element
    drop_element: int
    state: TableState
    create: TableValue
    drop: bool
    name: str
    bump: bool
    def __init__(self, table: _Optional[int] = ..., put_column: _Optional[_Union[Column, _Mapping]] = ..., drop_column: _Optional[int] = ..., put_element: _Optional[_Union[Element, _Mapping]] = ..., drop_element: _Optional[int] = ..., state: _Optional[_Union[TableState, str]] = ..., create: _Optional[_Union[TableValue, _Mapping]] = ..., drop: _Optional[bool] = ..., name: _Optional[str] = ..., bump: _Optional[bool] = ...) -> None: ...

class Item(_message.Message):
    __slots__ = ("verb", "id", "name", "was")
    VERB_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    WAS_FIELD_NUMBER: _ClassVar[int]
    verb: ItemVerb
    id: int
    name: str
    was: str
    def __init__(self, verb: _Optional[_Union[ItemVerb, str]] = ..., id: _Optional[int] = ..., name: _Optional[str] = ..., was: _Optional[str] = ...) -> None: ...

class Image(_message.Message):
    __slots__ = ("table", "before")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    table: int
    before: TableValue
    def __init__(self, table: _Optional[int] = ..., before: _Optional[_Union[TableValue, _Mapping]] = ...) -> None: ...

class ChangeOptions(_message.Message):
    __slots__ = ("patience_ms", "hold", "rows_per_s")
    PATIENCE_MS_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    ROWS_PER_S_FIELD_NUMBER: _ClassVar[int]
    patience_ms: int
    hold: bool
    rows_per_s: int
    def __init__(self, patience_ms: _Optional[int] = ..., hold: _Optional[bool] = ..., rows_per_s: _Optional[int] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("rule", "element", "keys", "count", "at_ts", "why")
    RULE_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    AT_TS_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    rule: str
    element: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    count: int
    at_ts: int
    why: str
    def __init__(self, rule: _Optional[str] = ..., element: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ..., count: _Optional[int] = ..., at_ts: _Optional[int] = ..., why: _Optional[str] = ...) -> None: ...

class ChangeEvent(_message.Message):
    __slots__ = ("at_ms", "text")
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    at_ms: int
    text: str
    def __init__(self, at_ms: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class BulkWriteKey(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class BulkWriteValue(_message.Message):
    __slots__ = ("pins", "read_ts", "who", "build", "began_ms")
    PINS_FIELD_NUMBER: _ClassVar[int]
    READ_TS_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    BEGAN_MS_FIELD_NUMBER: _ClassVar[int]
    pins: _containers.RepeatedCompositeFieldContainer[Pin]
    read_ts: int
    who: str
    build: str
    began_ms: int
    def __init__(self, pins: _Optional[_Iterable[_Union[Pin, _Mapping]]] = ..., read_ts: _Optional[int] = ..., who: _Optional[str] = ..., build: _Optional[str] = ..., began_ms: _Optional[int] = ...) -> None: ...

class Pin(_message.Message):
    __slots__ = ("table", "version")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    table: int
    version: int
    def __init__(self, table: _Optional[int] = ..., version: _Optional[int] = ...) -> None: ...

class ConfigKey(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ConfigValue(_message.Message):
    __slots__ = ("number", "text")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    number: int
    text: str
    def __init__(self, number: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class FenceTokenKey(_message.Message):
    __slots__ = ("scope",)
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    scope: str
    def __init__(self, scope: _Optional[str] = ...) -> None: ...

class FenceTokenValue(_message.Message):
    __slots__ = ("deploy_generation", "epoch", "holder")
    DEPLOY_GENERATION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    deploy_generation: int
    epoch: int
    holder: str
    def __init__(self, deploy_generation: _Optional[int] = ..., epoch: _Optional[int] = ..., holder: _Optional[str] = ...) -> None: ...

class IdAllocKey(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class IdAllocValue(_message.Message):
    __slots__ = ("next_id",)
    NEXT_ID_FIELD_NUMBER: _ClassVar[int]
    next_id: int
    def __init__(self, next_id: _Optional[int] = ...) -> None: ...
