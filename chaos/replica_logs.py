"""What is on the brokers' disks: each log, read from its files, without the broker.

Why:    acknowledgements are claims; the bytes are what they must agree with.
How:    reads every segment of a log from its first byte, as far as batches have valid checksums,
        through the product's own layout and scan; a broker takes the rest for its torn tail.
Source: docs/ARCHITECTURE.md, "What is where on disk"."""

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chaos.records import mark_of
from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset
from strandline.records.batch import CRC_START, BatchHeader
from strandline.records.record import decode_records
from strandline.simulation.invariants.facts import AuditedBatch, LogAudited
from strandline.storage.layout import LOG, SegmentName, parse_name
from strandline.storage.log.scan import verified_batches

Place = tuple[str, int]
NO_RECORD = b"-/0/-"
"""Stands for each record that no client of the run wrote."""


class SegmentFile:
    """As much of a file as a scan asks for; closed when it is done."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY)

    def __enter__(self) -> "SegmentFile":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def size(self) -> int:
        """In bytes."""
        return os.fstat(self._descriptor).st_size

    def pread(self, size: int, position: int) -> bytes:
        """See `base.disk.File`."""
        return os.pread(self._descriptor, size, position)


@dataclass(frozen=True, slots=True)
class ProducedBatch(AuditedBatch):
    """A batch, and who wrote it."""

    producer: tuple[int, int]
    """(id, epoch); (-1, -1) when not idempotent."""


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """The log of one partition on one broker."""

    broker: int
    group: GroupId
    place: Place
    directory: Path

    def segments(self) -> list[tuple[SegmentName, Path]]:
        """Its segments in order."""
        found = [(parse_name(path.name), path) for path in self.directory.iterdir()]
        return sorted((one[0], path) for one, path in found if one is not None and one[1] == LOG)

    def end(self) -> tuple[Index, Epoch]:
        """(last index, its epoch), found in the last segment alone."""
        name, path = self.segments()[-1]
        index, epoch = name.base_index, name.previous_epoch
        for header, _, _ in _batches(name, path):
            index = Index(index + header.index_count)
            epoch = header.partition_leader_epoch
        return Index(index - 1), epoch


class LogReader:
    """Reads whole logs; equal batches are decoded once."""

    def __init__(self) -> None:
        self._marks: dict[bytes, list[tuple[int, bytes]]] = {}
        """{what the batch's checksum covers: [(offset delta, mark)]}; the checksum itself would not
        do: of a hundred thousand batches two have the same."""

    def audit(self, log: ReplicaLog, *, commit: Index | None, is_ours: bool) -> LogAudited:
        """Everything in a log. `commit`: the last index that all replicas had in the end, None
        where they did not agree; `is_ours`: clients of this run wrote its records."""
        segments = log.segments()
        first = segments[0][0]
        batches: list[AuditedBatch] = []
        end = first.base_offset
        for name, path in segments:
            # A scan trusts the name for where its segment begins: a gap before it is left to see.
            index = name.base_index
            for header, chunk, at in _batches(name, path):
                batches.append(
                    ProducedBatch(
                        index=index,
                        index_count=header.index_count,
                        epoch=header.partition_leader_epoch,
                        checksum=zlib.crc32(memoryview(chunk)[at : at + header.size]),
                        base_offset=header.base_offset,
                        next_offset=header.next_offset,
                        records=self._records(header, chunk, at, is_ours=is_ours),
                        producer=(header.producer_id, header.producer_epoch),
                    )
                )
                index = Index(index + header.index_count)
                end = header.next_offset
        return LogAudited(
            broker=BrokerId(log.broker),
            group=log.group,
            start_index=first.base_index,
            start_offset=first.base_offset,
            end_offset=end,
            commit=Index(-1) if commit is None else commit,
            committed_end=end,
            batches=batches,
            is_final=commit is not None,
        )

    def _records(
        self, header: BatchHeader, chunk: bytes, at: int, *, is_ours: bool
    ) -> list[tuple[Offset, bytes]]:
        if header.is_marker:
            return []
        if not is_ours:
            offsets = range(header.base_offset, header.next_offset)
            return [(Offset(offset), NO_RECORD) for offset in offsets]
        key = chunk[at + CRC_START : at + header.size]
        marks = self._marks.get(key)
        if marks is None:
            records = decode_records(chunk, at)
            marks = [(one.offset_delta, mark_of(one.value).encode()) for one in records]
            self._marks[key] = marks
        return [(Offset(header.base_offset + delta), mark) for delta, mark in marks]


def find_logs(data_directories: dict[int, Path]) -> list[ReplicaLog]:
    """Every log of every broker, {broker: data directory}."""
    found = []
    for broker, data in data_directories.items():
        for directory in sorted((data / "logs").iterdir()):
            name, _, group = directory.name.rpartition(".")
            topic, _, partition = name.rpartition("-")
            place = (topic, int(partition)) if partition.isdigit() else (name, 0)
            found.append(ReplicaLog(broker, GroupId(int(group)), place, directory))
    return found


def _batches(name: SegmentName, path: Path) -> Iterator[tuple[BatchHeader, bytes, int]]:
    """(header, chunk, where it begins in the chunk) of the batches in a segment."""
    with SegmentFile(path) as file:
        size = file.size()
        yield from verified_batches(
            file,  # type: ignore[arg-type]
            0,
            end=size,
            until=size,
            offset=name.base_offset,
            epoch=name.previous_epoch,
        )
