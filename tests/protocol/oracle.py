"""Other people's definitions of the Kafka protocol, and messages to compare with theirs.

Why:    our tables and our codec are only right if somebody else's say the same: kio (generated from
        Kafka's definitions, field by field and version by version) and kafka-python (Kafka's
        definitions themselves).
How:    `any_message(cls)` draws a message with every field of every version filled;
        `fitted(message, version)` is what of it such a version can carry."""

import dataclasses
import importlib
import io
import types
import typing
from datetime import UTC, datetime, timedelta
from functools import cache
from uuid import UUID

import msgspec
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

from strandline.protocol.apis import APIS, OWN_APIS_FROM
from strandline.protocol.consumer import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from strandline.protocol.errors import Error
from strandline.protocol.offsets_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from strandline.protocol.table import NO_ID, Column, Message, VersionRange, columns

MESSAGES: list[type[Message]] = [
    cls for api in APIS.values() if api.key < OWN_APIS_FROM for cls in (api.request, api.response)
]
OWN_MESSAGES: list[type[Message]] = [
    cls for api in APIS.values() if api.key >= OWN_APIS_FROM for cls in (api.request, api.response)
]
"""Of these, nobody else has definitions."""
BLOBS: list[type[Message]] = [ConsumerProtocolAssignment, ConsumerProtocolSubscription]
RECORDS: list[type[Message]] = [
    OffsetCommitKey,
    OffsetCommitValue,
    GroupMetadataKey,
    GroupMetadataValue,
]

NEWER_THAN_THE_ORACLES = {
    ("ApiVersionsRequest", 5),
    ("ApiVersionsResponse", 5),
    ("DeleteGroupsRequest", 3),
    ("DeleteGroupsResponse", 3),
}
"""Versions of Kafka 4.4; the oracles are of 4.3. They are compared with bytes that 4.4 wrote."""


OTHERWISE_NAMED = {
    "RequestedTopic": "TopicData",
    "RequestedPartition": "PartitionData",
    "AlterClientQuotasEntry": "EntryData",
    "AlteredEntity": "EntryData",
}
"""Kafka has these names twice: in a request, and for another structure in its response."""


def kafka_name(cls: type[msgspec.Struct]) -> str:
    """Kafka's name of a structure."""
    return OTHERWISE_NAMED.get(cls.__name__, cls.__name__)


def versions(cls: type[Message]) -> range:
    """All versions of a whole message."""
    first, last = VersionRange.parse(cls.VERSIONS)
    return range(first, last + 1)


# Messages.


@cache
def any_message(cls: type[msgspec.Struct]) -> st.SearchStrategy[msgspec.Struct]:
    """A message with a value, or null, in every field that any version has."""
    return st.builds(cls, *(_value(column) for column in columns(cls)))


def _value(column: Column) -> st.SearchStrategy[object]:
    item = _item(column)
    strategy: st.SearchStrategy[object] = item
    if column.is_array:
        strategy = st.lists(item, max_size=3)
        if column.wire == "int32":
            strategy |= st.just(list(range(-70, 70)))
    if column.nullable != VersionRange.parse("none"):
        strategy = st.none() | strategy
    if column.tag is not None and not column.is_array:
        strategy |= st.just(column.default)
    return strategy


TIMES = ("issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms")
PERIODS = (
    "retention_time_ms",
    "max_lifetime_ms",
    "renew_period_ms",
    "expiry_time_period_ms",
    "session_lifetime_ms",
)
_INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def _item(column: Column) -> st.SearchStrategy[object]:
    if column.wire == "struct":
        assert column.element is not None
        return any_message(column.element)
    if column.name.endswith("error_code"):
        return st.sampled_from([int(code) for code in Error if code <= 133])
    if column.name in TIMES:
        return st.integers(0, 10**14)
    if column.name == "log_append_time_ms":  # kio knows no time before 1970.
        return st.just(-1) | st.integers(0, 10**14)
    if column.name in PERIODS:  # kio's timedelta has no more.
        return st.integers(-1, 10**14)
    if column.wire == "uint16":
        return st.integers(0, 2**16 - 1)
    if column.wire in _INTEGER_BITS:
        bound = 1 << (_INTEGER_BITS[column.wire] - 1)
        return st.integers(-bound, bound - 1)
    return {
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "string": st.text(max_size=5) | st.sampled_from(["x" * 126, "x" * 127, "é" * 100]),
        "bytes": st.binary(max_size=5) | st.just(b"b" * 300),
        "records": st.binary(max_size=5) | st.just(b"r" * 20_000),
        "uuid": st.just(NO_ID) | st.builds(UUID, int=st.integers(1, 2**128 - 1)),
    }[column.wire]


def fitted(message: msgspec.Struct, version: int) -> msgspec.Struct:
    """What a version can carry: defaults for the fields it lacks, and no null where none may be."""
    values = []
    for column in columns(type(message)):
        value = getattr(message, column.name)
        absent = not column.versions.has(version)
        if absent or (value is None and not column.nullable.has(version)):
            value = [] if column.is_array else column.default
            if value is None and not absent:
                value = b""
        elif column.wire == "struct" and column.is_array and value is not None:
            value = [fitted(item, version) for item in value]
        elif column.wire == "struct" and value is not None:
            value = fitted(value, version)
        values.append(value)
    return type(message)(*values)


