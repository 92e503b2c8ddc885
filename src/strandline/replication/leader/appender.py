"""The batcher: requests of one pass of the event loop become one append, at any acks level.

Why:    many requests share one write, one flush and one message to each follower, and all acks
        levels share one order.
How:    `add` accepts a request and takes its memory units. At the end of the pass the batcher
        checks producer sequences, and the leader state stamps, writes and proposes the batches. A
        new chunk begins
        - where the acks kind changes;
        - where a producer comes twice: its sequence is checked against what is appended already;
        - at `CHUNK_BYTES_MAX`.

        Back-pressure, at every acks level: requests wait while the followers have not taken earlier
        appends, or while the log is `UNCOMMITTED_BYTES_MAX` ahead of what is as safe as its
        producers asked. Meanwhile the broker does not read the connections that they came on.

        Too few voters: while fewer voters are left than acks=all needs, the batcher refuses
        acks=all. A request that waits already gets NOT_ENOUGH_REPLICAS_AFTER_APPEND. A repeated
        request waits until the present configuration is committed, even if its records are.

        Refused batches: the later batches of an idempotent producer get the same error until the
        first refused one arrives again. If they got OUT_OF_ORDER_SEQUENCE_NUMBER, librdkafka would
        begin a new epoch, and write its unanswered batches again on all partitions. The first batch
        of an unknown producer may have any sequence (decision 0043).
Owns:   requests accepted and not yet appended; one per replica.
Source: Redpanda RFC 20220119; design section 5."""

import logging
from collections import deque
from collections.abc import Callable, Sequence, Set
from typing import Protocol

from msgspec import UNSET

from strandline.base.clock import Clock
from strandline.base.errors import ApiError
from strandline.model.ids import Index, Offset
from strandline.protocol.errors import Error
from strandline.records.batch import BatchHeader
from strandline.replication.leader.leadership import Leadership
from strandline.replication.leader.requests import Appended, AppendResult, Request
from strandline.replication.leader.unknown_producers import UnknownProducers
from strandline.replication.liveness.lease import Lease
from strandline.replication.memory_budget import MemoryBudget
from strandline.replication.replica.delete_records import Deletions
from strandline.replication.replica.state import ReplicaState
from strandline.replication.replica.tier import ReplicaTier
from strandline.replication.waiters import MarkWaiters
from strandline.storage.producers.producers import SEQUENCE_COUNT, Duplicate

UNCOMMITTED_BYTES_MAX = 64 * 1024 * 1024
HELD_BYTES_MAX = 16 * 1024 * 1024
"""The requests of one partition that may wait: half of all partitions' memory (`memory_bytes_max`).
Each of many connections has a request in hand before it pauses; the batcher refuses the rest."""
CHUNK_BYTES_MAX = 1024 * 1024
REFUSED_COUNT_MAX = 100_000
"""Producers of a partition whose refusals are remembered: some never come again."""

NO_ACKS = 0
QUORUM_ACK = -1

_NONE = int(Error.NONE)
_NO_PRODUCERS: Set[int] = frozenset()

_log = logging.getLogger("strandline.replication")


class AppendingReplica(Protocol):
    """What the batcher asks of its replica."""

    leadership: Leadership | None

    @property
    def can_serve_reads(self) -> bool:
        """Whether the replica certainly leads, and knows everything committed."""

    def fail(self, error: Exception) -> None:
        """The log cannot be trusted any more."""


