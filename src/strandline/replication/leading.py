"""A leading replica's side: its appends, the tail in memory, and one stream to each follower.

Why:    everything here exists only while the replica leads, so it is made on election and thrown
        away afterwards.
How:    an append goes to the log (page cache), joins the tail and is proposed to the core; the core
        names followers that may be sent something; `pump` fills their windows from the tail, or
        from the log where the tail has moved on. The leader's own flush runs meanwhile.
Owns:   the tail, the streams, and the memory units of chunks not yet handed over; one per leading
        replica.
Source: Redpanda RFC 20220119 (one dispatch for all acks levels); design section 5."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from strandline.base.disk import Buffer
from strandline.base.errors import StorageError
from strandline.base.network import Lane
from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.raft.configuration import Configuration
from strandline.raft.events import Propose
from strandline.raft.messages import AppendResponse, LeaderContact, ResetRequest, Run
from strandline.records.batch import BatchHeader, read_header
from strandline.records.marker import build_deletion_marker
from strandline.replication.appender import Appended, Request
from strandline.replication.sender import FollowerStream
from strandline.replication.tail import Chunk, Tail
from strandline.replication.wire import encode_append_head

if TYPE_CHECKING:
    from strandline.raft.progress import AppendPlan
    from strandline.replication.replica import Replica

RTT_FACTOR = 4


class Leading:
    """See the module."""

    def __init__(self, replica: "Replica") -> None:
        self._replica = replica
        self._settings = replica.host.settings
        self._budget = replica.host.memory
        self._tail = Tail(self._settings.tail_bytes_max)
        self._streams: dict[BrokerId, FollowerStream] = {}
        self._unreleased: dict[int, Chunk] = {}

    def close(self) -> None:
        """Leadership ended: memory units return."""
        for chunk in list(self._unreleased.values()):
            self._release(chunk)
        self._tail.clear()

    # ---- appending -------------------------------------------------------------------------------

    def append(self, requests: Sequence[Request], *, relaxed: bool) -> Appended:
        """Stamp, write and propose requests in their order. Raises OSError, and then nothing was
        appended."""
        replica = self._replica
        log = replica.log
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
        replica.flush(may_wait=relaxed)
        replica.step(Propose(log.last_index - first_index + 1, relaxed))
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
        self._take_in(first_index, [marker], epoch=epoch, configuration=configuration)
        self._replica.flush()

    def append_deletion(self, before: Offset) -> Index:
        """Write and propose the deletion of the records below `before`; its index. Raises
        OSError."""
        replica = self._replica
        log = replica.log
        now = replica.host.clock.wall_ms()
        marker = build_deletion_marker(log.end_offset, replica.epoch, before, now)
        self.append_marker(marker, epoch=replica.epoch, configuration=None)
        index = log.last_index
        replica.step(Propose(1, relaxed=False))
        return index

    def _take_in(
        self,
        first_index: Index,
        buffers: Sequence[Buffer],
        *,
        epoch: Epoch,
        relaxed: bool = False,
        configuration: Configuration | None = None,
    ) -> None:
        size = sum(map(len, buffers))
        voters = self._replica.configuration.voters
        hand_overs = self._replica.configuration.write_quorum(voters) - 1
        chunk = Chunk(
            first_index=first_index,
            last_index=self._replica.log.last_index,
            epoch=epoch,
            buffers=buffers,
            size_bytes=size,
            configuration=configuration,
            relaxed=relaxed,
            units_bytes=size,
            hand_overs_left=hand_overs,
        )
        self._tail.add(chunk)
        if hand_overs > 0:
            self._budget.take(size)
            self._unreleased[first_index] = chunk
            self._release_evicted()

    def _release_evicted(self) -> None:
        """Chunks that left the tail hold no memory: whoever needs them is served from the log."""
        oldest = self._tail.first_index
        for first_index in list(self._unreleased):
            if first_index >= oldest:
                break
            self._release(self._unreleased[first_index])

    def _on_handed(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            chunk.hand_overs_left -= 1
            if chunk.hand_overs_left == 0:
                self._release(chunk)

    def _release(self, chunk: Chunk) -> None:
        if self._unreleased.pop(chunk.first_index, None) is not None:
            self._budget.give_back(chunk.units_bytes)

    # ---- sending ---------------------------------------------------------------------------------

    def pump(self, peer: BrokerId, *, tells: bool = False) -> None:
        """Send to `peer` what it may be sent, as far as its window and the connection allow.

        Marks travel with entries; marks alone are sent only when it `tells`, and soon otherwise."""
        replica = self._replica
        stream = self._streams.get(peer)
        if stream is None:
            stream = self._streams[peer] = FollowerStream(self._settings)
        has_sent = False
        while replica.host.network.is_connected(peer, Lane.BULK):
            if not stream.has_room:
                stream.is_blocked = True
                break
            plan = replica.raft.plan_append(peer)
            if plan is None:
                break
            if isinstance(plan, ResetRequest):
                replica.host.send_soon(peer, replica.group, plan)
                replica.raft.mark_sent(peer, Index(plan.start_index - 1))
                stream.on_sent(Index(plan.start_index - 1), 0, replica.host.clock.monotonic_ms())
                replica.host.led.has_sent(replica)
                break
            # Only an append tells a replica that lost its disk when it may take part again.
            is_contact = not plan.is_probe and plan.rejoin_at < 0
            if plan.last_index < plan.first_index and is_contact:
                if not tells:
                    replica.host.tell_soon(replica)
                    break
                contact = LeaderContact(plan.epoch, plan.commit, plan.visible)
                replica.host.send_soon(peer, replica.group, contact)
                replica.raft.mark_sent(peer, plan.prev_index)
            elif self._send(peer, stream, plan):
                has_sent = True
            else:
                break
        if has_sent:
            self._forget_sent()

    def resume(self, peer: BrokerId) -> None:
        """Go on where the window of `peer` had no room for more."""
        stream = self._streams.get(peer)
        if stream is not None and stream.is_blocked:
            stream.is_blocked = False
            self.pump(peer)

    def pump_all(self) -> None:
        """Send to every follower what it may be sent, marks too."""
        for peer in list(self._replica.raft.progress):
            if peer != self._replica.self_id:
                self.pump(peer, tells=True)

    def _send(self, peer: BrokerId, stream: FollowerStream, plan: "AppendPlan") -> bool:
        replica = self._replica
        chunks: list[Chunk] = []
        runs: list[Run] = []
        configurations: list[tuple[Index, Configuration]] = []
        parts: list[Buffer] = []
        last_index = plan.prev_index
        if plan.first_index <= plan.last_index:
            chunks = self._tail.take(plan.first_index, self._settings.append_bytes_max)
            if chunks:
                last_index = chunks[-1].last_index
                parts, runs, configurations = _describe(chunks)
            else:
                try:
                    entries = replica.log.read_entries(
                        plan.first_index, self._settings.append_bytes_max
                    )
                except (OSError, StorageError) as error:
                    replica.on_unreadable(error)
                    return False
                last_index = entries.last_index
                parts = [entries.data]
                runs = [Run(epoch, last) for epoch, last in entries.runs]
                configurations = [
                    (index, replica.host.decode_configuration(payload))
                    for index, payload in entries.configurations
                ]
        request = plan.request(runs, configurations)
        # Who is behind says how far it is once that is flushed, and gets more only then.
        may_wait = plan.commit < last_index and bool(chunks) and all(c.relaxed for c in chunks)
        head = encode_append_head(replica.group, request, may_wait=may_wait)
        on_handed = partial(self._on_handed, chunks) if chunks else None
        if not replica.host.network.send(peer, Lane.BULK, (head, *parts), on_handed):
            return False
        replica.raft.mark_sent(peer, last_index)
        size = len(head) + sum(map(len, parts))
        stream.on_sent(last_index, size, replica.host.clock.monotonic_ms())
        replica.host.led.has_sent(replica)
        return True

    def _forget_sent(self) -> None:
        """Drop chunks that every connected follower has been sent."""
        replica = self._replica
        sent = [
            progress.next_index - 1
            for peer, progress in replica.raft.progress.items()
            if peer != replica.self_id and replica.host.network.is_connected(peer, Lane.BULK)
        ]
        self._tail.drop_through(Index(min(sent, default=replica.log.last_index)))

    # ---- hearing ---------------------------------------------------------------------------------

    def on_response(self, peer: BrokerId, response: AppendResponse) -> None:
        """Keep the window; the core decides the rest."""
        stream = self._streams.get(peer)
        if stream is None:
            return
        if response.accepted:
            match = max(response.written, response.flushed)
            stream.on_acknowledged(match, self._replica.host.clock.monotonic_ms())
        else:
            stream.reset()

    def on_reset(self, peer: BrokerId) -> None:
        """What was in flight to `peer` is lost."""
        stream = self._streams.get(peer)
        if stream is not None:
            stream.reset()

    def stalled_peers(self, now_ms: int) -> list[BrokerId]:
        """Followers that acknowledge nothing of what is in flight."""
        stalled: list[BrokerId] = []
        for peer, stream in self._streams.items():
            rtt = self._replica.host.liveness.rtt_ms(peer)
            limit = self._settings.resend_timeout_ms + RTT_FACTOR * rtt
            if stream.inflight and now_ms - stream.progress_ms >= limit:
                stalled.append(peer)
        return stalled

    @property
    def has_inflight(self) -> bool:
        """Whether any append awaits its acknowledgement."""
        return any(stream.inflight for stream in self._streams.values())

    def is_in_step(self, peer: BrokerId) -> bool:
        """Whether `peer` has everything committed, or keeps acknowledging what it is sent."""
        progress = self._replica.raft.progress.get(peer)
        if progress is None:
            return False
        if progress.match_flushed >= self._replica.raft.commit:
            return True
        stream = self._streams.get(peer)
        now = self._replica.host.clock.monotonic_ms()
        limit = self._settings.resend_timeout_ms
        return stream is not None and stream.has_room and now - stream.progress_ms < limit


def _describe(
    chunks: Sequence[Chunk],
) -> tuple[list[Buffer], list[Run], list[tuple[Index, Configuration]]]:
    parts: list[Buffer] = []
    runs: list[Run] = []
    configurations: list[tuple[Index, Configuration]] = []
    for chunk in chunks:
        parts.extend(chunk.buffers)
        if runs and runs[-1].epoch == chunk.epoch:
            runs[-1] = Run(chunk.epoch, chunk.last_index)
        else:
            runs.append(Run(chunk.epoch, chunk.last_index))
        if chunk.configuration is not None:
            configurations.append((chunk.first_index, chunk.configuration))
    return parts, runs, configurations
