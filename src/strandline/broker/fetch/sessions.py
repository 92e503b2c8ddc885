"""Fetch sessions: what a consumer reads, remembered, so that it sends and gets only what is new.

Why:    a consumer of a thousand quiet partitions would name all of them in each request, and get
        all of them in each answer.
How:    OPEN --a request of the next epoch--> OPEN;  OPEN --a full request, the last partition is
        forgotten, another session takes its place--> CLOSED

        A full request with epoch 0 opens a session, if there is room. A later request names the
        session and its epoch; its partitions are added or changed, and those that it forgets are
        removed. The answer leaves out a partition without records, errors, or new marks.
            A session has one request that waits: the next one ends that wait. Otherwise a client
        could park many requests of a few bytes, each with all partitions of the session.
            Without room the new session takes the place of one that was not used for two minutes,
        or of an older one of at most its size. Otherwise the answer carries session 0, and the
        client sends full requests.
Owns:   all sessions of this broker, in the order of their last use.
Source: KIP-227, KIP-392, KIP-516; Kafka's FetchSession; decision 0047."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Protocol
from uuid import UUID

from strandline.base.clock import Clock
from strandline.base.rng import Rng
from strandline.protocol.errors import Error
from strandline.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from strandline.protocol.table import NO_ID

NO_SESSION = 0
FIRST_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1

EVICTION_MS = 120_000
"""A session that is younger and in use keeps its place."""
PARTITIONS_MAX = 100_000
"""Partitions in all sessions together."""
SESSION_PARTITIONS_MAX = 10_000
"""Partitions in one session: a request of a few bytes reads all of them."""

TopicKey = str | UUID
"""A topic's name; its id in the sessions of clients that use ids."""

NO_MARK = -1
NO_NODE = -1


class Waiting(Protocol):
    """A request that may wait for records."""

    def end_wait(self, code: int) -> None:
        """Answer with this error, if it waits."""


def _nothing() -> None:
    return None


class _Place:
    """One partition of a session: what is asked, and the marks that the client was told."""

    __slots__ = ("high_watermark", "log_start_offset", "requested")

    def __init__(self, requested: FetchPartition) -> None:
        self.requested = requested
        self.high_watermark = NO_MARK
        self.log_start_offset = NO_MARK

    def must_tell(self, answer: PartitionData, *, no_divergence: object) -> bool:
        """Whether the client does not know this yet; it will after this answer."""
        is_new = bool(answer.records) or answer.preferred_read_replica != NO_NODE
        if answer.log_start_offset != self.log_start_offset:
            self.log_start_offset = answer.log_start_offset
            is_new = True
        if answer.high_watermark != self.high_watermark:
            self.high_watermark = answer.high_watermark
            is_new = True
        if answer.error_code or answer.diverging_epoch is not no_divergence:
            self.high_watermark = NO_MARK  # The next answer without an error is news as well.
            is_new = True
        return is_new


_NO_DIVERGENCE = PartitionData().diverging_epoch


class FetchSession:
    """One session. `epoch`: of the next request. `names`: those that its topic ids had. `last`: its
    last request, while that waits. `owner`: the principal that it is of; to others it is not
    there."""

    __slots__ = (
        "created_ms",
        "epoch",
        "id",
        "is_old",
        "last",
        "names",
        "owner",
        "partition_count",
        "topics",
        "used_ms",
        "uses_ids",
    )

    def __init__(self, session_id: int, now_ms: int, *, uses_ids: bool, owner: str) -> None:
        self.id = session_id
        self.owner = owner
        self.uses_ids = uses_ids
        self.epoch = FIRST_EPOCH + 1
        self.created_ms = self.used_ms = now_ms
        # Whether a new session of its size may take its place.
        self.is_old = False
        self.topics: dict[TopicKey, dict[int, _Place]] = {}
        self.names: dict[TopicKey, str] = {}
        self.partition_count = 0
        self.last: Callable[[], Waiting | None] = _nothing

    def add(self, topics: Iterable[FetchTopic]) -> None:
        """Partitions that the client reads from now on, or reads elsewhere now."""
        for topic in topics:
            key = topic.topic_id if self.uses_ids else topic.topic
            places = self.topics.setdefault(key, {})
            before = len(places)
            for one in topic.partitions:
                place = places.get(one.partition)
                if place is None:
                    places[one.partition] = _Place(one)
                else:
                    place.requested = one
            self.partition_count += len(places) - before
            if not places:
                del self.topics[key]

    def forget(self, topics: Iterable[ForgottenTopic]) -> None:
        """Partitions that the client reads no more."""
        for topic in topics:
            key = topic.topic_id if self.uses_ids else topic.topic
            places = self.topics.get(key)
            if places is None:
                continue
            for index in topic.partitions:
                if places.pop(index, None) is not None:
                    self.partition_count -= 1
            if not places:
                del self.topics[key]
                self.names.pop(key, None)

    def requested(self) -> list[FetchTopic]:
        """Everything that the session reads, as a full request would name it."""
        return [
            FetchTopic(
                self.names.get(key, "") if isinstance(key, UUID) else key,
                key if isinstance(key, UUID) else NO_ID,
                [place.requested for place in places.values()],
            )
            for key, places in self.topics.items()
        ]

    def news(self, answers: Iterable[FetchableTopicResponse]) -> list[FetchableTopicResponse]:
        """What the client does not know yet. It counts as told."""
        found = []
        for answer in answers:
            places = self.topics.get(answer.topic_id if self.uses_ids else answer.topic)
            if places is None:
                continue
            told = [
                one
                for one in answer.partitions
                if (place := places.get(one.partition_index)) is not None
                and place.must_tell(one, no_divergence=_NO_DIVERGENCE)
            ]
            if told:
                found.append(FetchableTopicResponse(answer.topic, answer.topic_id, told))
        return found


