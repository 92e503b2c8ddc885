"""A leading replica's side: its appends, the tail in memory, and one stream to each follower.

Why:    all of this exists only while the replica leads.
How:    an append goes to the log (page cache), joins the tail and is proposed to the core. The core
        names followers that may be sent entries; `pump` fills their windows from the tail, while
        the leader's own flush runs. A follower that needs older entries is behind: it is served
        from the log, throttled unless the write quorum or the transfer target waits for it. All of
        it, peer catch-up (`fetch_sources`) and relays included, shares the core's one `last_sent`:
        nothing is sent twice or out of order.
Owns:   the tail and the streams; one per leading replica.
Source: Redpanda RFC 20220119 (one dispatch for all acks levels); design section 5."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from strandline.base.disk import Buffer
from strandline.base.errors import StorageError
from strandline.base.network import Lane
from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.raft.events import AppendSent, Event, MarksMaybeLost, PeerTimedOut, Propose
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import (
    NO_HINT,
    AppendResponse,
    LeaderContact,
    PeerCatchupRequest,
    ResetRequest,
)
from strandline.records.batch import BatchHeader, read_header
from strandline.records.marker import build_deletion_marker
from strandline.replication.catchup.fetch_sources import LEADER, FetchSources, switch_source
from strandline.replication.leader.append_times import AppendTimes
from strandline.replication.leader.follower_stream import BACK_OFF_MS, ORDER_MS_MAX, FollowerStream
from strandline.replication.leader.requests import Appended, Request
from strandline.replication.leader.tail import BEYOND, NOTHING, AppendChunk, Chunk, Tail
from strandline.replication.leader.urgency import Urgency
from strandline.replication.relay.relays import Relays
from strandline.replication.replica import tombstones
from strandline.replication.replica.entries import cut_before
from strandline.replication.replica.flushes import Flushes
from strandline.replication.replica.state import ReplicaState
from strandline.replication.shared import Shared
from strandline.replication.wire import (
    AppendHead,
    Kind,
    PeerCatchupOrder,
    encode_append_head,
    encode_control,
)

if TYPE_CHECKING:
    from strandline.raft.leader.progress import AppendPlan
    from strandline.storage.log import reads

RTT_FACTOR = 4

_log = logging.getLogger("strandline.replication")


class LeadingReplica(Protocol):
    """What a leader state asks of its replica."""

    def step(self, event: Event) -> None:
        """Step the core and perform its effects."""

    def on_unreadable(self, error: OSError | StorageError) -> None:
        """Something in the log cannot be read."""

    def report_marks_soon(self) -> None:
        """Send the followers the marks in a little while, unless an append brings them before."""


class Leadership:
    """See the module. `on_room`: the followers have taken enough for more to be appended.
    `on_sent`: an append has left, and waits for its acknowledgement."""

    def __init__(
        self,
        replica: ReplicaState,
        shared: Shared,
        owner: LeadingReplica,
        flushes: Flushes,
        *,
        on_room: Callable[[], None],
        on_sent: Callable[[], None],
    ) -> None:
        self._replica = replica
        self._owner = owner
        self._flushes = flushes
        self._on_room = on_room
        self._on_sent = on_sent
        self._clock = shared.clock
        self._settings = shared.settings
        self._network = shared.network
        self._outbox = shared.outbox
        self._liveness = shared.liveness
        self._memory = shared.memory
        self._queues = shared.queues
        self._throttle = shared.throttle
        self._relay_watch = shared.relay_watch
        self._tail = Tail(self._settings.tail_bytes_max, shared.memory)
        self._streams: dict[BrokerId, FollowerStream] = {}
        self.relays = Relays(replica, shared, self._streams, self.pump, self.ask)
        self.urgency = Urgency(replica, shared, self._streams, self._tail)
        self._fetch_sources = FetchSources(
            replica, shared, self._streams, self.pump, self.relays, self.urgency
        )
        self._is_closed = False
        self.append_times = AppendTimes()

    @property
    def has_room(self) -> bool:
        """Whether more may be appended before the followers take some of it."""
        return self._tail.has_room

    def close(self) -> None:
        """Leadership ended: memory units return."""
        self._is_closed = True
        self._fetch_sources.close()
        self._relay_watch.discard(self.relays)
        self._tail.clear()

    # ---- appending -------------------------------------------------------------------------------

    def append(self, requests: Sequence[Request], *, relaxed: bool) -> Appended:
        """Stamp, write and propose requests in their order. Raises OSError, and then nothing was
        appended."""
        replica = self._replica
        log = replica.log
        assert not self._is_closed, "a leader state appends in its own epoch"
        epoch = replica.epoch
        first_index = Index(log.last_index + 1)
        offset = log.end_offset
        buffers: list[Buffer] = []
        headers: list[BatchHeader] = []
        base_offsets: list[Offset] = []
        for request in requests:
            base_offsets.append(offset)
            own = request.buffers
            for position, header in enumerate(request.headers):
                buffer = own[position] if len(own) > 1 else own[0]
                header.stamp(buffer, base_offset=offset, epoch=epoch)
                offset = Offset(offset + header.last_offset_delta + 1)
            buffers += own
            headers += request.headers
        log.append(buffers, headers)
        self._take_in(first_index, buffers, epoch=epoch, relaxed=relaxed)
        self._flushes.request(may_wait=relaxed)
        self._owner.step(Propose(log.last_index - first_index + 1, relaxed))
        return Appended(log.last_index, base_offsets)

    def append_marker(
        self, marker: bytes, *, epoch: Epoch, configuration: Configuration | None
    ) -> None:
        """Write a marker. Raises OSError."""
        log = self._replica.log
        first_index = Index(log.last_index + 1)
        header = read_header(marker)
        assert header is not None
        log.append([marker], [header])
        self._memory.take(len(marker))
        self._take_in(first_index, [marker], epoch=epoch, configuration=configuration)
        self._flushes.request(may_wait=False)

    def append_deletion(self, before: Offset) -> Index:
        """Write and propose the deletion of the records below `before`; its index. Raises
        OSError."""
        replica = self._replica
        log = replica.log
        now = self._clock.wall_ms()
        marker = build_deletion_marker(log.end_offset, replica.epoch, before, now)
        self.append_marker(marker, epoch=replica.epoch, configuration=None)
        index = log.last_index
        self._owner.step(Propose(1, unflushed_visible=False))
        return index

    @property
    def held_index(self) -> Index:
        """Every member has flushed the log up to here, as far as they have told; or -1."""
        replica = self._replica
        held = replica.log.flushed_index
        for member in replica.configuration.members:
            if member != replica.self_id:
                progress = replica.raft.progress.get(member)
                held = min(held, Index(-1) if progress is None else progress.match_flushed)
        return held

    def _take_in(
        self,
        first_index: Index,
        buffers: Sequence[Buffer],
        *,
        epoch: Epoch,
        relaxed: bool = False,
        configuration: Configuration | None = None,
    ) -> None:
        replica = self._replica
        size = sum(map(len, buffers))
        if not replica.raft.progress:  # Nobody follows: nothing is handed on, or kept for that.
            self._tail.clear()
            self._memory.give_back(size)
            return
        now = self._clock.monotonic_ms()
        if self.append_times.is_due(now):
            self.append_times.note(first_index, now, self.held_index)
        chunk = Chunk(
            first_index=first_index,
            last_index=replica.log.last_index,
            epoch=epoch,
            buffers=buffers,
            size_bytes=size,
            configuration=configuration,
            relaxed=relaxed,
        )
        for stream in self._streams.values():
            if stream.is_recovering:
                stream.allowance_bytes += chunk.size_bytes
        self._tail.add(chunk)
        self._release()

    def _release(self) -> None:
        """Return the memory units of entries that a write quorum's sockets, and this broker, have
        taken (RFC: "after the request is handed off to the socket")."""
        tail = self._tail
        if tail.waiting_index == BEYOND:
            return
        handed = {peer: stream.handed_index for peer, stream in self._streams.items()}
        handed[self._replica.self_id] = BEYOND
        had_room = tail.has_room
        tail.hand_through(self._replica.configuration.quorum_index(handed))
        if tail.has_room and not had_room:
            self._on_room()

    def _on_handed(
        self, peer: BrokerId, served: Sequence[FollowerStream], index: Index, size: int
    ) -> None:
        """The last byte of an append to `peer` is in the socket, or the connection is lost."""
        self._queues.on_handed(peer, size)
        has_news = False
        for stream in served:
            stream.queued_count -= 1
            assert stream.queued_count >= 0
            if index > stream.handed_index:
                stream.handed_index = index
                has_news = True
        if has_news and not self._is_closed:
            self._release()

    # ---- sending ---------------------------------------------------------------------------------

    def pump(self, peer: BrokerId, *, tells: bool = False) -> None:
        """Send to `peer` what it may be sent, as far as its window and the connection allow.

        Marks travel with entries; marks alone are sent only when it `tells`, and soon otherwise."""
        replica = self._replica
        stream = self._streams.get(peer)
        if stream is None:
            stream = self._streams[peer] = FollowerStream(self._settings)
        has_sent = False
        while not self._is_closed and self._network.is_connected(peer, Lane.BULK):
            progress = replica.raft.progress.get(peer)
            if progress is None:
                break
            if not stream.has_room and not progress.is_probing:
                stream.is_blocked = True
                break
            plan = replica.raft.plan_append(peer)
            if plan is None:
                break
            if isinstance(plan, ResetRequest):
                self._outbox.send(peer, replica.group, plan)
                replica.raft.step(AppendSent(peer, Index(plan.start_index - 1)))
                stream.on_sent(Index(plan.start_index - 1), 0, self._clock.monotonic_ms())
                self._on_sent()
                break
            has_entries = plan.first_index <= plan.last_index
            # Only an append tells a replica that lost its disk when it may take part again.
            is_contact = not has_entries and not plan.is_probe and plan.rejoin_at < 0
            if is_contact:
                if not tells:
                    self._owner.report_marks_soon()
                    break
                contact = LeaderContact(plan.epoch, plan.commit, plan.visible)
                self._outbox.send(peer, replica.group, contact)
                replica.raft.step(AppendSent(peer, plan.prev_index))
            elif not has_entries and not plan.is_probe and stream.has_peer_source:
                stream.is_blocked = True  # It would overtake what others send.
                break
            elif has_entries and not self._queues.has_room(peer):
                self._queues.wait(peer, replica.group, partial(self.pump, peer))
                break
            elif self._send(peer, stream, plan):
                has_sent = True
            else:
                break
        if has_sent:
            self._forget_sent()

    def resume(self, peer: BrokerId) -> None:
        """Go on where the window of `peer` had no room for more, or others wait for what it has."""
        stream = self._streams.get(peer)
        if stream is not None and stream.is_blocked:
            stream.is_blocked = False
            self.pump(peer)
        self._fetch_sources.wake()

    def pump_all(self) -> None:
        """Send to every follower what it may be sent, marks too."""
        for peer in list(self._replica.raft.progress):
            if peer != self._replica.self_id:
                self.pump(peer, tells=True)

    def _send(self, peer: BrokerId, stream: FollowerStream, plan: "AppendPlan") -> bool:
        if plan.first_index > plan.last_index:
            return self._dispatch(peer, stream, plan, NOTHING)
        chunks = self._tail.take(plan.first_index, self._settings.append_bytes_max)
        fetch_source: BrokerId | None = LEADER
        if self._fetch_sources.may_use_peers(stream, plan.first_index, is_in_memory=bool(chunks)):
            if plan.is_probe and self._fetch_sources.has_neighbours(peer):
                # Its fetch source is chosen once it has answered the probe.
                return self._dispatch(peer, stream, plan, NOTHING)
            fetch_source = self._fetch_sources.choose(peer, plan.first_index)
        if fetch_source is None:
            self._fetch_sources.wait(peer)
            return False
        before = stream.fetch_source
        if not switch_source(stream, fetch_source):
            return False
        if not plan.is_probe:
            is_new = bool(chunks) and fetch_source == LEADER
            if (is_new and self.relays.serves(peer)) or not self.relays.leave(peer):
                return False
        if fetch_source != before:
            whom = "this one" if fetch_source == LEADER else f"broker {fetch_source}"
            name = self._replica.name
            _log.info("%s: broker %d gets what it lacks from %s", name, peer, whom)
        if chunks:
            if fetch_source != LEADER:
                end = self._replica.raft.peer_fetch_end(fetch_source)
                chunks = [chunk for chunk in chunks if chunk.last_index <= end]
            if not chunks:
                self._fetch_sources.wait(peer)
                return False
            stream.on_served_from_memory()
            append_chunk = AppendChunk.of(chunks)
            is_throttled = fetch_source != LEADER and not self.urgency.is_urgent(peer)
        else:
            found = self._read(peer, stream, plan.first_index, is_by_peer=fetch_source != LEADER)
            if found is None:
                return False
            append_chunk = AppendChunk.read(found[0])
            is_throttled = found[1]
        if fetch_source == LEADER:
            return self._dispatch(peer, stream, plan, append_chunk)
        return self._order(peer, stream, plan, append_chunk, is_throttled=is_throttled)

    def _dispatch(
        self, peer: BrokerId, stream: FollowerStream, plan: "AppendPlan", append_chunk: AppendChunk
    ) -> bool:
        """Send an append from here, and through `peer` to those who wait for the same."""
        replica = self._replica
        parts = append_chunk.parts
        last_index = append_chunk.last_index if parts else plan.prev_index
        # Who is behind says how far it is once that is flushed, and gets more only then.
        may_wait = plan.commit < last_index and append_chunk.is_relaxed
        request = plan.request(
            append_chunk.runs, append_chunk.configurations, report_written=may_wait
        )
        outlived = Index(-1)
        if replica.log.config.has_been_compacted:
            outlived = tombstones.reported_outlived(replica, self.held_index)
        may_carry = append_chunk.is_in_memory and not plan.is_probe
        to = tuple(self.relays.carried_by(peer)) if may_carry else ()
        head = encode_append_head(AppendHead(replica.group, request, may_wait, outlived, to))
        size = len(head) + sum(map(len, parts))
        # A question behind the log's end hands over nothing.
        handed_index = last_index if parts else Index(-1)
        served = (stream, *(self._streams[one] for one in to))
        on_handed = partial(self._on_handed, peer, served, handed_index, size)
        if not self._network.send(peer, Lane.BULK, (head, *parts), on_handed):
            return False
        self._queues.add(peer, size)
        for one, its_stream in zip((peer, *to), served, strict=True):
            its_stream.queued_count += 1
            if one != peer:
                self.relays.on_sent(one, peer)
            self._mark_sent(one, its_stream, last_index, size)
        return True

    def _order(
        self,
        peer: BrokerId,
        stream: FollowerStream,
        plan: "AppendPlan",
        append_chunk: AppendChunk,
        *,
        is_throttled: bool,
    ) -> bool:
        """Have another replica send it from its own log."""
        replica = self._replica
        if append_chunk.last_index > replica.raft.peer_fetch_end(stream.fetch_source):
            self._fetch_sources.wait(peer)
            return False
        request = plan.request(append_chunk.runs, append_chunk.configurations)
        size = sum(map(len, append_chunk.parts))
        may_differ = replica.log.config.has_been_compacted
        order = PeerCatchupOrder(
            replica.group, PeerCatchupRequest(peer, request, size, is_throttled, may_differ)
        )
        message = encode_control(Kind.PEER_CATCHUP_ORDER, order)
        if not self._network.send(stream.fetch_source, Lane.CONTROL, [message]):
            self._fetch_sources.wait(peer)
            return False
        self._mark_sent(peer, stream, append_chunk.last_index, size)
        return True

    def _mark_sent(
        self, peer: BrokerId, stream: FollowerStream, last_index: Index, size: int
    ) -> None:
        replica = self._replica
        replica.raft.step(AppendSent(peer, last_index))
        stream.on_sent(last_index, size, self._clock.monotonic_ms())
        self._on_sent()

    def _read(
        self, peer: BrokerId, stream: FollowerStream, first_index: Index, *, is_by_peer: bool
    ) -> "tuple[reads.Entries, bool] | None":
        """Entries that have left the tail, for a follower that is behind, and whether they are
        throttled; None: not now. `is_by_peer`: only their description and size are needed."""
        replica = self._replica
        throttle = self._throttle
        is_copy = self.urgency.is_copied_to(peer)
        can_spare = not self.urgency.is_urgent(peer)
        if is_copy and throttle.is_halted(peer, is_by_peer=is_by_peer):
            stream.allowance_bytes = 0
        is_throttled = can_spare and stream.allowance_bytes <= 0
        reader = replica.group, peer
        if is_throttled and not throttle.admits(
            reader, partial(self.pump, peer), is_copy=is_copy, is_by_peer=is_by_peer
        ):
            return None
        bytes_max = min(self._settings.append_bytes_max, stream.window.bytes_max)
        if is_copy:
            limit = throttle.append_bytes_max(peer, is_by_peer=is_by_peer)
            bytes_max = min(bytes_max, limit or bytes_max)
        end = self._tail.boundary_after(first_index)
        if is_by_peer:
            end = min(end, Index(replica.raft.peer_fetch_end(stream.fetch_source) + 1))
        try:
            # Up to where the tail begins, or a chunk of it: from there on the tail serves.
            entries = cut_before(replica.log.read_entries(first_index, bytes_max), end)
        except (OSError, StorageError) as error:
            self._owner.on_unreadable(error)
            return None
        stream.is_recovering = True
        if is_throttled:
            throttle.spend(peer, len(entries.data), is_copy=is_copy, is_by_peer=is_by_peer)
        elif can_spare:
            stream.allowance_bytes -= len(entries.data)
        return entries, is_throttled

    def _forget_sent(self) -> None:
        """Drop chunks that every connected follower has been sent."""
        replica = self._replica
        sent = [
            progress.next_index - 1
            for peer, progress in replica.raft.progress.items()
            if peer != replica.self_id and self._network.is_connected(peer, Lane.BULK)
        ]
        self._tail.drop_through(Index(min(sent, default=replica.log.last_index)))

    # ---- hearing ---------------------------------------------------------------------------------

    def on_response(self, peer: BrokerId, response: AppendResponse) -> None:
        """Keep the window; the core decides the rest."""
        stream = self._streams.get(peer)
        if stream is None or response.epoch != self._replica.epoch or response.hint == NO_HINT:
            return
        if response.accepted:
            match = max(response.written, response.flushed)
            stream.on_acknowledged(match, self._clock.monotonic_ms())

    def on_refused(self, peer: BrokerId) -> None:
        """What is under way to `peer` will not be acknowledged: it lacks what comes before it."""
        stream = self._streams.get(peer)
        if stream is not None:
            self._back_off_source(peer, stream)
            self.relays.back_off(peer)
            self.relays.on_upset(peer)
            stream.reset()

    def on_reset(self, peer: BrokerId) -> None:
        """What was in flight to `peer` is lost, and what it was to send to others."""
        stream = self._streams.get(peer)
        if stream is not None:
            stream.reset()
        for other in self._fetch_sources.on_gone(peer):
            self.ask(other)
        self.relays.on_gone(peer)

    def on_marks_lost(self, peer: BrokerId) -> None:
        """Marks sent to `peer` may be lost, and nothing else. Probe it for lost answers, too, if
        the probe cannot overtake what others send it."""
        stream = self._streams.get(peer)
        if stream is not None and stream.is_sent_by_others:
            self._owner.step(MarksMaybeLost(peer))
        else:
            self.ask(peer)

    def on_returned(self, peer: BrokerId) -> None:
        """`peer` was silent, and is heard again."""
        stream = self._streams.get(peer)
        if stream is not None and stream.inflight:
            stream.on_returned(self._clock.monotonic_ms())
            self.ask(peer)

    def ask(self, peer: BrokerId) -> None:
        """Probe `peer`: it is silent, or its answers were lost. Appends in flight stay so until it
        answers."""
        stream = self._streams.get(peer)
        if stream is not None:
            stream.on_asked(self._clock.monotonic_ms())
            self.relays.on_upset(peer)
        self._owner.step(PeerTimedOut(peer))

    def on_stalled(self, peer: BrokerId) -> None:
        """`peer` acknowledges nothing: ask it, and send the rest from here, if others did so."""
        self._back_off_source(peer, self._streams[peer])
        self.ask(peer)

    def _back_off_source(self, peer: BrokerId, stream: FollowerStream) -> None:
        """Where others were to send something: it has not come, and may never come from there."""
        if stream.has_peer_source:
            replica = self._replica
            stream.backs_off_until_ms = self._clock.monotonic_ms() + BACK_OFF_MS
            text = "%s: broker %d does not get what it lacks from broker %d"
            _log.info(text, replica.name, peer, stream.fetch_source)

    def stalled_peers(self, now_ms: int) -> list[BrokerId]:
        """Followers that acknowledge nothing of what is awaited, and all of it has left here."""
        stalled: list[BrokerId] = []
        for peer, stream in self._streams.items():
            if self._is_awaited(peer) and not stream.queued_count:
                limit = RTT_FACTOR * int(self._liveness.rtt_ms(peer))
                limit += self._settings.resend_timeout_ms
                limit += ORDER_MS_MAX if stream.has_peer_source else 0
                if now_ms - stream.progress_ms >= stream.patience_ms(limit):
                    stalled.append(peer)
        return stalled

    @property
    def has_inflight(self) -> bool:
        """Whether any append awaits its acknowledgement, or the word that one may rejoin does."""
        return any(map(self._is_awaited, self._streams))

    def _is_awaited(self, peer: BrokerId) -> bool:
        progress = self._replica.raft.progress.get(peer)
        return bool(self._streams[peer].inflight or (progress and progress.rejoin_at >= 0))

    def is_backing_off(self, peer: BrokerId) -> bool:
        """Whether only the leader serves `peer` for now: an append by another way has not come."""
        stream = self._streams.get(peer)
        now = self._clock.monotonic_ms()
        if stream is not None and now < stream.backs_off_until_ms:
            return True
        return self.relays.is_going_round(peer, now)

    def lacks_ms(self, peer: BrokerId) -> int:
        """For how long a member lacks an entry of this leader, by what it has acknowledged in this
        epoch; 0: it lacks nothing."""
        replica = self._replica
        progress = replica.raft.progress.get(peer)
        flushed = Index(-1) if progress is None else progress.match_flushed
        if flushed >= replica.log.last_index:
            return 0
        return self.age_ms(Index(flushed + 1))

    def age_ms(self, index: Index) -> int:
        """For how long the entry at `index` has been here: no longer than this replica leads."""
        replica = self._replica
        since_ms = max(self.append_times.of(index) or 0, replica.leading_since_ms)
        return self._clock.monotonic_ms() - since_ms

    def is_in_step(self, peer: BrokerId) -> bool:
        """Whether `peer` has everything committed, or keeps acknowledging what it is sent, and
        lacks nothing for long: no commit that needs it is ahead of it."""
        progress = self._replica.raft.progress.get(peer)
        if progress is None or self.lacks_ms(peer) >= self._replica.lag_limit_ms:
            return False
        if progress.match_flushed >= self._replica.raft.commit:
            return True
        stream = self._streams.get(peer)
        now = self._clock.monotonic_ms()
        limit = self._settings.resend_timeout_ms
        if stream is None or stream.is_recovering:
            return False
        return stream.has_room and now - stream.progress_ms < limit
