"""Writer's and reader's schema -> a function that reads one value into what the reader expects.

Why:    records of many schema versions go into one table, and none may lose anything on the way.
How:    Avro's rules of resolution, with two exceptions for the sake of exactness:
        - long becomes no double or float, and int no float: not every value is exact there;
        - a field that the reader's schema lacks is not skipped: unless it is null, it is a problem
          (`unknown field`), for its value has no column.
        Fields are matched by name and by the reader's aliases; a field that the writer's schema
        lacks takes the reader's default.
Source: Avro 1.12, "Schema Resolution"; decisions/0051."""

import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.pipeline.values import times
from strandline.pipeline.values.avro import binary
from strandline.pipeline.values.avro.schema import Field, Node, atomic_type, spark_type
from strandline.pipeline.values.evolution import wider
from strandline.pipeline.values.problems import NOT_UTF8, UnfitValueError, at, join

Read = Callable[[bytes, int], tuple[Any, int]]
"""(bytes, position) -> (value as `pyarrow.array` takes it, next position)"""

_PRECISE = Context(prec=80)
_PLAIN: dict[str, Read] = {
    "boolean": binary.read_boolean,
    "int": binary.read_int,
    "long": binary.read_long,
    "float": binary.read_float,
    "double": binary.read_double,
    "bytes": binary.read_bytes,
    "string": binary.read_string,
}
_SOURCE = "the reader's schema"


class UnresolvableError(Exception):
    """A value of the writer's schema cannot be read as the reader's; the message is the reason."""


class _PlacedError(UnfitValueError):
    """The reason names its field already."""


def resolve(writer: Node, reader: Node, notes: list[str], path: str = "") -> Read:
    """How to read a value. `notes` gets the reason for each part that is read but has no column.

    Raises UnresolvableError if no value could be read.
    """
    target, nullable = spark_type(reader, source=_SOURCE, path=path)
    if writer.kind == "union":
        return _union(writer, reader, notes, path)
    if writer.kind == "null":
        return _null(path, nullable=nullable)
    if reader.kind == "union":
        branches = [one for one in reader.branches if one.kind != "null"]
        if len(branches) == 1:
            return resolve(writer, branches[0], notes, path)
        return _leaf(writer, target, path)
    if writer.kind != reader.kind and {writer.kind, reader.kind} & {"record", "array", "map"}:
        raise UnresolvableError(at(path, f"{writer.kind} into {reader.kind}"))
    if writer.kind == "record":
        return _record(writer, reader, notes, path)
    if writer.items is not None and reader.items is not None:
        part = "element" if writer.kind == "array" else "value"
        item = resolve(writer.items, reader.items, notes, join(path, part))
        return _array(item) if writer.kind == "array" else _map(item, path)
    return _leaf(writer, target, path)


def _union(writer: Node, reader: Node, notes: list[str], path: str) -> Read:
    reads: list[Read] = []
    reasons: list[str] = []
    for branch in writer.branches:
        try:
            reads.append(resolve(branch, reader, notes, path))
        except UnresolvableError as error:
            reasons.append(str(error))
            reads.append(_failing(str(error)))
    if len(reasons) == len(writer.branches):
        raise UnresolvableError(reasons[0] if reasons else at(path, "an empty union"))
    return _choice(tuple(reads))


def _choice(reads: tuple[Read, ...]) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        branch, at = binary.read_long(data, at)
        if not 0 <= branch < len(reads):
            raise UnfitValueError(f"branch {branch} of a union of {len(reads)}")
        return reads[branch](data, at)

    return read


def _failing(reason: str) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        raise _PlacedError(reason)

    return read


def _null(path: str, *, nullable: bool) -> Read:
    return (lambda data, at: (None, at)) if nullable else _failing(at(path, "is null"))


def _record(writer: Node, reader: Node, notes: list[str], path: str) -> Read:
    wanted = {name: one for one in reader.fields for name in (one.name, *one.aliases)}
    plan: list[tuple[str, str, Read]] = []
    found = set()
    for one in writer.fields:
        target = wanted.get(one.name)
        if target is None:
            read = _unknown(_plain(one.node), notes, f"unknown field {join(path, one.name)}")
            plan.append((one.name, join(path, one.name), read))
        else:
            found.add(target.name)
            place = join(path, target.name)
            plan.append((target.name, place, resolve(one.node, target.node, notes, place)))
    defaults = {}
    for one in reader.fields:
        if one.name not in found:
            defaults[one.name] = _default(one, join(path, one.name))
    return _fields(tuple(plan), defaults)


def _fields(plan: tuple[tuple[str, str, Read], ...], defaults: dict[str, Any]) -> Read:
    def read(data: bytes, at_byte: int) -> tuple[Any, int]:
        value = dict(defaults)
        place = ""
        try:
            for name, place, one in plan:  # noqa: B007  (for the reason)
                value[name], at_byte = one(data, at_byte)
        except _PlacedError:
            raise
        except UnfitValueError as unfit:
            raise _PlacedError(at(place, str(unfit))) from None
        except UnicodeDecodeError:
            raise _PlacedError(at(place, NOT_UTF8)) from None
        except (IndexError, struct.error):
            raise _PlacedError(at(place, binary.TRUNCATED)) from None
        return value, at_byte

    return read


def _unknown(plain: Read, notes: list[str], reason: str) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        value, at = plain(data, at)
        if value is not None:
            notes.append(reason)
        return value, at

    return read