class FetchSessions:
    """See the module. `count_max`: how many there may be."""

    def __init__(self, clock: Clock, rng: Rng, *, count_max: int) -> None:
        self._clock = clock
        self._rng = rng
        self._count_max = count_max
        self._sessions: dict[int, FetchSession] = {}
        """{id: session}, the one that was not used for longest first"""
        self._old: list[tuple[int, int]] = []
        """A heap of (partitions, id) of old sessions; entries that are not true any more stay until
        they come up."""
        self._partition_count = 0
        self.evicted_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """Partitions in all sessions."""
        return self._partition_count

    def find(self, session_id: int) -> FetchSession | None:
        """The session with this id."""
        return self._sessions.get(session_id)

    def open(
        self,
        answers: list[FetchableTopicResponse],
        requested: list[FetchTopic],
        *,
        uses_ids: bool,
        owner: str,
    ) -> int:
        """Open a session for a full request that is answered by this; its id, or NO_SESSION."""
        size = sum([len(topic.partitions) for topic in requested])
        if not 0 < size <= SESSION_PARTITIONS_MAX or not self._make_room(size):
            return NO_SESSION
        session = FetchSession(
            self._new_id(), self._clock.monotonic_ms(), uses_ids=uses_ids, owner=owner
        )
        session.add(requested)
        session.news(answers)
        self._sessions[session.id] = session
        self._partition_count += session.partition_count
        return session.id

    def change(
        self, session: FetchSession, added: list[FetchTopic], forgotten: list[ForgottenTopic]
    ) -> Error:
        """Begin the next request of a session; an error if it has become too large. A session that
        has become empty is closed."""
        waiting = session.last()
        if waiting is not None:
            waiting.end_wait(Error.INVALID_FETCH_SESSION_EPOCH)
        before = session.partition_count
        session.add(added)
        session.forget(forgotten)
        self._partition_count += session.partition_count - before
        is_too_large = session.partition_count > before and (
            session.partition_count > SESSION_PARTITIONS_MAX
            or self._partition_count > PARTITIONS_MAX
        )
        if is_too_large or not session.partition_count:
            self.close(session.id)
            return Error.FETCH_SESSION_ID_NOT_FOUND if is_too_large else Error.NONE
        session.epoch = next_epoch(session.epoch)
        self._touch(session, has_changed=session.partition_count != before)
        return Error.NONE

    def close(self, session_id: int) -> None:
        """Forget a session; it need not exist."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partition_count -= session.partition_count
            assert self._partition_count >= 0

    # ---- room ----------------------------------------------------------------------------------

    def _touch(self, session: FetchSession, *, has_changed: bool) -> None:
        now_ms = self._clock.monotonic_ms()
        session.used_ms = now_ms
        self._sessions[session.id] = self._sessions.pop(session.id)
        is_old = now_ms - session.created_ms > EVICTION_MS
        if is_old and (has_changed or not session.is_old):
            session.is_old = True
            heappush(self._old, (session.partition_count, session.id))
            if len(self._old) > 2 * len(self._sessions) + 16:
                self._old = sorted(filter(self._is_true, set(self._old)))

    def _make_room(self, size: int) -> bool:
        while (
            len(self._sessions) >= self._count_max or self._partition_count + size > PARTITIONS_MAX
        ):
            if not self._evict(size):
                return False
        return True

    def _evict(self, size: int) -> bool:
        """Close one session in favour of a new one of this size, if there is one to close."""
        first = next(iter(self._sessions.values()), None)
        if first is None:
            return False
        if self._clock.monotonic_ms() - first.used_ms > EVICTION_MS:
            victim = first.id
        else:
            while self._old and not self._is_true(self._old[0]):
                heappop(self._old)
            if not self._old or self._old[0][0] > size:
                return False
            victim = self._old[0][1]
        self.close(victim)
        self.evicted_count += 1
        return True

    def _is_true(self, entry: tuple[int, int]) -> bool:
        session = self._sessions.get(entry[1])
        return session is not None and session.partition_count == entry[0]

    def _new_id(self) -> int:
        while True:
            session_id = self._rng.getrandbits(31)
            if session_id != NO_SESSION and session_id not in self._sessions:
                return session_id


def next_epoch(epoch: int) -> int:
    """The epoch of the request after this one's; it wraps to 1, as 0 opens a session."""
    return 1 if epoch >= EPOCH_MAX else epoch + 1


def refusal(session: FetchSession | None, *, epoch: int, uses_ids: bool) -> Error:
    """Why a request of this epoch cannot continue a session; NONE if it can."""
    if session is None:
        return Error.FETCH_SESSION_ID_NOT_FOUND
    if session.epoch != epoch:
        return Error.INVALID_FETCH_SESSION_EPOCH
    if session.uses_ids != uses_ids:
        return Error.FETCH_SESSION_TOPIC_ID_ERROR
    return Error.NONE
