"""One partition of `__consumer_offsets` that this broker leads: its groups, loaded and driven.

Why:    the coordinator decides; this performs its effects (answers, records, timers) and feeds the
        results back as events.
How:    LOADING --the log is read up to its end at the election--> RUNNING --leadership is lost-->
        CLOSED. Only the leader's coordinator writes the partition, so what was read is complete.
        An effect may cause an event at once. Events queue, so a step never runs inside another.
Owns:   the coordinator of the partition, its timers, the requests that wait for an answer.
Source: design section 3 ("drivers perform effects and feed results back as events")."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from uuid import UUID

from strandline.base.clock import Clock
from strandline.base.errors import ApiError, StorageError
from strandline.broker.coordinators.timer_table import Name, TimerTable
from strandline.coordinator.answers import Answer
from strandline.coordinator.coordinator import Coordinator
from strandline.coordinator.effects import (
    CancelTimer,
    Effect,
    LogRecord,
    Persist,
    Reply,
    SetTimer,
)
from strandline.coordinator.replay import OffsetsState
from strandline.coordinator.requests import Event, Persisted, Request, TimerFired
from strandline.coordinator.settings import GroupSettings
from strandline.model.ids import Offset
from strandline.protocol.errors import Error
from strandline.records.batch import HEADER_BYTES, iterate_headers
from strandline.records.record import Record, build_batch, decode_records
from strandline.replication.leader.appender import QUORUM_ACK
from strandline.replication.leader.requests import AppendResult
from strandline.replication.replica.replica import Replica

LOAD_BYTES = 256 * 1024
"""How much of the log one pass of the loop reads."""
RECORD_OVERHEAD_BYTES = 32
"""A bound on what a record takes in a batch beside key and value."""

_log = logging.getLogger("strandline.coordinator")


class CoordinatorShard:
    """See the module."""

    def __init__(
        self,
        replica: Replica,
        *,
        clock: Clock,
        rng: random.Random,
        settings: GroupSettings,
        batch_bytes_max: Callable[[], int],
    ) -> None:
        """`batch_bytes_max`: the topic's present `max.message.bytes`."""
        self.replica = replica
        self.coordinator = Coordinator(rng=rng, settings=settings)
        self.is_loaded = False
        self.is_closed = False
        self._clock = clock
        self._batch_bytes_max = batch_bytes_max
        self._timers = TimerTable(clock, self._on_timer)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._events: deque[Event] = deque()
        self._is_stepping = False
        self._loading: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start loading."""
        if self.is_closed:
            return
        self._loading = asyncio.get_running_loop().create_task(self._load())

    def close(self) -> None:
        """Another broker takes these groups over: answer all waiting requests, forget
        everything."""
        if self.is_closed:
            return
        self.is_closed = True
        self._events.clear()
        self._timers.clear()
        self._perform(self.coordinator.close(Error.NOT_COORDINATOR))
        if self._loading is not None:
            self._loading.cancel()

    @property
    def error(self) -> Error:
        """Why this shard cannot answer now, or NONE."""
        if self.is_closed or not self.replica.can_serve_reads:
            return Error.NOT_COORDINATOR
        return Error.NONE if self.is_loaded else Error.COORDINATOR_LOAD_IN_PROGRESS

    async def ask(self, request: Request) -> Answer:
        """The answer to a request; the caller has looked at `error`."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request.token] = future
        self.feed(request)
        return await future

    def feed(self, event: Event) -> None:
        """Step the coordinator with an event, and with all events that its effects cause."""
        if self.is_closed:
            return
        self._events.append(event)
        self._drain()

    def expire(self) -> None:
        """Remove expired offsets."""
        if self.is_loaded and not self.is_closed:
            self._perform(self.coordinator.expire(now_ms=self._clock.wall_ms()))

    def on_topics_deleted(self, topics: Mapping[str, UUID]) -> None:
        """Remove offsets of deleted topics. Offsets that are not loaded yet are checked by topic
        id."""
        if self.is_loaded and not self.is_closed:
            self._perform(self.coordinator.on_topics_deleted(topics, now_ms=self._clock.wall_ms()))

    # ---- stepping --------------------------------------------------------------------------------

    def _drain(self) -> None:
        if self._is_stepping:
            return
        self._is_stepping = True
        try:
            while self._events:
                event = self._events.popleft()
                effects = self.coordinator.step(event, now_ms=self._clock.wall_ms())
                self._do_all(effects)
        finally:
            self._is_stepping = False

    def _perform(self, effects: Sequence[Effect]) -> None:
        """Perform effects that no queued event caused, then the events that follow."""
        was_stepping, self._is_stepping = self._is_stepping, True
        try:
            self._do_all(effects)
        finally:
            self._is_stepping = was_stepping
        self._drain()

    def _do_all(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply(token=token, answer=answer):
                    self._answer(token, answer)
                case Persist():
                    self._persist(effect)
                case SetTimer(group=group, name=name, delay_ms=delay_ms):
                    self._timers.set((group, name), delay_ms)
                case CancelTimer(group=group, name=name):
                    self._timers.cancel((group, name))

    def _answer(self, token: int, answer: Answer) -> None:
        future = self._waiting.pop(token)
        if not future.done():
            future.set_result(answer)

    def _on_timer(self, name: Name) -> None:
        self.feed(TimerFired(*name))

    def _persist(self, effect: Persist) -> None:
        """Append the records as one batch, which may be no larger than the topic allows: its
        followers and its readers count on that. A removal may take several batches."""
        batches = [self._batch_of(effect.records)]
        bytes_max = self._batch_bytes_max()
        if len(batches[0]) > bytes_max:
            if any(value is not None for _, value in effect.records):
                _log.warning(
                    "%s: refused %d bytes of group %.200r: max.message.bytes is %d",
                    self.replica.name,
                    len(batches[0]),
                    effect.group,
                    bytes_max,
                )
                self.feed(Persisted(effect.group, effect.ticket, Error.MESSAGE_TOO_LARGE))
                return
            batches = [self._batch_of(some) for some in _split(effect.records, bytes_max)]
        results: list[AppendResult] = []
        done = partial(self._on_persisted, effect, results, len(batches))
        for batch in batches:
            headers = list(iterate_headers(batch))
            self.replica.replicate([batch], headers, acks=QUORUM_ACK, done=done)

    def _batch_of(self, records: Sequence[LogRecord]) -> bytearray:
        now_ms = self._clock.wall_ms()
        return build_batch(
            [
                Record(offset_delta=delta, timestamp=now_ms, key=key, value=value)
                for delta, (key, value) in enumerate(records)
            ]
        )

    def _on_persisted(
        self, effect: Persist, results: list[AppendResult], count: int, result: AppendResult
    ) -> None:
        """One of `count` batches has its result; the first error counts for all."""
        results.append(result)
        if len(results) == count:
            failed = next((one for one in results if one.error_code != Error.NONE), result)
            self.feed(Persisted(effect.group, effect.ticket, _error_of(failed)))

    # ---- loading ---------------------------------------------------------------------------------

    async def _load(self) -> None:
        """Read the log up to where it ended when this broker was elected."""
        state = OffsetsState()
        position = self.replica.log_start_offset
        end = self.replica.log_end_offset
        started_ms = self._clock.monotonic_ms()
        try:
            while position < end:
                position = await self._load_some(state, position)
        except (ApiError, OSError, StorageError) as error:
            _log.error("%s: cannot load its groups: %s", self.replica.name, error)
            return
        self._perform(self.coordinator.load(state, now_ms=self._clock.wall_ms()))
        self.is_loaded = True
        _log.info(
            "%s: loaded %d groups up to offset %d in %d ms",
            self.replica.name,
            len(state.groups),
            position,
            self._clock.monotonic_ms() - started_ms,
        )
        if state.unreadable_count:
            _log.warning(
                "%s: skipped %d records that no coordinator wrote",
                self.replica.name,
                state.unreadable_count,
            )

    async def _load_some(self, state: OffsetsState, position: Offset) -> Offset:
        """Replay the next part of the log; the offset after it."""
        data = self.replica.read_verified(position, LOAD_BYTES)
        if not data:
            await self._wait_visible()
            return position
        after = position
        for header in iterate_headers(data):
            if not header.is_control:
                _replay_batch(state, data, header.position)
            after = Offset(header.next_offset)
        await asyncio.sleep(0)  # Elections and heartbeats continue during a long load.
        return after

    async def _wait_visible(self) -> None:
        """Wait until more of the log may be read."""
        changed = asyncio.Event()
        watch = self.replica.watch(changed.set)
        try:
            await changed.wait()
        finally:
            watch.cancel()


def _split(records: Sequence[LogRecord], bytes_max: int) -> Iterator[list[LogRecord]]:
    """The same records, in groups whose batches take at most `bytes_max`, but for one record."""
    some: list[LogRecord] = []
    size = HEADER_BYTES
    for key, value in records:
        bytes_more = len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES
        if some and size + bytes_more > bytes_max:
            yield some
            some, size = [], HEADER_BYTES
        some.append((key, value))
        size += bytes_more
    yield some


def _replay_batch(state: OffsetsState, data: bytes, position: int) -> None:
    try:
        for record in decode_records(data, position):
            state.replay(record.key, record.value)
    except ApiError:
        state.unreadable_count += 1  # Its CRC is valid, so another writer wrote it.


def _error_of(result: AppendResult) -> Error:
    return (
        Error.NONE
        if result.error_code == Error.NONE
        else _KNOWN.get(result.error_code, Error.UNKNOWN_SERVER_ERROR)
    )


_KNOWN: dict[int, Error] = {int(error): error for error in Error}