# kio.


@cache
def kio_class(cls: type[Message], version: int) -> type:
    """kio's class for one version."""
    name, kind = cls.__name__, "data"
    for suffix in ("Request", "Response"):
        if name.endswith(suffix):
            name, kind = name.removesuffix(suffix), suffix.lower()
    folder = "".join("_" + c.lower() if c.isupper() else c for c in name).strip("_")
    module = importlib.import_module(f"kio.schema.{folder}.v{version}.{kind}")
    found = getattr(module, cls.__name__)
    assert isinstance(found, type)
    return found


@dataclasses.dataclass(frozen=True)
class KioField:
    """What kio says of one field, in our words."""

    name: str
    wire: str
    is_array: bool
    is_nullable: bool
    tag: int | None
    element: type | None
    default: object
    kafka_type: str
    is_time: bool


_KIO_WIRE = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
_NO_DEFAULT = object()


@cache
def kio_fields(kio_cls: type) -> tuple[KioField, ...]:
    """kio's fields, in wire order."""
    return tuple(_kio_field(field) for field in dataclasses.fields(kio_cls))


def _kio_field(field: dataclasses.Field) -> KioField:
    kind = field.type
    options = typing.get_args(kind) if typing.get_origin(kind) is types.UnionType else (kind,)
    is_nullable = types.NoneType in options
    (kind,) = (option for option in options if option is not types.NoneType)
    is_array = typing.get_origin(kind) is tuple
    if is_array:
        kind = typing.get_args(kind)[0]
    is_struct = dataclasses.is_dataclass(kind)
    kafka_type = "struct" if is_struct else field.metadata["kafka_type"]
    is_time = kafka_type.startswith(("timedelta", "datetime"))
    if kafka_type in ("uuid", "datetime_i64"):
        is_nullable = False  # kio's own way to say zero, or -1.
    return KioField(
        name=field.name + ("_ms" if is_time else ""),
        wire=_KIO_WIRE.get(kafka_type, kafka_type),
        is_array=is_array,
        is_nullable=is_nullable,
        tag=field.metadata.get("tag"),
        element=kind if is_struct else None,
        default=_NO_DEFAULT if field.default is dataclasses.MISSING else field.default,
        kafka_type=kafka_type,
        is_time=is_time,
    )


def kio_default(field: KioField) -> object:
    """kio's default in our values; nothing said means the zero of the type, as in Kafka."""
    if field.default is not _NO_DEFAULT:
        return from_kio(field.default, field)
    if field.is_array:
        return ()
    if field.element is not None:
        return tuple(kio_default(inner) for inner in kio_fields(field.element))
    return {"bool": False, "string": "", "bytes": b"", "records": None, "uuid": NO_ID}.get(
        field.wire, 0
    )


def from_kio(value: object, field: KioField) -> object:
    """One of kio's values as ours; structures as tuples."""
    if field.is_array and value is not None:
        assert isinstance(value, tuple)
        return tuple(from_kio(item, dataclasses.replace(field, is_array=False)) for item in value)
    if field.element is not None and value is not None:
        return tuple(
            from_kio(getattr(value, inner.name.removesuffix("_ms" * inner.is_time)), inner)
            for inner in kio_fields(field.element)
        )
    match value:
        case timedelta():
            return round(value.total_seconds() * 1000)
        case None if field.kafka_type == "uuid":
            return NO_ID
        case None if field.kafka_type == "datetime_i64":
            return -1
    return value


def to_kio(message: msgspec.Struct, kio_cls: type) -> object:
    """Our message as kio's; it must fit kio's version."""
    values = {}
    for field in kio_fields(kio_cls):
        value = getattr(message, field.name)
        name = field.name.removesuffix("_ms" * field.is_time)
        if field.is_array:
            value = None if value is None else tuple(_to_kio(item, field) for item in value)
        else:
            value = _to_kio(value, field)
        values[name] = value
    return kio_cls(**values)


def _to_kio(value: object, field: KioField) -> object:
    if value is None:
        return None
    match field.kafka_type:
        case "struct":
            assert isinstance(value, msgspec.Struct) and field.element is not None
            return to_kio(value, field.element)
        case "error_code":
            return ErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            assert isinstance(value, int)
            return timedelta(milliseconds=value)
        case "datetime_i64":
            assert isinstance(value, int)
            if value == -1:
                return None
            return datetime.fromtimestamp(0, tz=UTC) + timedelta(milliseconds=value)
        case "uuid":
            return None if value == NO_ID else value
    return value


def kio_bytes(message: msgspec.Struct, kio_cls: type) -> bytes:
    """The message as kio writes it."""
    buffer = io.BytesIO()
    entity_writer(kio_cls)(buffer, to_kio(message, kio_cls))
    return buffer.getvalue()
