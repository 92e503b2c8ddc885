"""The batcher: what producers bring within one pass of the loop becomes one append, whatever its
acks level.

Why:    one write, one flush and one message to each follower for many requests; and one order for
        all acks levels.
How:    accepted requests wait until the end of the pass. Then, in order: producer sequences are
        checked, base offset and epoch are stamped into the buffers in place, one write takes them
        to the log, and the Raft core is told. A new chunk begins where the acks kind changes or a
        producer comes twice, so that its sequence is checked against what is already appended.
            Memory units are taken when a request is accepted. The first stage does not finish, and
        requests are held, while the followers have not taken what was appended before, or while the
        log is `UNCOMMITTED_BYTES_MAX` ahead of what is as safe as was asked for: who sent them is
        not read any further. That is so at every acks level; where acks=0 or 1 the leader would
        else be ahead of its followers without any bound.
            Where voters that are lost do not vote meanwhile, and fewer are left than acks=all asks
        for, it is refused; NOT_ENOUGH_REPLICAS_AFTER_APPEND tells who waited when they left. What
        was committed then, and comes again, waits for the present configuration to be committed.
            An idempotent producer's batches behind a refused one are refused in the same way, until
        that one has come again: were they told that their sequence is wrong, librdkafka would begin
        a new epoch, and write what it has no answers for again, on all partitions.
Owns:   requests accepted and not yet appended; one per replica.
Source: Redpanda RFC 20220119; design section 5."""

from collections import deque
from collections.abc import Callable, Sequence, Set
from typing import Protocol

import msgspec

from strandline.base.errors import ApiError
from strandline.model.ids import Index, Offset
from strandline.protocol.errors import Error
from strandline.raft.group.configuration import Configuration
from strandline.records.batch import BatchHeader
from strandline.replication.memory_budget import MemoryBudget
from strandline.storage.producers.producers import Duplicate

UNCOMMITTED_BYTES_MAX = 64 * 1024 * 1024
HELD_BYTES_MAX = 16 * 1024 * 1024
"""So much waits of one partition: half of the memory of all (`memory_bytes_max`). Each of many
connections has a request in hand before it is held up; what is too much is refused."""
CHUNK_BYTES_MAX = 1024 * 1024

NO_ACKS = 0
QUORUM_ACK = -1

_NOBODY: Set[int] = frozenset()
_SEQUENCE_COUNT = 1 << 31


class AppendResult(msgspec.Struct, frozen=True, gc=False):
    """How a produce request to one partition ended. `base_offset` is -1 when it failed."""

    error_code: int
    base_offset: int
    log_start_offset: int
    message: str = ""


class Request(msgspec.Struct, frozen=True):
    """One `replicate` call."""

    buffers: Sequence[memoryview | bytearray]
    headers: Sequence[BatchHeader]
    acks: int
    done: Callable[[AppendResult], None]
    size_bytes: int


class Appended(msgspec.Struct, frozen=True):
    """What a chunk became: its last index, and the base offset of each request in it."""

    last_index: Index
    base_offsets: list[Offset]


class Sink(Protocol):
    """What the batcher needs of its replica."""

    def append_chunk(self, requests: Sequence[Request], *, relaxed: bool) -> "Appended":
        """Stamp, write, replicate; the units of the requests go with them. Raises OSError, and then
        nothing was appended."""

    def can_append(self) -> bool:
        """Whether the replica leads, and is not handing over: the next leader must have the whole
        log."""

    @property
    def has_room(self) -> bool:
        """Whether the followers have taken enough of what was appended."""

    @property
    def can_serve_reads(self) -> bool:
        """Whether the replica certainly leads, and knows everything committed."""

    @property
    def may_be_superseded(self) -> bool:
        """Whether somebody else may lead, though a majority answers: what is appended here may come
        to nothing."""

    @property
    def has_floor(self) -> bool:
        """Whether one voter may be all that is left of those that have what was acknowledged or
        seen, though it has lost its power: all of it has to be flushed."""

    @property
    def caches_writes(self) -> bool:
        """Whether acks=all asks for a write on the quorum, and not for a flush."""

    @property
    def configuration(self) -> Configuration:
        """Who votes."""

    def wait_commit(self, index: Index, callback: Callable[[bool], None]) -> None:
        """Call back with True once `index` is committed, with False if it may never be."""

    def wait_written(self, index: Index, callback: Callable[[bool], None]) -> None:
        """Call back with True once a quorum has written `index`, with False if it may never be."""

    def check_producer(self, header: BatchHeader) -> Duplicate | None:
        """Raises ApiError when the sequence is wrong."""

    def index_for_all(self, offset: Offset) -> Index:
        """Once this is committed, as many have the record as are asked for now: it may have been
        committed by fewer, before voters came or the write quorum was raised."""

    def log_start(self) -> Offset:
        """The log's first offset."""


