"""Sends each follower what it may be sent next: from memory, from the log, or through a peer.

Why:    a follower that lags must slow neither the leader nor the followers that keep up.
How:    the core names a follower, and `pump` fills its window:
        - New entries come from the tail, the same buffers that went to the log. They go to the
          follower directly, or through its relay (`relays`).
        - Entries that have left the tail come from the log. They are throttled, unless the write
          quorum or the transfer target waits for them (`urgency`).
        - A follower in another region may get them from a replica near it (`fetch_sources`).

        All three share the core's one `last_sent`, so nothing is sent twice or out of order.
Owns:   what each follower's stream is sent; one per leading replica.
Source: Redpanda RFC 20220119 (one dispatch for all acks levels); design section 5."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from strandline.base.errors import StorageError
from strandline.base.network import BULK, CONTROL
from strandline.model.ids import NO_BROKER, BrokerId, Index
from strandline.raft.events import Event, PeerTimedOut
from strandline.raft.messages import LeaderContact, PeerCatchupRequest, ResetRequest
from strandline.replication.catchup.fetch_sources import LEADER, FetchSources, switch_source
from strandline.replication.leader.follower_stream import FollowerStream
from strandline.replication.leader.tail import NOTHING, AppendChunk, Chunk, Tail
from strandline.replication.leader.urgency import Urgency
from strandline.replication.relay.relays import Relays
from strandline.replication.replica import tombstones
from strandline.replication.replica.entries import cut_before
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

SHARED_BYTES_MAX = 16 * 1024
"""A larger chunk is not kept to be sent to the next follower: its bytes would count nowhere."""

_log = logging.getLogger("strandline.replication")


class LeadingReplica(Protocol):
    """What the components of a leader ask of their replica."""

    def step(self, event: Event) -> None:
        """Step the core and perform its effects."""

    def on_unreadable(self, error: OSError | StorageError) -> None:
        """Something in the log cannot be read."""

    def report_marks_soon(self) -> None:
        """Send the followers the marks in a little while, unless an append brings them before."""


class AppendSender:
    """See the module. `on_sent`: an append has left, and waits for its acknowledgement.
    `on_handed`: the socket of a follower has taken more of the tail."""

    def __init__(
        self,
        replica: ReplicaState,
        shared: Shared,
        owner: LeadingReplica,
        streams: dict[BrokerId, FollowerStream],
        tail: Tail,
        *,
        on_sent: Callable[[], None],
        on_handed: Callable[[], None],
    ) -> None:
        self._replica = replica
        self._owner = owner
        self._clock = shared.clock
        self._settings = shared.settings
        self._network = shared.network
        self._outbox = shared.outbox
        self._queues = shared.queues
        self._throttle = shared.throttle
        self._relay_watch = shared.relay_watch
        self._streams = streams
        self._tail = tail
        self._tell_sent = on_sent
        self._tell_handed = on_handed
        self._is_closed = False
        # The chunk that was sent last by itself, and as an append.
        self._last_chunk: Chunk | None = None
        self._last_append_chunk: AppendChunk | None = None
        # The plan by which it was sent, and the head that says so.
        self._last_plan: AppendPlan | None = None
        self._last_head = b""
        self.relays = Relays(replica, shared, streams, self.pump, self.ask)
        self.urgency = Urgency(replica, shared, streams, tail)
        self.fetch_sources = FetchSources(
            replica, shared, streams, self.pump, self.relays, self.urgency
        )

    def close(self) -> None:
        """Send nothing from now on."""
        self._is_closed = True
        self.fetch_sources.close()
        self._relay_watch.discard(self.relays)

    def pump(self, peer: BrokerId, *, tells: bool = False) -> None:
        """Send to `peer` what it may be sent, as far as its window and the connection allow.

        Marks travel with entries; marks alone are sent only when it `tells`, and soon otherwise."""
        replica = self._replica
        stream = self._streams.get(peer)
        if stream is None:
            stream = self._streams[peer] = FollowerStream(self._settings)
        if self._is_closed or not self._network.is_connected(peer, BULK):
            return
        raft = replica.raft
        has_sent = False
        while True:
            progress = raft.state.progress.get(peer)
            if progress is None:
                break
            if not stream.has_room and not progress.is_probing:
                stream.is_blocked = True
                break
            plan = raft.plan_append(peer)
            if plan is None:
                break
            if isinstance(plan, ResetRequest):
                self._outbox.send(peer, replica.group, plan)
                raft.note_sent(peer, Index(plan.start_index - 1))
                stream.on_sent(Index(plan.start_index - 1), 0, self._clock.monotonic_ms())
                self._tell_sent()
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
                raft.note_sent(peer, plan.prev_index)
            elif not has_entries and not plan.is_probe and stream.has_peer_source:
                stream.is_blocked = True  # It would overtake what others send.
                break
            elif has_entries and not self._queues.has_room(peer):
                self._queues.wait(peer, replica.group, partial(self.pump, peer))
                break
            elif self._send(peer, stream, plan):
                has_sent = True
                if progress.next_index > raft.state.log.last_index:
                    break  # It has been sent all entries, and the marks with them.
            else:
                break
        if has_sent:
            self._forget_sent()

    def resume(self, peer: BrokerId) -> None:
        """Send more if the window of `peer` was full; serve the followers that wait for a peer."""
        stream = self._streams.get(peer)
        if stream is not None and stream.is_blocked:
            stream.is_blocked = False
            self.pump(peer)
        if self.fetch_sources.waiting:
            self.fetch_sources.wake()

    def pump_all(self) -> None:
        """Send to every follower what it may be sent, marks too."""
        for peer in list(self._replica.raft.state.progress):
            self.pump(peer, tells=True)

    def ask(self, peer: BrokerId) -> None:
        """Probe `peer`: it is silent, or its answers were lost. Appends in flight stay so until it
        answers."""
        stream = self._streams.get(peer)
        if stream is not None:
            stream.on_asked(self._clock.monotonic_ms())
            self.relays.on_upset(peer)
        self._owner.step(PeerTimedOut(peer))

    def _send(self, peer: BrokerId, stream: FollowerStream, plan: "AppendPlan") -> bool:
        if plan.first_index > plan.last_index:
            return self._dispatch(peer, stream, plan, NOTHING)
        chunks = self._tail.take(plan.first_index, self._settings.append_bytes_max)
        fetch_source: BrokerId | None = LEADER
        if (stream.is_behind or not chunks) and self.fetch_sources.may_use_peers(
            stream, plan.first_index, is_in_memory=bool(chunks)
        ):
            if plan.is_probe and self.fetch_sources.has_neighbours(peer):
                # Its fetch source is chosen once it has answered the probe.
                return self._dispatch(peer, stream, plan, NOTHING)
            fetch_source = self.fetch_sources.choose(peer, plan.first_index)
        if fetch_source is None:
            self.fetch_sources.wait(peer)
            return False
        before = stream.fetch_source
        if fetch_source != before and not switch_source(stream, fetch_source):
            return False
        if not plan.is_probe:
            is_new = bool(chunks) and fetch_source == LEADER
            if is_new and self.relays.are_needed() and self.relays.serves(peer):
                return False
            if stream.relay != NO_BROKER and not self.relays.leave(peer):
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
                self.fetch_sources.wait(peer)
                return False
            if stream.is_recovering:
                stream.on_served_from_memory()
            append_chunk = self._append_chunk_of(chunks)
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

    def _append_chunk_of(self, chunks: Sequence[Chunk]) -> AppendChunk:
        """The chunks as one append: of a single small chunk, one for all followers."""
        if len(chunks) > 1 or chunks[0].size_bytes > SHARED_BYTES_MAX:
            return AppendChunk.of(chunks)
        append_chunk = self._last_append_chunk
        if append_chunk is None or chunks[0] is not self._last_chunk:
            append_chunk = AppendChunk.of(chunks)
            self._last_chunk, self._last_append_chunk = chunks[0], append_chunk
            self._last_plan = None
        return append_chunk

    def _dispatch(
        self, peer: BrokerId, stream: FollowerStream, plan: "AppendPlan", append_chunk: AppendChunk
    ) -> bool:
        """Send an append from here, and through `peer` to the followers that it relays to."""
        parts = append_chunk.parts
        assert not parts or stream.fetch_source == LEADER, "one sender at a time"
        last_index = append_chunk.last_index if parts else plan.prev_index
        may_carry = append_chunk.is_in_memory and not plan.is_probe
        to: tuple[BrokerId, ...] = ()
        if may_carry and self.relays.ways:
            to = tuple(self.relays.carried_by(peer))
        if append_chunk is self._last_append_chunk and not to:
            if plan != self._last_plan:
                self._last_plan = plan
                self._last_head = self._encode_head(plan, append_chunk, to)
            head = self._last_head  # Encoded once for all followers that keep up.
        else:
            head = self._encode_head(plan, append_chunk, to)
        size = len(head) + sum(map(len, parts))
        # A question behind the log's end hands over nothing.
        handed_index = last_index if parts else Index(-1)
        served = [stream]
        for one in to:
            served.append(self._streams[one])
        on_handed = partial(self._on_handed, peer, served, handed_index, size)
        if not self._network.send(peer, BULK, (head, *parts), on_handed):
            return False
        self._queues.add(peer, size)
        for one, its_stream in zip((peer, *to), served, strict=True):
            its_stream.queued_count += 1
            if one != peer:
                self.relays.on_sent(one, peer)
            self._mark_sent(one, its_stream, last_index, size)
        return True

    def _encode_head(
        self, plan: "AppendPlan", append_chunk: AppendChunk, to: tuple[BrokerId, ...]
    ) -> bytes:
        replica = self._replica
        last_index = append_chunk.last_index if append_chunk.parts else plan.prev_index
        # A follower that is behind acknowledges what it has flushed, and gets more only then.
        may_wait = plan.commit < last_index and append_chunk.is_relaxed
        request = plan.request(
            append_chunk.runs, append_chunk.configurations, report_written=may_wait
        )
        outlived = Index(-1)
        if replica.log.config.has_been_compacted:
            outlived = tombstones.reported_outlived(replica, replica.held_index)
        return encode_append_head(AppendHead(replica.group, request, may_wait, outlived, to))

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
        assert stream.fetch_source not in (LEADER, peer), "a peer sends, not the leader"
        if append_chunk.last_index > replica.raft.peer_fetch_end(stream.fetch_source):
            self.fetch_sources.wait(peer)
            return False
        request = plan.request(append_chunk.runs, append_chunk.configurations)
        size = sum(map(len, append_chunk.parts))
        may_differ = replica.log.config.has_been_compacted
        order = PeerCatchupOrder(
            replica.group, PeerCatchupRequest(peer, request, size, is_throttled, may_differ)
        )
        message = encode_control(Kind.PEER_CATCHUP_ORDER, order)
        if not self._network.send(stream.fetch_source, CONTROL, [message]):
            self.fetch_sources.wait(peer)
            return False
        self._mark_sent(peer, stream, append_chunk.last_index, size)
        return True

    def _mark_sent(
        self, peer: BrokerId, stream: FollowerStream, last_index: Index, size: int
    ) -> None:
        replica = self._replica
        replica.raft.note_sent(peer, last_index)
        stream.on_sent(last_index, size, self._clock.monotonic_ms())
        self._tell_sent()

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
            self._tell_handed()

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
            entries = cut_before(self._read_log(first_index, bytes_max), end)
        except (OSError, StorageError) as error:
            self._owner.on_unreadable(error)
            return None
        stream.is_recovering = True
        if is_throttled:
            throttle.spend(peer, len(entries.data), is_copy=is_copy, is_by_peer=is_by_peer)
        elif can_spare:
            stream.allowance_bytes -= len(entries.data)
        return entries, is_throttled

    def _read_log(self, first_index: Index, bytes_max: int) -> "reads.Entries":
        """Entries of the log from `first_index` on. If the log is damaged before them, this reports
        the damage and looks for them behind it. Raises StorageError, OSError."""
        log = self._replica.log
        try:
            return log.read_entries(first_index, bytes_max)
        except StorageError as error:
            entries = log.read_behind_damage(first_index)
            self._owner.on_unreadable(error)
            return entries

    def _forget_sent(self) -> None:
        """Drop chunks that every connected follower has been sent."""
        raft = self._replica.raft
        sent = raft.state.log.last_index
        for peer, progress in raft.state.progress.items():
            if progress.next_index <= sent and self._network.is_connected(peer, BULK):
                sent = progress.last_sent
        self._tail.drop_through(sent)
        if sent == raft.state.log.last_index:  # No other follower needs it, nor its memory.
            self._last_chunk = self._last_append_chunk = self._last_plan = None
