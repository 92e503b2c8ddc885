"""A message's descriptor -> its fields by number, and Spark's type.

How:    int32, sint32, sfixed32     INT          bool             BOOLEAN
        int64, sint64, sfixed64     BIGINT       string, enum     STRING (an enum's name)
        uint32, fixed32             BIGINT       bytes            BINARY
        uint64, fixed64             DECIMAL(20)  float, double    FLOAT, DOUBLE
        google.protobuf.Timestamp   TIMESTAMP    other messages   STRUCT
        repeated                    ARRAY        map              MAP
        A field without presence (proto3 without `optional`) has its default if it is absent, and
        a repeated field is empty; other absent fields are null, or a problem if they are required.
        Groups, and messages that contain themselves, have no column and are refused.
Source: descriptor.proto; Spark's protobuf SchemaConverters, but for unsigned integers."""

from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as F
from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.base.errors import OperatorError
from strandline.pipeline.values.ddl import NESTING_MAX
from strandline.pipeline.values.problems import join

TIMESTAMP = "google.protobuf.Timestamp"

KINDS = {
    F.TYPE_INT32: "int32",
    F.TYPE_SINT32: "sint32",
    F.TYPE_SFIXED32: "sfixed32",
    F.TYPE_INT64: "int64",
    F.TYPE_SINT64: "sint64",
    F.TYPE_SFIXED64: "sfixed64",
    F.TYPE_UINT32: "uint32",
    F.TYPE_FIXED32: "fixed32",
    F.TYPE_UINT64: "uint64",
    F.TYPE_FIXED64: "fixed64",
    F.TYPE_BOOL: "bool",
    F.TYPE_FLOAT: "float",
    F.TYPE_DOUBLE: "double",
    F.TYPE_STRING: "string",
    F.TYPE_BYTES: "bytes",
    F.TYPE_ENUM: "enum",
    F.TYPE_MESSAGE: "message",
    F.TYPE_GROUP: "group",
}
_SPARK: dict[str, T.DataType] = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), T.IntegerType()),
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint32", "fixed32"), T.LongType()),
    **dict.fromkeys(("uint64", "fixed64"), T.DecimalType(20, 0)),
    **dict.fromkeys(("string", "enum"), T.StringType()),
    "bool": T.BooleanType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "bytes": T.BinaryType(),
}


@dataclass(frozen=True, slots=True)
class MessageField:
    """One field, as the reader needs it."""

    name: str
    number: int
    kind: str
    """protobuf's name of its type."""
    is_repeated: bool = False
    is_required: bool = False
    is_map: bool = False
    default: Any = None
    """What an absent field has: None for null."""
    oneof: str = ""
    symbols: dict[int, str] = field(default_factory=dict)
    """{number: name} of an enum."""
    message: "Message | None" = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message, as the reader needs it."""

    name: str
    fields: tuple[MessageField, ...]

    @property
    def type(self) -> T.DataType:
        """Spark's type of it."""
        if self.name == TIMESTAMP:
            return T.TimestampType()
        return T.StructType(
            [T.StructField(one.name, field_type(one), not one.is_required) for one in self.fields]
        )


def field_type(one: MessageField) -> T.DataType:
    """Spark's type of a field."""
    if one.is_map:
        assert one.message is not None
        key, value = one.message.fields
        return T.MapType(field_type(key), field_type(value), False)
    single = one.message.type if one.message else _SPARK[one.kind]
    return T.ArrayType(single, False) if one.is_repeated else single


def message_of(
    descriptor: Any, *, source: str, path: str = "", within: tuple[str, ...] = ()
) -> Message:
    """The fields of a message, at all depths. OperatorError for what has no column."""
    if descriptor.full_name in within:
        raise OperatorError(
            f"{source}: field {path}: {descriptor.full_name} contains itself: "
            "no column is that deep"
        )
    if len(within) > NESTING_MAX:
        raise OperatorError(f"{source}: field {path}: more than {NESTING_MAX} levels")
    if not descriptor.fields:
        raise OperatorError(f"{source}: {descriptor.full_name} has no fields: no column holds it")
    names: dict[str, str] = {}
    fields = []
    for one in descriptor.fields:
        twin = names.setdefault(one.name.lower(), one.name)
        if twin != one.name:
            raise OperatorError(f"{source}: fields {twin} and {one.name} differ only in case")
        place = join(path, one.name)
        fields.append(_field(one, source, place, (*within, descriptor.full_name)))
    return Message(descriptor.full_name, tuple(fields))


def _field(one: Any, source: str, path: str, within: tuple[str, ...]) -> MessageField:
    kind = KINDS[one.type]
    if kind == "group":
        raise OperatorError(f"{source}: field {path}: groups are not supported")
    message = None
    if kind == "message":
        message = message_of(one.message_type, source=source, path=path, within=within)
    is_map = bool(message and one.message_type.GetOptions().map_entry)
    default = None
    if one.is_repeated:
        default = []
    elif not one.has_presence:
        default = one.default_value
        if kind == "enum":
            default = one.enum_type.values_by_number[0].name
    return MessageField(
        name=one.name,
        number=one.number,
        kind=kind,
        is_repeated=one.is_repeated,
        is_required=one.is_required,
        is_map=is_map,
        default=default,
        oneof=one.containing_oneof.full_name if one.containing_oneof else "",
        symbols={n: v.name for n, v in one.enum_type.values_by_number.items()}
        if kind == "enum"
        else {},
        message=message,
    )
