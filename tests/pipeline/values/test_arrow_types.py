"""Types are Arrow's as Spark itself takes them from record batches."""

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

from strandline.pipeline.values.arrow_types import to_arrow
from strandline.pipeline.values.ddl import parse_ddl

ALL = """a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DECIMAL(18,2),
    i STRING, j BINARY, k DATE, l TIMESTAMP_NTZ, m ARRAY<STRUCT<x: INT NOT NULL>>,
    n MAP<STRING, ARRAY<DOUBLE>>, o STRUCT<p: STRUCT<q: DECIMAL(38,38)>>"""


def test_arrow_types_are_sparks() -> None:
    kind = parse_ddl(ALL)
    assert to_arrow(kind) == to_arrow_type(kind)
    assert from_arrow_type(to_arrow(kind)) == kind


def test_timestamps_are_instants_in_utc() -> None:
    assert to_arrow(parse_ddl("t TIMESTAMP")) == pa.struct([("t", pa.timestamp("us", "UTC"))])