def _array(item: Read) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        values: list[Any] = []
        count, at = binary.read_block(data, at)
        while count:
            for _ in range(count):
                value, at = item(data, at)
                values.append(value)
            count, at = binary.read_block(data, at)
        return values, at

    return read


def _map(item: Read, path: str) -> Read:
    def read(data: bytes, at_byte: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        count, at_byte = binary.read_block(data, at_byte)
        while count:
            for _ in range(count):
                key, at_byte = binary.read_string(data, at_byte)
                if key in values:
                    raise _PlacedError(at(path, f"duplicate key {key}"))
                values[key], at_byte = item(data, at_byte)
            count, at_byte = binary.read_block(data, at_byte)
        return list(values.items()), at_byte

    return read


def _leaf(writer: Node, target: T.DataType, path: str) -> Read:
    source = atomic_type(writer)
    if wider(source, target) != target or (isinstance(source, T.DateType) and source != target):
        raise UnresolvableError(at(path, f"{source.simpleString()} into {target.simpleString()}"))
    read = _plain(writer)
    if isinstance(target, T.FloatType | T.DoubleType) and writer.kind == "int":
        return lambda data, at: _as_float(read(data, at))
    if writer.logical == "decimal":
        return _decimal(read, writer)
    if isinstance(source, T.DateType | T.TimestampType | T.TimestampNTZType):
        return _time(read, writer, source)
    return read


def _as_float(found: tuple[Any, int]) -> tuple[float, int]:
    return float(found[0]), found[1]


def _decimal(plain: Read, node: Node) -> Read:
    limit = 10**node.precision

    def read(data: bytes, at: int) -> tuple[Decimal, int]:
        unscaled, at = plain(data, at)
        number = int.from_bytes(unscaled, "big", signed=True)
        if not unscaled or abs(number) >= limit:
            raise UnfitValueError(f"out of range for decimal({node.precision},{node.scale})")
        return Decimal(number).scaleb(-node.scale, _PRECISE), at

    return read


def _time(plain: Read, node: Node, kind: T.DataType) -> Read:
    unit = 1000 if node.logical.endswith("-millis") else 1
    low, high = (
        (times.DATE_MIN, times.DATE_MAX)
        if isinstance(kind, T.DateType)
        else (times.TIMESTAMP_MIN, times.TIMESTAMP_MAX)
    )

    def read(data: bytes, at: int) -> tuple[int, int]:
        found, at = plain(data, at)
        value = found * unit
        if not low <= value <= high:
            raise UnfitValueError(f"{found} is out of range for {kind.simpleString()}")
        return value, at

    return read


def _plain(node: Node) -> Read:
    """Reads any value of a schema, also those without a column."""
    if node.kind in _PLAIN:
        return _PLAIN[node.kind]
    if node.kind == "null":
        return lambda data, at: (None, at)
    if node.kind == "union":
        return _choice(tuple(_plain(one) for one in node.branches))
    if node.kind == "record":
        return _fields(tuple((one.name, one.name, _plain(one.node)) for one in node.fields), {})
    if node.items is not None:
        item = _plain(node.items)
        return _array(item) if node.kind == "array" else _map(item, "")
    if node.kind == "enum":
        return _enum(node.symbols)
    return _fixed(node.size)


def _enum(symbols: tuple[str, ...]) -> Read:
    def read(data: bytes, at: int) -> tuple[str, int]:
        index, at = binary.read_long(data, at)
        if not 0 <= index < len(symbols):
            raise UnfitValueError(f"symbol {index} of an enum of {len(symbols)}")
        return symbols[index], at

    return read


def _fixed(size: int) -> Read:
    def read(data: bytes, at: int) -> tuple[bytes, int]:
        if at + size > len(data):
            raise UnfitValueError(binary.TRUNCATED)
        return data[at : at + size], at + size

    return read


def _default(one: Field, path: str) -> Any:
    if not one.has_default:
        raise UnresolvableError(at(path, "the writer's schema lacks it, and it has no default"))
    try:
        return _default_value(one.node, one.default)
    except (TypeError, ValueError, KeyError, AttributeError):
        raise UnresolvableError(at(path, "its default is not of its type")) from None


def _default_value(node: Node, given: Any) -> Any:
    """A default as JSON -> the value as `pyarrow.array` takes it."""
    if node.kind == "union":
        if given is None and any(one.kind == "null" for one in node.branches):
            return None
        return _default_value(next(one for one in node.branches if one.kind != "null"), given)
    if node.kind == "record":
        return {one.name: _default_value(one.node, given[one.name]) for one in node.fields}
    if node.items is not None and node.kind == "array":
        return [_default_value(node.items, one) for one in given]
    if node.items is not None:
        return [(key, _default_value(node.items, one)) for key, one in given.items()]
    if node.kind in ("bytes", "fixed"):
        data = given.encode("latin-1")
        if node.logical != "decimal":
            return data
        return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-node.scale, _PRECISE)
    expected: Any = {"boolean": bool, "string": str, "enum": str}.get(node.kind, int | float)
    if not isinstance(given, expected) or isinstance(given, bool) != (node.kind == "boolean"):
        raise TypeError
    if node.kind in ("float", "double"):
        return float(given)
    return given * 1000 if node.logical.endswith("-millis") else given
