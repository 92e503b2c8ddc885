"""The batches that a producer sends to one partition, and what the topic asks of them.

Source: decision 0044."""

from collections.abc import Sequence

import msgspec

from strandline.broker.produce.partition_results import NO_TIMESTAMP
from strandline.config.topic import TopicConfig
from strandline.model.cluster import Partition
from strandline.protocol.errors import Error
from strandline.protocol.messages.produce import PartitionProduceData, PartitionProduceResponse
from strandline.records.batch import TRANSACTIONAL_BIT, BatchHeader
from strandline.records.recompress import Compression
from strandline.records.validate import MalformedProduceError
from strandline.records.validate_contents import TIMESTAMP_LIMIT, ContentRules
from strandline.replication.replica.replica import Replica


class ProducedBatches(msgspec.Struct, frozen=True, eq=False):
    """The batches for one partition. `append_time_ms`: -1 if the producer's times stay.
    `compression`: None if their codec stays; with it, each is at most `max_bytes` long."""

    partition: Partition
    result: PartitionProduceResponse
    replica: Replica
    records: memoryview
    headers: Sequence[BatchHeader]
    append_time_ms: int
    compression: Compression | None
    max_bytes: int


def records_of(data: PartitionProduceData) -> memoryview:
    """The bytes of the batches; raises MalformedProduceError if there are none."""
    records = data.records
    if records is None or not isinstance(records, memoryview) or not len(records):
        raise MalformedProduceError(Error.INVALID_RECORD, "no record batch for this partition")
    return records


def rules_of(config: TopicConfig, now: int) -> tuple[ContentRules, int]:
    """What the topic asks of records at this time, in ms since 1970, and the time of append; -1 if
    the producers' times stay."""
    if config.has_log_append_time:
        low = high = now
    else:
        low = max(-TIMESTAMP_LIMIT, now - config.message_timestamp_before_max_ms)
        high = min(TIMESTAMP_LIMIT - 1, now + config.message_timestamp_after_max_ms)
    rules = ContentRules(
        config.is_compacted,
        config.has_log_append_time,
        low,
        high,
        config.compressed_validation_enable,
    )
    return rules, now if rules.has_append_time else NO_TIMESTAMP


def refuse_transactions(headers: Sequence[BatchHeader]) -> None:
    """Raises MalformedProduceError for a batch of a transaction."""
    for header in headers:
        if header.attributes & TRANSACTIONAL_BIT:
            raise MalformedProduceError(Error.INVALID_TXN_STATE, "transactions are not offered")


def has_write_quorum(replica: Replica, config: TopicConfig) -> bool:
    """Whether as many replicas are in sync as the topic asks for.

    A refusal is better than records that never commit. A majority needs no check: a leader without
    one steps down by itself."""
    voter_count = len(replica.configuration.voters)
    wanted = min(config.min_insync_replicas, voter_count)
    return wanted <= voter_count // 2 + 1 or len(replica.in_sync()) >= wanted
