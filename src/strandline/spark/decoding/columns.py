"""The columns that a record has in Spark, named and typed as by Spark's Kafka connector.

Why:    a query written for the Kafka connector runs after a change of the format's name.
Source: Structured Streaming + Kafka Integration Guide; `leaderEpoch` is an addition."""

import pyarrow as pa

TYPES: dict[str, pa.DataType] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    "leaderEpoch": pa.int32(),
}
"""{column: its Arrow type}, in the order of the connector's schema. `timestampType`: 0 the
producer's time, 1 the broker's time of append. `headers` is null for a record without any."""

TIMESTAMP_MS_MAX = ((1 << 63) - 1) // 1000
"""The latest time that microseconds in 64 bits hold, and, negated, the earliest."""
