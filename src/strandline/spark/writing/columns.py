"""The columns of a query that writes, checked before a row is read.

How:    column      type                                        without it, or null
        value       string or binary                            required; null is a tombstone
        key         string or binary                            no key
        topic       string                                      the option topic
        partition   int                                         by Kafka's partitioner
        headers     array<struct<key: string, value: binary>>   no headers
        timestamp   timestamp                                   the time of writing
        The source's other columns are passed over, so that what was read can be written. Any other
        column is refused: its values would be lost.
Source: Spark's guide to its Kafka connector; `timestamp` is an addition."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from strandline.base.errors import OperatorError

PASSED_OVER = ("offset", "timestampType", "leaderEpoch")
_TEXT_OR_BYTES = (StringType, BinaryType)
_TYPES: dict[str, tuple[type[DataType], ...]] = {
    "value": _TEXT_OR_BYTES,
    "key": _TEXT_OR_BYTES,
    "topic": (StringType,),
    "partition": (IntegerType,),
    "timestamp": (TimestampType,),
}
_EXPECTED = {
    "value": "string or binary",
    "key": "string or binary",
    "topic": "string",
    "partition": "int",
    "timestamp": "timestamp",
    "headers": "array<struct<key: string, value: binary>>",
}
NAMES = tuple(_EXPECTED)


def check_columns(schema: StructType, topic: str) -> None:
    """`topic`: the option. Raises OperatorError, one line, for a schema that cannot be written."""
    for field in schema.fields:
        if field.name in PASSED_OVER:
            continue
        if field.name not in NAMES:
            raise OperatorError(
                f"column {field.name} would be lost: the columns of a record are "
                f"{', '.join(NAMES)}; put it into value, for example with to_json, or drop it"
            )
        if not _is_right(field.name, field.dataType):
            raise OperatorError(
                f"column {field.name} is {field.dataType.simpleString()}, not "
                f"{_EXPECTED[field.name]}: cast it before writing"
            )
    names = schema.fieldNames()
    if "value" not in names:
        raise OperatorError(f"the column value is missing: the query has {', '.join(names)}")
    if not topic and "topic" not in names:
        raise OperatorError("no topic: give the option topic, or a column topic")


def _is_right(name: str, kind: DataType) -> bool:
    if name != "headers":
        return isinstance(kind, _TYPES[name])
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = [(field.name, type(field.dataType)) for field in kind.elementType.fields]
    return fields == [("key", StringType), ("value", BinaryType)]
