"""The columns of the source, named and typed as the Kafka connector's.

How:    name           Spark type                                  unless told otherwise
        key            binary                                      yes
        value          binary                                      yes
        topic          string                                      yes
        partition      int                                         yes
        offset         bigint                                      yes
        timestamp      timestamp                                   yes
        timestampType  int: 0 create time, 1 log append time       yes
        headers        array<struct<key: string, value: binary>>   no (includeHeaders)
        leaderEpoch    int                                         no (includeLeaderEpoch)
Source: Spark's guide to its Kafka connector; decisions/0049."""

from collections.abc import Sequence

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from strandline.base.errors import OperatorError

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(_HEADER),
    "leaderEpoch": IntegerType(),
}
"""{column: its type}, in the order of the schema."""

OPTIONAL = ("headers", "leaderEpoch")
DEFAULT_COLUMNS = tuple(name for name in TYPES if name not in OPTIONAL)


def schema_of(columns: Sequence[str]) -> StructType:
    """The schema of these columns, all of which may be null, as the Kafka connector has it."""
    return StructType([StructField(name, TYPES[name]) for name in columns])


def columns_of(schema: StructType) -> tuple[str, ...]:
    """The columns that a user's schema asks for; it may leave out columns and change their order.

    Raises OperatorError for a column or a type that the source does not have."""
    for field in schema.fields:
        known = TYPES.get(field.name)
        if known is None:
            raise OperatorError(
                f"schema: column {field.name} is not known: the columns are {', '.join(TYPES)}"
            )
        if field.dataType != known:
            raise OperatorError(
                f"schema: column {field.name} is {known.simpleString()}, not "
                f"{field.dataType.simpleString()}: cast it after reading"
            )
    return tuple(schema.fieldNames())
