"""Record batches that arrive with an append, or leave with one: verified and split.

Why:    a follower must not write a byte whose checksum is wrong, nor a batch whose offset is not
        the next one: no checksum covers the offset. It may also need only a part of an append.
How:    `checked` reads the headers and verifies the checksums once, before the Raft core decides.
        `from_index` then cuts at a batch. If the leader compacted its log further than this one,
        an empty batch may begin before this log's end and end behind it; that one is cut, too.
            `cut_before` is the leader's: entries that it reads from its log for a follower end
        where its memory goes on.
Source: design section 4; Redpanda #25018 (skip what matches)."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from strandline.base.disk import Buffer
from strandline.base.errors import ProtocolError
from strandline.model.ids import Index, Offset
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import AppendRequest, Run
from strandline.records.batch import (
    LENGTH_END,
    BatchHeader,
    crc_of,
    iterate_headers,
    read_header,
)
from strandline.records.cleaning import filler, is_filler
from strandline.storage.log import reads

if TYPE_CHECKING:
    from strandline.storage.log.log import Log


_configurations = msgspec.json.Decoder(Configuration)


class Entries:
    """See the module. `first_indexes[i]` is the Raft index at which `headers[i]` begins.

    `may_wait`: no acknowledgement waits for their flush."""

    __slots__ = ("_request", "_view", "first_indexes", "headers", "may_wait")

    def __init__(
        self,
        request: AppendRequest,
        view: memoryview,
        headers: Sequence[BatchHeader],
        first_indexes: Sequence[Index],
        *,
        may_wait: bool,
    ) -> None:
        self._request = request
        self._view = view
        self.may_wait = may_wait
        self.headers = headers
        self.first_indexes = first_indexes

    @classmethod
    def checked(
        cls, view: memoryview, request: AppendRequest, *, may_wait: bool = False
    ) -> "Entries":
        """Split and check; raises ProtocolError when the bytes are not what the request
        describes."""
        headers: list[BatchHeader] = []
        first_indexes: list[Index] = []
        index = Index(request.prev_index + 1)
        offset: int | None = None
        position = 0
        runs = iter(request.runs)
        run = next(runs, None)
        while position < len(view) and (header := read_header(view, position)) is not None:
            while run is not None and index > run.last_index:
                run = next(runs, None)
            if run is None or not _is_described(header, index, run):
                raise ProtocolError(f"a batch at index {index} that its append does not describe")
            if offset is not None and header.base_offset != offset:
                raise ProtocolError(f"a batch at offset {header.base_offset}, not {offset}")
            size = LENGTH_END + header.batch_length
            if crc_of(view, position, size) != header.crc:
                raise ProtocolError(f"a batch at index {index} with a wrong checksum")
            headers.append(header)
            first_indexes.append(index)
            position += size
            count = header.last_offset_delta + 1
            index = Index(index + (count or 1))  # A marker takes an index, and no offset.
            offset = header.base_offset + count
        described = request.runs[-1].last_index + 1 if request.runs else request.prev_index + 1
        if index != described:
            raise ProtocolError(f"entries up to {index - 1}, where {described - 1} was announced")
        return cls(request, view, headers, first_indexes, may_wait=may_wait)

    def from_index(self, index: Index) -> tuple[list[Buffer], Sequence[BatchHeader]]:
        """The bytes and headers of the batches from the one that begins at `index` on.

        If it lies inside an empty batch, the part of that batch from `index` on comes first."""
        last = self.headers[-1]
        end = last.position + LENGTH_END + last.batch_length
        if index == self.first_indexes[0]:  # As nearly always.
            return [self._view[:end]], self.headers
        position = bisect_right(self.first_indexes, index) - 1
        assert position >= 0, f"index {index} is before the first batch that came"
        headers = list(self.headers[position:])
        first = headers[0]
        buffers: list[Buffer] = []
        skipped = index - self.first_indexes[position]
        start = first.position
        if skipped:
            assert is_filler(first), f"index {index} is inside a batch with records"
            part = filler(
                Offset(first.base_offset + skipped),
                first.next_offset,
                first.partition_leader_epoch,
            )
            head = read_header(part)
            assert head is not None
            headers[0] = head
            buffers.append(part)
            start += first.size
        if end > start:
            buffers.append(self._view[start:end])
        return buffers, headers

    def check_place(self, log: "Log") -> None:
        """Check that the first batch has the offset that follows in `log`: no checksum covers it.
        Raises ProtocolError."""
        request = self._request
        previous = request.prev_index
        if not self.headers:
            return
        if previous == log.last_index:  # As nearly always.
            epochs = log.epochs
            epoch = epochs[-1][0] if epochs else log.previous_epoch
            if epoch == request.prev_epoch and self.headers[0].base_offset != log.end_offset:
                self._check_offset(Index(previous + 1), log.end_offset)
            return
        if (
            not log.start_index - 1 <= previous <= log.last_index
            or log.epoch_of(previous) != request.prev_epoch
        ):
            return  # The core refuses these, or has them already.
        self._check_offset(Index(previous + 1), log.offset_of(Index(previous + 1)))

    def _check_offset(self, index: Index, offset: Offset) -> None:
        found = self.headers[0].base_offset
        if found != offset:
            raise ProtocolError(f"a batch at offset {found} at index {index}, not {offset}")

    def copied(self) -> "Entries":
        """The same entries in memory of their own."""
        return Entries(
            self._request,
            memoryview(bytes(self._view)),
            self.headers,
            self.first_indexes,
            may_wait=self.may_wait,
        )


def _is_described(header: BatchHeader, index: Index, run: Run) -> bool:
    """Whether a batch that begins at `index` is one of `run`, and of its epoch by its own word."""
    if header.partition_leader_epoch != run.epoch:
        return False
    if header.last_offset_delta >= 0:
        return index + header.last_offset_delta <= run.last_index
    return index <= run.last_index and header.is_marker and not header.contradicts_epoch


def cut_before(entries: reads.Entries, index: Index) -> reads.Entries:
    """Entries of the log without those from `index` on; all of them where it is no boundary.

    An empty batch that compaction left can be cut at any index."""
    if entries.last_index < index:
        return entries
    position = 0
    rest = b""
    next_index = entries.first_index
    for header in iterate_headers(memoryview(entries.data)):
        following = Index(next_index + header.index_count)
        if following > index:
            if next_index < index and is_filler(header):
                end = Offset(header.base_offset + index - next_index)
                rest = bytes(filler(header.base_offset, end, header.partition_leader_epoch))
                next_index = index
            break
        next_index = following
        position = header.position + header.size
    if next_index != index:
        return entries
    last_index = Index(index - 1)
    runs = [(epoch, min(last, last_index)) for epoch, last in entries.runs]
    count = next(number for number, run in enumerate(runs, start=1) if run[1] == last_index)
    return reads.Entries(
        entries.data[:position] + rest,
        entries.first_index,
        last_index,
        runs[:count],
        [one for one in entries.configurations if one[0] < index],
    )


def encode_configuration(configuration: Configuration) -> bytes:
    """The payload of a configuration marker."""
    return msgspec.json.encode(configuration)


def decode_configuration(payload: bytes) -> Configuration:
    """The configuration that a marker carries."""
    return _configurations.decode(payload)
