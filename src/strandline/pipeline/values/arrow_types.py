"""Spark's types as Arrow's, as Spark itself reads them from record batches.

Source: `pyspark.sql.pandas.types.to_arrow_type`; a test compares."""

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

_ATOMIC: dict[type[T.DataType], pa.DataType] = {
    T.BooleanType: pa.bool_(),
    T.ByteType: pa.int8(),
    T.ShortType: pa.int16(),
    T.IntegerType: pa.int32(),
    T.LongType: pa.int64(),
    T.FloatType: pa.float32(),
    T.DoubleType: pa.float64(),
    T.StringType: pa.string(),
    T.BinaryType: pa.binary(),
    T.DateType: pa.date32(),
    T.TimestampType: pa.timestamp("us", "UTC"),
    T.TimestampNTZType: pa.timestamp("us"),
}


def to_arrow(data_type: T.DataType) -> pa.DataType:
    """The Arrow type of a Spark type that `values/ddl.py` can describe."""
    if isinstance(data_type, T.StructType):
        return pa.struct([to_arrow_field(field) for field in data_type.fields])
    if isinstance(data_type, T.ArrayType):
        element = to_arrow(data_type.elementType)
        return pa.list_(pa.field("element", element, data_type.containsNull))
    if isinstance(data_type, T.MapType):
        value = pa.field("value", to_arrow(data_type.valueType), data_type.valueContainsNull)
        return pa.map_(to_arrow(data_type.keyType), value)
    if isinstance(data_type, T.DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    return _ATOMIC[type(data_type)]


def to_arrow_field(field: T.StructField) -> pa.Field:
    """A field of a struct, with its name and whether it may be null."""
    return pa.field(field.name, to_arrow(field.dataType), field.nullable)
