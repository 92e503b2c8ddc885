"""Protobuf values -> a typed column, by the reader's descriptor.

How:    framing none       the value alone
        framing confluent  00 | schema id | message indexes | the value
        Fields are matched by number. A writer's schema is compared with the reader's once: if a
        field has another type there, each of its values is a problem; what it has in addition shows
        as an unknown field, where it is set.
        The reader's descriptor is fixed when the decoder is made: the file's, or the newest of the
        registry's subject at that moment."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.base.errors import OperatorError
from strandline.pipeline.values.arrow_types import to_arrow
from strandline.pipeline.values.decoding import DecodedValues, Mode, decode_each
from strandline.pipeline.values.problems import TOO_DEEP, UnfitValueError, encodable, join
from strandline.pipeline.values.protobuf import descriptors
from strandline.pipeline.values.protobuf.messages import Message, message_of
from strandline.pipeline.values.protobuf.wire import TRUNCATED, read_varint, reader_of
from strandline.pipeline.values.registry import framing as frames
from strandline.pipeline.values.registry.client import SchemaRegistry, UnknownSchemaError

INDEXES_MAX = 50
_SERIALIZED = "serialized"
_WIDER = {("int32", "int64"), ("uint32", "uint64"), ("sint32", "sint64")}
"""(writer, reader) with the same bytes on the wire and no other numbers."""


def protobuf_decoder(
    descriptor_set: bytes | None = None,
    *,
    message: str | None = None,
    registry: SchemaRegistry | None = None,
    subject: str | None = None,
    mode: Mode = "strict",
) -> "ProtobufDecoder":
    """Decodes messages. `descriptor_set`: what protoc writes; without it the newest of `subject`
    in the registry. `message`: its full name. With a registry values have ids in front.
    """
    if descriptor_set is not None:
        source = "--schema"
        files = descriptors.files_of_set(descriptor_set, source=source)
    elif registry is not None and subject is not None:
        source = f"registry {registry.url}: {subject}"
        found = registry.latest(subject, format=_SERIALIZED)
        if found.kind != "PROTOBUF":
            raise OperatorError(f"{source} is {found.kind}, not PROTOBUF")
        files = descriptors.files_of_registered(found, source=source)
    else:
        raise OperatorError("Protobuf needs --schema FILE, or --registry URL and a subject")
    return ProtobufDecoder(files, message, registry, mode, source)


class ProtobufDecoder:
    """A Decoder of Protobuf messages."""

    def __init__(
        self,
        files: tuple[bytes, ...],
        message: str | None,
        registry: SchemaRegistry | None,
        mode: Mode,
        source: str,
    ) -> None:
        self._arguments = (files, message, registry, mode, source)
        pool, loaded = descriptors.load_files(files, source=source)
        descriptor = descriptors.find_message(pool, loaded, message, source=source)
        self._message = message_of(descriptor, source=source)
        kind = self._message.type
        if not isinstance(kind, T.StructType):
            raise OperatorError(f"{source}: expected a message with columns, not a timestamp")
        self._type = kind
        self._arrow = to_arrow(kind)
        self._notes: list[str] = []
        self._read = reader_of(self._message, self._notes)
        self._registry = registry
        self._mode = mode
        self._writers: dict[tuple[int, tuple[int, ...]], str | None] = {}
        """{(id, message indexes): why its values cannot be read; None: they can}"""
        self._unknown: dict[int, str] = {}
        """{id that the registry does not know: the reason}, for one call of `decode`"""

    def __reduce__(self) -> tuple[Any, ...]:
        return ProtobufDecoder, self._arguments

    @property
    def type(self) -> T.StructType:
        """Spark's type of the values."""
        return self._type

    def decode(self, values: Any) -> DecodedValues:
        """Decodes a BinaryArray. OperatorError if the registry does not answer."""
        self._unknown.clear()
        return decode_each(values, self._one, self._arrow)

    def _one(self, data: bytes) -> tuple[Any, str | None]:
        self._notes.clear()
        try:
            if self._registry is not None:
                data = self._framed(data)
            value = self._read(data)
        except UnfitValueError as unfit:
            return None, encodable(str(unfit))
        except RecursionError:
            return None, TOO_DEEP
        if not self._notes:
            return value, None
        return (value if self._mode == "lenient" else None), encodable(self._notes[0])

    def _framed(self, data: bytes) -> bytes:
        """The message behind its frame, if its schema can be read here."""
        number = frames.confluent_id(data)
        indexes, start = _indexes(data, frames.CONFLUENT_BYTES)
        key = (number, indexes)
        if key not in self._writers:
            if number in self._unknown:
                raise UnfitValueError(self._unknown[number])
            try:
                self._writers[key] = self._compared(number, indexes)
            except UnknownSchemaError as error:
                self._unknown[number] = str(error)
                raise
        reason = self._writers[key]
        if reason is not None:
            raise UnfitValueError(reason)
        return data[start:]

    def _compared(self, number: int, indexes: tuple[int, ...]) -> str | None:
        assert self._registry is not None
        name = f"schema {number}"
        schema = self._registry.schema(number, format=_SERIALIZED)
        if schema.kind != "PROTOBUF":
            return f"{name} is {schema.kind}, not PROTOBUF"
        files = descriptors.files_of_registered(schema, source=name)
        try:
            pool, loaded = descriptors.load_files(files, source=name)
            descriptor = descriptors.message_at(pool, loaded[-1], indexes)
            if descriptor is None:
                return f"{name} has no message {list(indexes)}"
            if descriptor.full_name != self._message.name:
                return f"a {descriptor.full_name}, not a {self._message.name}"
            writer = message_of(descriptor, source=name)
        except OperatorError as error:
            return str(error)
        reason = next(_differences(writer, self._message, ""), None)
        return None if reason is None else f"{name} does not resolve: {reason}"


def _indexes(data: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """(which message of the file it is, the next position): a count and zigzag numbers."""
    try:
        count, start = _zigzag(data, start)
        if count == 0:
            return (0,), start
        if not 0 < count <= INDEXES_MAX:
            raise UnfitValueError("no message indexes in front of the value")
        found = []
        for _ in range(count):
            index, start = _zigzag(data, start)
            found.append(index)
    except IndexError:
        raise UnfitValueError(TRUNCATED) from None
    return tuple(found), start


def _zigzag(data: bytes, start: int) -> tuple[int, int]:
    raw, start = read_varint(data, start)
    return (raw >> 1) ^ -(raw & 1), start


def _differences(writer: Message, reader: Message, path: str) -> Iterator[str]:
    """Why a field of the writer's message cannot be read as the reader's."""
    known = {one.number: one for one in reader.fields}
    for theirs in writer.fields:
        ours = known.get(theirs.number)
        if ours is None:
            continue
        place = join(path, ours.name)
        same = theirs.kind == ours.kind or (theirs.kind, ours.kind) in _WIDER
        if not same or (theirs.is_repeated, theirs.is_map) != (ours.is_repeated, ours.is_map):
            many = [" repeated" if one.is_repeated else "" for one in (theirs, ours)]
            yield f"field {place}:{many[0]} {theirs.kind} into{many[1]} {ours.kind}"
        elif theirs.message is not None and ours.message is not None:
            yield from _differences(theirs.message, ours.message, place)
