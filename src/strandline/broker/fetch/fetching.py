"""Answers one fetch over many partitions, as soon as there is enough to read.

Why:    a consumer asks for up to so many bytes of these partitions, and waits a little for at least
        so many.
How:        READING --enough, an error, no time to wait--> ANSWERED;  READING --too little--> PARKED
            PARKED --a replica moved or old records came, and it is enough; time over--> read again
                --> ANSWERED
            PARKED --the client goes--> dropped

        Partitions are read in turn. After each full answer the next fetch begins at another
        partition, so that none starves. The first batch is returned however large it is (KIP-74).
            A leader serves while it holds its lease. A follower serves what it knows to be
        committed, to clients that can be sent to a follower (version 11 and up). While it knows no
        leader it sends them away. In each contact with a leader it first asks that one for the log
        start offset.
            Records that are in buckets only come through `remote_reads`. They count like others,
        but no fetch is answered while the cache is about to say what it has. If no bucket can give
        them, the answer is KAFKA_STORAGE_ERROR after a pause: clients try again.
            A copy of another cluster's topic is read in the same way, with that cluster's offsets
        (`read_replicas.copied_replica`).
            If a consumer says where it is and a nearer replica has what it asks for, the leader
        names that replica and returns no records (`nearest_replica`).
Owns:   nothing that outlives the request.
Source: KIP-74, KIP-227, KIP-320, KIP-392, KIP-405, KIP-595 (diverging epochs), KIP-951; decision
        0060; kafka-protocol reference 7.2 (what clients do on follower fetch); design sections 4, 5
        and 9."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from strandline.base.errors import ApiError, StorageError
from strandline.broker.context import RequestContext
from strandline.broker.fetch.checks import Check, check_own_replica
from strandline.broker.fetch.nearer_replica import nearer_replica
from strandline.broker.fetch.remote_reads import (
    CACHE_WAIT_MS,
    FAILED_WAIT_MS,
    NeverMoves,
    RemoteReads,
)
from strandline.broker.partitions import (
    NO_EPOCH,
    find_partition,
    find_replica,
    present_leader,
    topic_by_id,
)
from strandline.broker.read_replicas.copied_replica import CopiedReplica, copy_of
from strandline.broker.server.outbox import FilePart
from strandline.broker.server.purgatory import Parked, Watched
from strandline.model.access import Kind, Operation
from strandline.model.cluster import Partition, Topic
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, Offset
from strandline.protocol.errors import Error
from strandline.protocol.fast_fetch import encode_response
from strandline.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from strandline.protocol.primitives import Part, parts_size_bytes
from strandline.replication.replica.replica import Replica
from strandline.replication.replica.tier import RemoteOffsetError
from strandline.tiered.reading.finding import RemoteSlice
from strandline.tiered.reading.memory_file import MemoryFile

TOPIC_IDS_SINCE_VERSION = 13
FOLLOWERS_SERVE_SINCE_VERSION = 11
READ_COMMITTED = 1
NO_OFFSET = -1

WAIT_MS_MAX = 24 * 3_600_000


class PartitionFetch:
    """One partition of a fetch: the request, and the result of reading."""

    __slots__ = (
        "answer",
        "check",
        "host",
        "partition",
        "position",
        "replica",
        "requested",
        "size_bytes",
    )

    def __init__(self, position: int, requested: FetchPartition, answer: PartitionData) -> None:
        self.position = position
        """In the fetch."""
        self.requested = requested
        self.answer = answer
        self.partition: Partition | None = None
        self.replica: Replica | CopiedReplica | None = None
        """What is read."""
        self.host: Replica | None = None
        """The replica here: the same, or the one of a read replica's own, empty log."""
        self.check: Check | None = None
        """Whether `replica` may answer."""
        self.size_bytes = 0