class Appender:
    """See the module. `schedule` runs a callback at the end of the pass."""

    def __init__(
        self,
        sink: Sink,
        schedule: Callable[[Callable[[], None]], None],
        memory: MemoryBudget,
    ) -> None:
        self._sink = sink
        self._memory = memory
        self._schedule = schedule
        self._requests: deque[Request] = deque()
        self._scheduled = False
        # (last index, bytes, relaxed) of what was appended and is not yet as safe as was asked for.
        self._uncommitted: deque[tuple[Index, int, bool]] = deque()
        self.uncommitted_bytes = 0
        self.held_bytes = 0
        self.voter_count_min = 0
        """Fewer voters, or a lower write quorum, are not enough for acks=all; 0 where nobody asks
        for any number."""
        # {producer: (its first batch that was refused, though nothing was wrong with it, why)}
        self._refused: dict[int, tuple[BatchHeader, int]] = {}

    @property
    def is_holding(self) -> bool:
        """Whether requests wait for more than the end of the pass."""
        return bool(self._requests) and not self._scheduled

    def add(self, request: Request) -> bool:
        """Accept a request; False when too much waits already, or nobody may promise what it asks
        for."""
        lacks_voters = request.acks == QUORUM_ACK and self.lacks_voters
        lacks_voters |= self._sink.may_be_superseded
        is_full = self.held_bytes + request.size_bytes > HELD_BYTES_MAX and bool(self._requests)
        if lacks_voters or is_full:
            self._note_refused(request, Error.NOT_ENOUGH_REPLICAS)
            return False
        self._requests.append(request)
        self.held_bytes += request.size_bytes
        self._memory.take(request.size_bytes)
        self._append_soon()
        return True

    def on_room(self) -> None:
        """The followers have taken more."""
        if self._requests:
            self._append_soon()

    def on_marks(self, commit: Index, visible: Index) -> None:
        """What is committed makes room; of relaxed entries, what a quorum has written."""
        uncommitted = self._uncommitted
        while uncommitted:
            last_index, size, relaxed = uncommitted[0]
            if last_index > (visible if relaxed else commit):
                break
            uncommitted.popleft()
            self.uncommitted_bytes -= size
        if self._requests:
            self._append_soon()

    def fail(self, error: Error) -> None:
        """Answer everyone who waits to be appended with `error`."""
        requests, self._requests = self._requests, deque()
        self._memory.give_back(self.held_bytes)
        self.held_bytes = 0
        self._uncommitted.clear()
        self.uncommitted_bytes = 0
        self._refused.clear()
        for request in requests:
            request.done(self._failed(error))

    @property
    def lacks_voters(self) -> bool:
        """Whether so few vote, or count, while others are lost, that acks=all is refused."""
        present = self._sink.configuration
        return present.write_quorum(present.voters) < self.voter_count_min

    @property
    def _has_room(self) -> bool:
        return self.uncommitted_bytes < UNCOMMITTED_BYTES_MAX and self._sink.has_room

    def _append_soon(self) -> None:
        if not self._scheduled and self._has_room:
            self._scheduled = True
            self._schedule(self._append)

    def _append(self) -> None:
        self._scheduled = False
        while self._requests and self._has_room and self._sink.can_append():
            chunk = self._next_chunk()
            if chunk:
                self._append_chunk(chunk)

    def _next_chunk(self) -> list[Request]:
        """The longest run of requests that can be appended in one go."""
        chunk: list[Request] = []
        producers: set[int] = set()
        size = 0
        relaxed = self._is_relaxed(self._requests[0])
        while self._requests:
            request = self._requests[0]
            own = _producers_of(request.headers)
            if chunk and (
                self._is_relaxed(request) != relaxed
                or size + request.size_bytes > CHUNK_BYTES_MAX
                or (own and not producers.isdisjoint(own))
            ):
                break
            self._requests.popleft()
            self.held_bytes -= request.size_bytes
            if own:
                if not self._passes_sequence_check(request):
                    self._memory.give_back(request.size_bytes)
                    continue
                producers |= own
            size += request.size_bytes
            chunk.append(request)
        return chunk

    def _passes_sequence_check(self, request: Request) -> bool:
        """Whether the batches are new and in sequence; answers the request otherwise."""
        header = request.headers[0]
        try:
            for header in request.headers:
                duplicate = self._sink.check_producer(header)
                if duplicate is not None:
                    self._answer_duplicate(request, duplicate)
                    return False
        except ApiError as error:
            # Only a leader that cannot have been deposed may say so: a client that is told that
            # its sequence is wrong begins anew, and would write again what another leader has.
            known = self._sink.can_serve_reads
            code = error.code if known else Error.NOT_LEADER_OR_FOLLOWER
            if code == Error.OUT_OF_ORDER_SEQUENCE_NUMBER:
                code = self._reason_of_gap(header) or code
            request.done(self._failed(code, error.message))
            return False
        return True

    def _answer_duplicate(self, request: Request, duplicate: Duplicate) -> None:
        result = AppendResult(Error.NONE, duplicate.base_offset, self._sink.log_start())
        if request.acks != QUORUM_ACK:
            request.done(result)
            return
        self._wait(request.done, self._sink.index_for_all(Offset(duplicate.last_offset)), result)

    def _append_chunk(self, chunk: list[Request]) -> None:
        relaxed = self._is_relaxed(chunk[0])
        size = sum([request.size_bytes for request in chunk])
        try:
            appended = self._sink.append_chunk(chunk, relaxed=relaxed)
        except OSError as error:
            self._memory.give_back(size)
            for request in chunk:
                self._note_refused(request, Error.KAFKA_STORAGE_ERROR)
                request.done(self._failed(Error.KAFKA_STORAGE_ERROR, str(error)))
            return
        if self._refused:
            for request in chunk:
                for header in request.headers:
                    self._refused.pop(header.producer_id, None)
        self._uncommitted.append((appended.last_index, size, relaxed))
        self.uncommitted_bytes += size
        start = self._sink.log_start()
        for request, base_offset in zip(chunk, appended.base_offsets, strict=True):
            result = AppendResult(Error.NONE, base_offset, start)
            if request.acks != QUORUM_ACK:
                request.done(result)
            else:
                self._wait(request.done, appended.last_index, result)

    def _wait(
        self, done: Callable[[AppendResult], None], index: Index, result: AppendResult
    ) -> None:
        """Tell `done` once it is as safe as was asked for. Nothing here keeps the batches: their
        units return when the followers' sockets have them, and so must the memory."""

        def on_commit(committed: bool) -> None:
            if not committed:
                done(self._failed(Error.NOT_LEADER_OR_FOLLOWER))
            elif self.lacks_voters:
                done(self._failed(Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
            else:
                done(result)

        is_cached = self._sink.caches_writes and not self._sink.has_floor
        wait = self._sink.wait_written if is_cached else self._sink.wait_commit
        wait(index, on_commit)

    def _is_relaxed(self, request: Request) -> bool:
        """Whether nobody waits for the flush of these entries."""
        is_relaxed = request.acks != QUORUM_ACK or self._sink.caches_writes
        return is_relaxed and not self._sink.has_floor

    def _note_refused(self, request: Request, code: int) -> None:
        """What comes behind this request is not in sequence, by no fault of its producer."""
        for header in request.headers:
            if header.producer_id >= 0:
                known = self._refused.get(header.producer_id)
                if known is None or known[0].producer_epoch != header.producer_epoch:
                    self._refused[header.producer_id] = header, code

    def _reason_of_gap(self, header: BatchHeader) -> int | None:
        """Why a batch that this one comes behind was refused; None where none was."""
        first, code = self._refused.get(header.producer_id, (None, 0))
        if first is None or first.producer_epoch != header.producer_epoch:
            return None
        ahead = (header.base_sequence - first.base_sequence) % _SEQUENCE_COUNT
        return code if 0 < ahead < _SEQUENCE_COUNT // 2 else None

    def _failed(self, error: int, message: str = "") -> AppendResult:
        return AppendResult(error, -1, -1, message)


def _producers_of(headers: Sequence[BatchHeader]) -> Set[int]:
    if len(headers) == 1 and headers[0].producer_id < 0:
        return _NOBODY
    return {header.producer_id for header in headers if header.producer_id >= 0}
