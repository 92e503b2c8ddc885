"""Rows in the type of the table they go to, field by field by name.

Why:    Spark casts structs by position: a schema with the same fields in another order would put
        values under wrong names.
How:    structs, arrays and maps are rebuilt by name down to their leaves; a leaf is cast, which
        the evolution of the table allowed because it keeps every value."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (as in all of Spark's documentation)
from pyspark.sql import types as T  # noqa: N812


def in_type(rows: DataFrame, target: T.StructType) -> DataFrame:
    """The same columns, each in the type that `target` has for it."""
    types = {field.name: field.dataType for field in target.fields}
    return rows.select(
        *(
            cast_by_name(F.col(f"`{field.name}`"), field.dataType, types[field.name]).alias(
                field.name
            )
            for field in rows.schema.fields
        )
    )


def cast_by_name(column: Column, found: T.DataType, target: T.DataType) -> Column:
    """A column of type `found` in type `target`; fields that `found` lacks are null."""
    if _shape(found) == _shape(target):
        return column
    if isinstance(found, T.StructType) and isinstance(target, T.StructType):
        have = {field.name: field.dataType for field in found.fields}
        fields = [
            cast_by_name(column[field.name], have[field.name], field.dataType).alias(field.name)
            if field.name in have
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in target.fields
        ]
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(found, T.ArrayType) and isinstance(target, T.ArrayType):
        element, wanted = found.elementType, target.elementType
        return F.transform(column, lambda each: cast_by_name(each, element, wanted))
    if isinstance(found, T.MapType) and isinstance(target, T.MapType):
        key, value = found.keyType, found.valueType
        keys, values = target.keyType, target.valueType
        with_keys = F.transform_keys(column, lambda each, _: cast_by_name(each, key, keys))
        return F.transform_values(with_keys, lambda _, each: cast_by_name(each, value, values))
    return column.cast(target)


def _shape(data_type: T.DataType) -> str:
    """Names and types, without nullability and metadata."""
    return data_type.simpleString()
