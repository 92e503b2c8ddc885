"""Reads whole logs of living brokers, batch by batch, markers included.

Why:    acknowledgements and marks are claims, which must agree with the bytes on the disk.
How:    walks the log through the same call that serves followers, so that it sees the same entries.
Source: design section 4 (raft index = offset + markers before it)."""

import zlib

from strandline.model.ids import Index
from strandline.records.batch import BatchHeader, iterate_headers
from strandline.replication.replica.replica import Replica
from strandline.simulation.clients.values import Values
from strandline.simulation.invariants.facts import AuditedBatch, LogAudited
from strandline.simulation.world.member import end_of

CHUNK_BYTES = 64 * 1024


def audit(replica: Replica, values: Values, *, is_final: bool) -> LogAudited:
    """The whole log of a replica that has not failed."""
    log = replica.log
    batches: list[AuditedBatch] = []
    index = log.start_index
    while index <= log.last_index:
        entries = log.read_entries(index, CHUNK_BYTES)
        for header in iterate_headers(entries.data):
            batches.append(_audit_batch(entries.data, header, index, values=values))
            index = Index(index + header.index_count)
        assert index == entries.last_index + 1, (index, entries.last_index)
    return LogAudited(
        broker=replica.self_id,
        group=replica.group,
        start_index=log.start_index,
        start_offset=log.start_offset,
        end_offset=log.end_offset,
        # The driver's mark: the core may be ahead while its decisions become durable.
        commit=replica.marks.commit,
        committed_end=end_of(replica, replica.marks.commit),
        batches=batches,
        is_final=is_final,
    )


def _audit_batch(data: bytes, header: BatchHeader, index: Index, *, values: Values) -> AuditedBatch:
    batch = data[header.position : header.position + header.size]
    return AuditedBatch(
        index=index,
        index_count=header.index_count,
        epoch=header.partition_leader_epoch,
        checksum=zlib.crc32(batch),
        base_offset=header.base_offset,
        next_offset=header.next_offset,
        records=values.of_batch(data, header),
    )