class Appender:
    """See the module. `commit_waiters` and `visible_waiters` wait for commit and for visible."""

    def __init__(
        self,
        replica: ReplicaState,
        owner: AppendingReplica,
        *,
        lease: Lease,
        deletions: Deletions,
        tier: ReplicaTier,
        commit_waiters: MarkWaiters,
        visible_waiters: MarkWaiters,
        clock: Clock,
        memory: MemoryBudget,
    ) -> None:
        self._replica = replica
        self._owner = owner
        self._lease = lease
        self._deletions = deletions
        self._tier = tier
        self._commit_waiters = commit_waiters
        self._visible_waiters = visible_waiters
        self._clock = clock
        self._memory = memory
        # Whether the last chunk found the disk full: that is logged once.
        self._is_full = False
        self._requests: deque[Request] = deque()
        self._scheduled = False
        # (last index, bytes, relaxed) of chunks that are not yet as safe as their producers asked.
        self._uncommitted: deque[tuple[Index, int, bool]] = deque()
        self.uncommitted_bytes = 0
        self.held_bytes = 0
        self.voter_count_min = 0
        """acks=all needs a write quorum of this many voters; 0: the topic asks for no number."""
        self.refusal = ""
        """Why all writes are refused for now, for an operator's limit; empty while they are not."""
        # {producer: (its first batch that was valid and yet refused, the error code)}
        self._refused: dict[int, tuple[BatchHeader, int]] = {}
        self._unknown_producers = UnknownProducers(replica, clock, self._go_on)

    @property
    def is_holding(self) -> bool:
        """Whether requests wait for more than the end of the pass."""
        return bool(self._requests) and not self._scheduled

    def add(self, request: Request) -> bool:
        """Accept a request, or answer it with `refusal`; False if too much waits already, or this
        replica cannot promise the acknowledgement that it asks for."""
        if self.refusal:
            self.note_refused(request.headers, Error.KAFKA_STORAGE_ERROR)
            request.done(self._failed(Error.KAFKA_STORAGE_ERROR, self.refusal))
            return True
        lacks_voters = self.voter_count_min > 1 and request.acks == QUORUM_ACK and self.lacks_voters
        if self._replica.raft.state.configuration.floor is not UNSET:
            lacks_voters |= self._replica.is_leader and self._lease.is_long_gone
        is_full = self.held_bytes + request.size_bytes > HELD_BYTES_MAX and bool(self._requests)
        if lacks_voters or is_full:
            self.note_refused(request.headers, Error.NOT_ENOUGH_REPLICAS)
            return False
        self._requests.append(request)
        self.held_bytes += request.size_bytes
        self._memory.take(request.size_bytes)
        if not self._scheduled:
            self._append_soon()
        return True

    def on_room(self) -> None:
        """The followers have taken more."""
        if self._requests:
            self._append_soon()

    def on_marks(self, commit: Index, visible: Index) -> None:
        """Committed entries make room; so do relaxed ones that a quorum has written."""
        uncommitted = self._uncommitted
        while uncommitted:
            last_index, size, relaxed = uncommitted[0]
            if last_index > (visible if relaxed else commit):
                break
            uncommitted.popleft()
            self.uncommitted_bytes -= size
            assert self.uncommitted_bytes >= 0
        if self._requests:
            self._append_soon()

    def fail(self, error: Error) -> None:
        """Answer all requests that wait to be appended with `error`."""
        requests, self._requests = self._requests, deque()
        self._memory.give_back(self.held_bytes)
        self.held_bytes = 0
        self._uncommitted.clear()
        self.uncommitted_bytes = 0
        self._refused.clear()
        held = self._unknown_producers.clear()
        self._memory.give_back(sum(request.size_bytes for request in held))
        for request in (*held, *requests):
            request.done(self._failed(error))

    @property
    def lacks_voters(self) -> bool:
        """Whether so few vote, or count, while others are lost, that acks=all is refused."""
        present = self._replica.configuration
        return present.write_quorum(present.voters) < self.voter_count_min

    @property
    def _has_room(self) -> bool:
        leadership = self._owner.leadership
        is_taken = leadership is None or leadership.tail.has_room
        return self.uncommitted_bytes < UNCOMMITTED_BYTES_MAX and is_taken

    def _is_held(self, request: Request) -> bool:
        """Whether the request waits for an earlier one of its producer. Behind a refused one it is
        refused like it."""
        is_refused = request.headers[0].producer_id in self._refused
        return not is_refused and self._unknown_producers.holds(request)

    def _go_on(self, requests: list[Request]) -> None:
        """Take requests back that were held, before all others; they have their memory units."""
        self._requests.extendleft(reversed(requests))
        self.held_bytes += sum(request.size_bytes for request in requests)
        self._append_soon()

    def _append_soon(self) -> None:
        if not self._scheduled and self._has_room:
            self._scheduled = True
            self._clock.at_pass_end(self._append)

    def _append(self) -> None:
        self._scheduled = False
        while self._requests and self._has_room and self._replica.can_append:
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
            assert self.held_bytes >= 0
            if own:
                if self._is_held(request):
                    continue
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
                duplicate = self._check_producer(header)
                if duplicate is not None:
                    self._answer_duplicate(request, duplicate)
                    return False
        except ApiError as error:
            # Only a leader that cannot have been deposed may say so: a client that is told that
            # its sequence is wrong begins anew, and would write again what another leader has.
            known = self._owner.can_serve_reads
            code = error.code if known else Error.NOT_LEADER_OR_FOLLOWER
            if code == Error.OUT_OF_ORDER_SEQUENCE_NUMBER:
                code = self._reason_of_gap(header) or code
            request.done(self._failed(code, error.message))
            return False
        return True

    def _answer_duplicate(self, request: Request, duplicate: Duplicate) -> None:
        result = AppendResult(Error.NONE, duplicate.base_offset, self._log_start())
        if request.acks != QUORUM_ACK:
            request.done(result)
            return
        # Once this is committed, as many have the record as are asked for now: it may have been
        # committed by fewer, before voters came or the write quorum was raised.
        replica = self._replica
        index = replica.log.index_of(Offset(duplicate.last_offset))
        self._wait(request.done, max(index, replica.raft.configuration_index), result)

    def _check_producer(self, header: BatchHeader) -> Duplicate | None:
        """The place of a batch that is in the log already. Raises ApiError when the sequence is
        wrong."""
        producers = self._replica.log.producers
        if header.base_sequence > 0 and producers.get(header.producer_id) is None:
            self._check_unknown(header)
        return producers.check(header)

    def _check_unknown(self, header: BatchHeader) -> None:
        """Refuse the first batch of an unknown producer if it may have overtaken an earlier one,
        which would then lie behind it for ever. Raises ApiError with a retriable code.

        Any first sequence is right, because the earlier ones may be forgotten, or in a deleted
        topic of the same name. But an earlier batch was refused here, or an earlier leader may have
        lost it: then a client sends the earlier one again before it repeats this one. So this one
        is accepted when it comes again (decision 0043)."""
        code = self._reason_of_gap(header)
        unknown = self._unknown_producers
        may_lack_batches = unknown.is_whole and not unknown.is_led_first
        if code is None and may_lack_batches and not self._is_refused(header):
            code = Error.NOT_LEADER_OR_FOLLOWER
            self._remember(header, code)
        if code is not None:
            raise ApiError(
                code,
                f"producer {header.producer_id} is new here, and sent sequence "
                f"{header.base_sequence} first: send the batch again",
            )

    def _is_refused(self, header: BatchHeader) -> bool:
        """Whether this very batch is the first one of its producer that was refused here."""
        first, _ = self._refused.get(header.producer_id, (None, 0))
        return first is not None and (first.producer_epoch, first.base_sequence) == (
            header.producer_epoch,
            header.base_sequence,
        )

    def _log_start(self) -> Offset:
        """Where the partition begins for clients; -1 while that is not known."""
        deletions = self._deletions
        if not deletions.are_settled or self._tier.awaits_history:
            return Offset(-1)
        return max(self._tier.start_offset, deletions.before, deletions.told)

    def _write(self, chunk: list[Request], *, relaxed: bool) -> Appended:
        """Stamp, write, replicate; the units of the requests go with them. Raises OSError, and
        then nothing was appended."""
        leadership = self._owner.leadership
        assert leadership is not None
        try:
            appended = leadership.append(chunk, relaxed=relaxed)
        except OSError as error:
            if self._replica.log.failed:
                self._owner.fail(error)
            elif not self._is_full:
                self._is_full = True
                _log.error("%s: producers are refused for now: %s", self._replica.name, error)
            raise
        if self._is_full:
            self._is_full = False
            _log.info("%s: producers are served again", self._replica.name)
        return appended

    def _append_chunk(self, chunk: list[Request]) -> None:
        relaxed = self._is_relaxed(chunk[0])
        size = 0
        for request in chunk:
            size += request.size_bytes
        try:
            appended = self._write(chunk, relaxed=relaxed)
        except OSError as error:
            self._memory.give_back(size)
            for request in chunk:
                self.note_refused(request.headers, Error.KAFKA_STORAGE_ERROR)
                request.done(self._failed(Error.KAFKA_STORAGE_ERROR, str(error)))
            return
        assert len(appended.base_offsets) == len(chunk), "each request has its place"
        if self._refused:
            for request in chunk:
                for header in request.headers:
                    self._refused.pop(header.producer_id, None)
        if self._unknown_producers.is_busy:
            for request in chunk:
                self._unknown_producers.on_appended(request)
        assert not self._uncommitted or self._uncommitted[-1][0] < appended.last_index
        self._uncommitted.append((appended.last_index, size, relaxed))
        self.uncommitted_bytes += size
        start = self._log_start()
        for request, base_offset in zip(chunk, appended.base_offsets, strict=True):
            result = AppendResult(_NONE, base_offset, start)
            if request.acks != QUORUM_ACK:
                request.done(result)
            else:
                self._wait(request.done, appended.last_index, result)

    def _wait(
        self, done: Callable[[AppendResult], None], index: Index, result: AppendResult
    ) -> None:
        """Tell `done` once it is as safe as was asked for. Nothing here keeps the batches: their
        units return when the followers' sockets have them, and so must the memory."""

        def on_mark(error: Error) -> None:
            if error:
                done(self._failed(error))
            elif self.voter_count_min > 1 and self.lacks_voters:
                done(self._failed(Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
            else:
                done(result)

        state = self._replica.raft.state
        if self._replica.log.config.write_caching and not self._has_promised_quorum:
            self._visible_waiters.wait(index, state.visible, on_mark)
        else:
            self._commit_waiters.wait(index, state.commit, on_mark)

    def _is_relaxed(self, request: Request) -> bool:
        """Whether no acknowledgement waits for the flush of these entries: they need only be
        written on the quorum with `write.caching`."""
        is_relaxed = request.acks != QUORUM_ACK or self._replica.log.config.write_caching
        return is_relaxed and not self._has_promised_quorum

    @property
    def _has_promised_quorum(self) -> bool:
        """Whether one voter alone may have to keep all acknowledged and visible records, even over
        a power failure: then all of them must be flushed."""
        return self._replica.raft.state.configuration.floor is not UNSET

    def note_refused(self, headers: Sequence[BatchHeader], code: int) -> None:
        """Batches are refused with a retriable code: later batches of their producers will be out
        of sequence, by no fault of theirs."""
        for header in headers:
            if header.producer_id >= 0:
                known = self._refused.get(header.producer_id)
                if known is None or known[0].producer_epoch != header.producer_epoch:
                    self._remember(header, code)

    def _remember(self, header: BatchHeader, code: int) -> None:
        """Note the refusal of a producer's batch; the oldest of too many is forgotten."""
        self._refused[header.producer_id] = header, code
        if len(self._refused) > REFUSED_COUNT_MAX:
            del self._refused[next(iter(self._refused))]

    def _reason_of_gap(self, header: BatchHeader) -> int | None:
        """Why a batch that this one comes behind was refused; None where none was."""
        first, code = self._refused.get(header.producer_id, (None, 0))
        if first is None or first.producer_epoch != header.producer_epoch:
            return None
        ahead = (header.base_sequence - first.base_sequence) % SEQUENCE_COUNT
        return code if 0 < ahead < SEQUENCE_COUNT // 2 else None

    def _failed(self, error: int, message: str = "") -> AppendResult:
        return AppendResult(error, -1, -1, message)


def _producers_of(headers: Sequence[BatchHeader]) -> Set[int]:
    if len(headers) == 1 and headers[0].producer_id < 0:
        return _NO_PRODUCERS
    return {header.producer_id for header in headers if header.producer_id >= 0}
