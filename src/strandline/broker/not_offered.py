"""Kafka's APIs that this broker does not offer, and why.

Why:    a client asks ApiVersions and works without what is missing there, or says so. An API is
        offered once all of it is there; half an answer would be believed.
How:    one row for each request of Kafka 4.3 that clients may send. A row leaves with the API's
        first handler: a test compares this table and the handlers with Kafka's list.
Source: kafka-protocol reference, table of APIs."""

from typing import NamedTuple

_TELEMETRY = "As in Kafka without a plugin that receives the metrics of clients: clients send none."
_TRANSACTIONS = "There are no transactions; idempotent producers are served."
_NEXT_GROUPS = "Groups use the classic protocol."
_SHARE = "There are no share groups."
_STREAMS = "Kafka Streams uses the classic protocol."
_VOTERS = "The controller's voters are the seeds of the configuration."


class NotOffered(NamedTuple):
    """One API of Kafka."""

    key: int
    name: str
    reason: str


NOT_OFFERED: tuple[NotOffered, ...] = (
    NotOffered(24, "AddPartitionsToTxn", _TRANSACTIONS),
    NotOffered(25, "AddOffsetsToTxn", _TRANSACTIONS),
    NotOffered(26, "EndTxn", _TRANSACTIONS),
    NotOffered(27, "WriteTxnMarkers", _TRANSACTIONS),
    NotOffered(28, "TxnOffsetCommit", _TRANSACTIONS),
    NotOffered(65, "DescribeTransactions", _TRANSACTIONS),
    NotOffered(66, "ListTransactions", _TRANSACTIONS),
    NotOffered(68, "ConsumerGroupHeartbeat", _NEXT_GROUPS),
    NotOffered(69, "ConsumerGroupDescribe", _NEXT_GROUPS),
    NotOffered(71, "GetTelemetrySubscriptions", _TELEMETRY),
    NotOffered(72, "PushTelemetry", _TELEMETRY),
    NotOffered(76, "ShareGroupHeartbeat", _SHARE),
    NotOffered(77, "ShareGroupDescribe", _SHARE),
    NotOffered(78, "ShareFetch", _SHARE),
    NotOffered(79, "ShareAcknowledge", _SHARE),
    NotOffered(80, "AddRaftVoter", _VOTERS),
    NotOffered(81, "RemoveRaftVoter", _VOTERS),
    NotOffered(83, "InitializeShareGroupState", _SHARE),
    NotOffered(84, "ReadShareGroupState", _SHARE),
    NotOffered(85, "WriteShareGroupState", _SHARE),
    NotOffered(86, "DeleteShareGroupState", _SHARE),
    NotOffered(87, "ReadShareGroupStateSummary", _SHARE),
    NotOffered(88, "StreamsGroupHeartbeat", _STREAMS),
    NotOffered(89, "StreamsGroupDescribe", _STREAMS),
    NotOffered(90, "DescribeShareGroupOffsets", _SHARE),
    NotOffered(91, "AlterShareGroupOffsets", _SHARE),
    NotOffered(92, "DeleteShareGroupOffsets", _SHARE),
)
"""Ascending by key."""