class FetchCall:
    """One request; see the module."""

    __slots__ = (
        "__weakref__",
        "_context",
        "_followers",
        "_is_abandoned",
        "_is_full",
        "_is_settled",
        "_max_bytes",
        "_min_bytes",
        "_parked",
        "_partitions",
        "_remote",
        "_request",
        "_services",
        "_topics",
        "_with_session",
    )

    def __init__(
        self,
        context: RequestContext,
        request: FetchRequest,
        with_session: Callable[[list[FetchableTopicResponse]], FetchResponse] | None = None,
    ) -> None:
        """`with_session` makes the response of what was read; None: the client has no session."""
        services = context.services
        self._context = context
        self._with_session = with_session
        self._request = request
        self._services = services
        self._max_bytes = min(request.max_bytes, services.config.limits.fetch_bytes_max)
        if context.limits is not None:
            self._max_bytes = int(min(self._max_bytes, context.limits.fetch_bytes_max(context)))
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._topics: list[FetchableTopicResponse] = []
        self._partitions: list[PartitionFetch] = []
        self._is_settled = False
        self._is_full = False
        self._parked: Parked | None = None
        self._remote: RemoteReads | None = None
        # Followers that have to ask their leader for the log start offset first.
        self._followers: list[Replica] = []
        self._is_abandoned = False

    def start(self) -> None:
        """Answer now or later."""
        for requested in self._request.topics:
            self._add_topic(requested)
        if self._followers:
            self._context.on_abandoned = self._abandon
            self._services.replication.log_start_offsets.ask(self._followers, self._begin_again)
        else:
            self._begin()

    def _begin_again(self) -> None:
        """The followers have the log start offsets of their leaders."""
        try:
            if not self._is_abandoned:
                self._context.on_abandoned = None
                self._begin()
        except Exception:  # A task boundary: the caller does not know the request.
            self._context.fail()

    def _abandon(self) -> None:
        self._is_abandoned = True

    def _begin(self) -> None:
        found_bytes = self._read_all()
        if self._may_end(found_bytes):
            self._respond(found_bytes)
            return
        delay_ms = min(self._request.max_wait_ms, WAIT_MS_MAX)
        if self._has_enough(found_bytes):
            delay_ms = CACHE_WAIT_MS
        ends_at_ms = self._context.session.ends_at_ms
        if ends_at_ms is not None:
            delay_ms = min(delay_ms, max(0, ends_at_ms - self._services.clock.monotonic_ms()))
        timed = self._context.timed
        self._parked = Parked(
            clock=self._services.clock,
            watched=[self._watched(one) for one in self._partitions],
            delay_ms=delay_ms,
            check=timed(self._is_enough),
            finish=timed(self._finish),
        )
        self._context.on_abandoned = self._drop

    def _has_enough(self, found_bytes: int) -> bool:
        """Whether the client waits for no further records."""
        return (
            self._is_settled
            or found_bytes >= self._min_bytes
            or self._request.max_wait_ms <= 0
            or not self._partitions
        )

    def _may_end(self, found_bytes: int) -> bool:
        remote = self._remote
        return self._has_enough(found_bytes) and (remote is None or not remote.is_looking)

    def _watched(self, fetch: PartitionFetch) -> Watched:
        remote = None if self._remote is None else self._remote.get(fetch.position)
        return remote or fetch.replica or NeverMoves()

    def _drop(self) -> None:
        """The client is gone."""
        if self._parked is not None:
            self._parked.drop()
        if self._remote is not None:
            self._remote.drop()

    def end_wait(self, code: int) -> None:
        """Answer with an error if it is parked: another request has gone on with its session."""
        context = self._context
        if self._parked is not None and not (context.is_answered or context.is_abandoned):
            self._drop()
            context.respond(encode_response(FetchResponse(error_code=code), context.api_version))

    # ---- finding -------------------------------------------------------------------------------

    def _add_topic(self, requested: FetchTopic) -> None:
        services = self._services
        if self._context.api_version >= TOPIC_IDS_SINCE_VERSION:
            topic = topic_by_id(services, requested.topic_id)
            # Only a session knows the name too. If another topic has it now, the id is old.
            is_old = topic is None and requested.topic in services.cluster.topics
            missing = Error.INCONSISTENT_TOPIC_ID if is_old else Error.UNKNOWN_TOPIC_ID
        else:
            topic = services.cluster.topics.get(requested.topic)
            missing = Error.UNKNOWN_TOPIC_OR_PARTITION
        name = requested.topic if topic is None else topic.name
        if name and not self._context.may(Operation.READ, Kind.TOPIC, name):
            topic, missing = None, Error.TOPIC_AUTHORIZATION_FAILED
        response = FetchableTopicResponse(topic=requested.topic, topic_id=requested.topic_id)
        self._topics.append(response)
        for one in requested.partitions:
            answer = PartitionData(partition_index=one.partition, aborted_transactions=None)
            response.partitions.append(answer)
            fetch = PartitionFetch(len(self._partitions), one, answer)
            self._partitions.append(fetch)
            if topic is None:
                self._fail_unknown(fetch, missing)
            else:
                self._find_replica(topic, fetch)

    def _find_replica(self, topic: Topic, fetch: PartitionFetch) -> None:
        fetch.partition = find_partition(topic, fetch.requested.partition)
        if fetch.partition is None:
            self._fail_unknown(fetch, Error.UNKNOWN_TOPIC_OR_PARTITION)
            return
        replica, error = find_replica(self._services, fetch.partition)
        fetch.replica = fetch.host = replica
        if replica is None:
            self._fail(fetch, error)
            return
        offset = fetch.requested.fetch_offset
        copy = copy_of(self._services, topic, fetch.partition, replica, offset)
        if copy is not None:
            fetch.replica, fetch.check = copy, copy.check
            return
        fetch.check = partial(check_own_replica, self._services, replica)
        if not replica.is_leader:
            known = self._services.replication.log_start_offsets.is_known(replica)
            if not known and self._context.api_version >= FOLLOWERS_SERVE_SINCE_VERSION:
                self._followers.append(replica)

    # ---- reading -------------------------------------------------------------------------------

    def _read_all(self) -> int:
        """Read every partition; how many bytes were found."""
        partitions = self._partitions
        count = len(partitions)
        if not count:
            return 0
        turn = self._services.fetch_turn % count
        total_bytes = 0
        self._is_full = False
        for position in range(turn, turn + count):
            fetch = partitions[position % count]
            self._read(fetch, self._max_bytes - total_bytes, is_first=total_bytes == 0)
            total_bytes += fetch.size_bytes
        return total_bytes

    def _read(self, fetch: PartitionFetch, left_bytes: int, *, is_first: bool) -> None:
        """Fill the answer of one partition with at most `left_bytes`, unless it is the first."""
        fetch.size_bytes = 0
        replica = fetch.replica
        if replica is None:
            return
        assert fetch.check is not None
        error = fetch.check(
            fetch.requested.current_leader_epoch,
            serves_as_follower=self._context.api_version >= FOLLOWERS_SERVE_SINCE_VERSION,
        )
        if error is not Error.NONE:
            self._fail(fetch, error)
            return
        requested = fetch.requested
        answer = fetch.answer
        answer.high_watermark = answer.last_stable_offset = replica.high_watermark
        answer.log_start_offset = replica.log_start_offset
        answer.records = b""
        if self._request.isolation_level == READ_COMMITTED:
            answer.aborted_transactions = []
        if requested.last_fetched_epoch != NO_EPOCH and self._has_diverged(fetch, replica):
            return
        end = replica.log_end_offset if replica.is_leader else requested.fetch_offset
        if not replica.log_start_offset <= requested.fetch_offset <= end:
            self._fail(fetch, Error.OFFSET_OUT_OF_RANGE)
            return
        if self._request.rack_id and replica.is_leader:
            assert fetch.partition is not None
            assert fetch.host is not None
            nearer = nearer_replica(self._context, self._request, fetch.partition, fetch.host)
            if nearer != NO_BROKER:
                fetch.answer.preferred_read_replica = nearer
                fetch.replica = None
                self._is_settled = True
                return
        if requested.fetch_offset >= replica.high_watermark:
            return
        limit_bytes = min(requested.partition_max_bytes, left_bytes)
        if limit_bytes <= 0 and not is_first:
            self._is_full = True
            return
        self._read_from(
            fetch, replica, Offset(requested.fetch_offset), limit_bytes, is_first=is_first
        )

    def _read_from(
        self,
        fetch: PartitionFetch,
        replica: Replica | CopiedReplica,
        offset: Offset,
        limit_bytes: int,
        *,
        is_first: bool,
    ) -> None:
        """Fill the answer with records from `offset` on."""
        try:
            slices = replica.read(offset, max(1, limit_bytes))
        except RemoteOffsetError:
            self._read_remote(fetch, replica, limit_bytes, is_first=is_first)
            return
        except ApiError as refusal:
            self._fail(fetch, refusal.code)
            return
        except (OSError, StorageError):
            self._fail(fetch, Error.KAFKA_STORAGE_ERROR)
            return
        if slices.size_bytes > limit_bytes and not is_first:
            self._is_full = True
            return
        fetch.answer.records = [
            FilePart(one.file, one.position, one.length) for one in slices.parts
        ]
        fetch.size_bytes = slices.size_bytes

    def _read_remote(
        self,
        fetch: PartitionFetch,
        replica: Replica | CopiedReplica,
        limit_bytes: int,
        *,
        is_first: bool,
    ) -> None:
        """Fill the answer with what has been found in buckets so far."""
        if self._remote is None:
            self._remote = RemoteReads(
                self._services.remote_log, max_bytes=self._max_bytes, min_bytes=self._min_bytes
            )
        offset = Offset(fetch.requested.fetch_offset)
        max_bytes = fetch.requested.partition_max_bytes
        found = self._remote.read(fetch.position, replica, offset, max_bytes=max_bytes)
        if found.is_empty:  # Compaction left nothing from `offset` to the end of its object.
            if replica.is_remote(found.next_offset):
                self._remote.go_on(fetch.position, replica, found.next_offset, max_bytes=max_bytes)
            else:
                self._read_from(fetch, replica, found.next_offset, limit_bytes, is_first=is_first)
            return
        if found.size_bytes > limit_bytes and not is_first:
            self._is_full = True
            return
        fetch.answer.records = [_part(one) for one in found.slices]
        fetch.size_bytes = found.size_bytes
        if found.is_over and found.slices:  # The records behind them are local: no more will come.
            self._is_settled = True

    def _has_diverged(self, fetch: PartitionFetch, replica: Replica | CopiedReplica) -> bool:
        """Whether the client's last record is not in this log; then the answer says where to
        truncate."""
        requested = fetch.requested
        epoch, end_offset = replica.epoch_end_offset(Epoch(requested.last_fetched_epoch))
        is_ahead = not replica.is_leader and requested.fetch_offset > replica.high_watermark
        if is_ahead and (epoch == NO_EPOCH or end_offset >= replica.high_watermark):
            # The client has read on elsewhere, and this replica is only late. But if a later epoch
            # is committed here, the client's records were discarded.
            return False
        if epoch == NO_EPOCH:
            self._fail(fetch, Error.OFFSET_OUT_OF_RANGE)
            return True
        if epoch == requested.last_fetched_epoch and end_offset >= requested.fetch_offset:
            return False
        fetch.answer.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
        self._is_settled = True
        return True

    def _fail_unknown(self, fetch: PartitionFetch, code: int) -> None:
        """Fail what is not there; no transactions were looked for, so there are none."""
        self._fail(fetch, code)
        fetch.answer.aborted_transactions = []

    def _fail(self, fetch: PartitionFetch, code: int) -> None:
        answer = fetch.answer
        answer.error_code = code
        answer.high_watermark = NO_OFFSET
        answer.last_stable_offset = NO_OFFSET
        answer.log_start_offset = NO_OFFSET
        answer.records = b""
        fetch.replica = None
        fetch.size_bytes = 0
        self._is_settled = True

    # ---- waiting -------------------------------------------------------------------------------

    def _is_enough(self, changed: Sequence[int]) -> bool:
        """Whether there is enough to read, or an error, now that these replicas have moved."""
        try:
            return self._look_again(changed)
        except Exception:  # A task boundary: the caller does not know the request.
            if self._parked is not None:
                self._parked.drop()
            self._context.fail()
            return False

    def _look_again(self, changed: Sequence[int]) -> bool:
        for position in changed:
            self._read(self._partitions[position], self._max_bytes, is_first=True)
        found_bytes = sum(one.size_bytes for one in self._partitions)
        if self._remote is not None and self._remote.failed and self._parked is not None:
            self._parked.end_within(FAILED_WAIT_MS)
        return self._may_end(found_bytes)

    def _finish(self) -> None:
        try:
            if self._context.session.is_over(self._services.clock.monotonic_ms()):
                self._respond_without_records()
            else:
                self._judge_again()
                self._respond(self._read_all())
        except Exception:  # A task boundary: the caller does not know the request.
            self._context.fail()

    def _judge_again(self) -> None:
        """A fetch may be parked for hours: the rules may have changed meanwhile."""
        context = self._context
        if not self._services.access.is_enforced:
            return
        for fetch in self._partitions:
            if fetch.replica is None or fetch.partition is None:
                continue
            if not context.may(Operation.READ, Kind.TOPIC, fetch.partition.topic):
                self._fail_unknown(fetch, Error.TOPIC_AUTHORIZATION_FAILED)

    # ---- the answer ----------------------------------------------------------------------------

    def _respond_without_records(self) -> None:
        """The login is over. The client gets nothing that it may not have, nor an error that it
        would take for a missing right; it has to log in again before its next request."""
        for fetch in self._partitions:
            fetch.answer.records = b""
            fetch.size_bytes = 0
        self._respond(0)

    def _respond(self, found_bytes: int) -> None:
        if self._remote is not None:
            for position in self._remote.failed:
                if self._partitions[position].replica is not None:
                    self._fail(self._partitions[position], Error.KAFKA_STORAGE_ERROR)
            self._remote.drop()
        self._services.fetched_bytes += found_bytes
        if self._is_full:
            self._services.fetch_turn += 1
        if self._with_session is None:
            response = FetchResponse(responses=self._topics)
        else:
            response = self._with_session(self._topics)
        self._add_leaders(response)
        context = self._context
        parts = encode_response(response, context.api_version)
        if context.limits is not None:
            context.limits.note_fetched(context, parts_size_bytes(parts))
            if context.throttle_ms:
                response.throttle_time_ms = context.throttle_ms
                parts = encode_response(response, context.api_version)
        context.respond(parts)

    def _add_leaders(self, response: FetchResponse) -> None:
        """Name the present leaders of partitions that this broker does not lead."""
        leaders: set[BrokerId] = set()
        for fetch in self._partitions if self._is_settled else ():
            partition = fetch.partition
            if fetch.answer.error_code in _MOVED and partition is not None:
                leader, epoch = present_leader(self._services, partition)
                fetch.answer.current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
                if leader != NO_BROKER:
                    leaders.add(leader)
        brokers = self._services.cluster.brokers
        session = self._context.session
        for leader in sorted(leaders):
            broker = brokers.get(leader)
            address = None if broker is None else broker.address_at(session.listener, session.host)
            if broker is not None and address is not None:
                response.node_endpoints.append(
                    NodeEndpoint(
                        node_id=leader,
                        host=address.host,
                        port=address.port,
                        rack=broker.labels.kafka_rack(),
                    )
                )


def _part(found: RemoteSlice) -> Part:
    """Old records as a part of the answer; those in memory are sent from there."""
    file = found.file
    if isinstance(file, MemoryFile):
        return file.view(found.size_bytes, found.position)
    return FilePart(file, found.position, found.size_bytes)


_MOVED = (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH)
