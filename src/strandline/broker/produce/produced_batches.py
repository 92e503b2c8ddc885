"""The batches that a producer sends to one partition.

Source: decision 0044."""

from collections.abc import Sequence

import msgspec

from strandline.model.cluster import Partition
from strandline.protocol.errors import Error
from strandline.protocol.messages.produce import PartitionProduceData, PartitionProduceResponse
from strandline.records.batch import TRANSACTIONAL_BIT, BatchHeader
from strandline.records.recompress import Compression
from strandline.records.validate import MalformedProduceError
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


def refuse_transactions(headers: Sequence[BatchHeader]) -> None:
    """Raises MalformedProduceError for a batch of a transaction."""
    for header in headers:
        if header.attributes & TRANSACTIONAL_BIT:
            raise MalformedProduceError(Error.INVALID_TXN_STATE, "transactions are not offered")


def has_write_quorum(replica: Replica, min_insync_replicas: int) -> bool:
    """Whether as many replicas are in sync as the topic asks for.

    A refusal is better than records that never commit. A majority needs no check: a leader without
    one steps down by itself."""
    voter_count = len(replica.configuration.voters)
    wanted = min(min_insync_replicas, voter_count)
    return wanted <= voter_count // 2 + 1 or len(replica.in_sync()) >= wanted
