"""What a replica has only while it leads: its appends, their tail in memory, its followers.

Why:    all of this exists only while the replica leads, for one epoch.
How:    an append goes to the log (page cache), joins the tail and is proposed to the core. The core
        names the followers that may be sent entries; `AppendSender` sends them, while the leader's
        own flush runs. `Followers` hears what they answer.
Owns:   the tail and the streams; one per leading replica.
Source: Redpanda RFC 20220119 (one dispatch for all acks levels); design section 5."""

from collections.abc import Callable, Sequence

from strandline.base.disk import Buffer
from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.raft.events import Propose
from strandline.raft.group.configuration import Configuration
from strandline.records.batch import BatchHeader, read_header
from strandline.records.marker import build_deletion_marker, build_tier_marker
from strandline.replication.leader.append_sender import AppendSender, LeadingReplica
from strandline.replication.leader.append_times import AppendTimes
from strandline.replication.leader.follower_stream import FollowerStream
from strandline.replication.leader.followers import Followers
from strandline.replication.leader.requests import Appended, Request
from strandline.replication.leader.tail import BEYOND, Chunk, Tail
from strandline.replication.replica.flushes import Flushes
from strandline.replication.replica.state import ReplicaState
from strandline.replication.shared import Shared


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
        self._clock = shared.clock
        self._memory = shared.memory
        self._tell_room = on_room
        self._is_closed = False
        self.tail = Tail(shared.settings.tail_bytes_max, shared.memory)
        self.append_times = AppendTimes()
        streams: dict[BrokerId, FollowerStream] = {}
        self.streams = streams
        self.sender = AppendSender(
            replica,
            shared,
            owner,
            streams,
            self.tail,
            on_sent=on_sent,
            on_handed=self._release,
        )
        self.followers = Followers(replica, shared, owner, streams, self.sender, self.append_times)

    def close(self) -> None:
        """Leadership ended: memory units return."""
        self._is_closed = True
        self.sender.close()
        self.tail.clear()

    # ---- appending -------------------------------------------------------------------------------

    def append(self, requests: Sequence[Request], *, relaxed: bool) -> Appended:
        """Stamp, write and propose requests in their order. Raises OSError, and then nothing was
        appended."""
        replica = self._replica
        log = replica.log
        assert not self._is_closed, "a leader state appends in its own epoch"
        epoch = replica.raft.state.epoch
        first_index = Index(log.last_index + 1)
        first_offset = offset = log.end_offset
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
        assert log.end_offset == offset, "the log ends where the last batch was stamped to end"
        count = offset - first_offset
        last_index = Index(first_index + count - 1)
        self._take_in(first_index, last_index, buffers, epoch=epoch, relaxed=relaxed)
        self._flushes.request(may_wait=relaxed)
        self._owner.step(Propose(count, relaxed))
        return Appended(last_index, base_offsets)

    def append_marker(
        self, marker: bytes, *, epoch: Epoch, configuration: Configuration | None
    ) -> None:
        """Write a marker. Raises OSError."""
        log = self._replica.log
        first_index = Index(log.last_index + 1)
        header = read_header(marker)
        assert header is not None
        log.append([marker], [header])
        assert log.last_index == first_index, "a marker takes one index"
        self._memory.take(len(marker))
        self._take_in(first_index, first_index, [marker], epoch=epoch, configuration=configuration)
        self._flushes.request(may_wait=False)

    def append_deletion(self, before: Offset) -> Index:
        """Write and propose the deletion of the records below `before`; its index. Raises
        OSError."""
        replica = self._replica
        log = replica.log
        now = self._clock.wall_ms()
        return self._propose(build_deletion_marker(log.end_offset, replica.epoch, before, now))

    def append_tier(self, payload: bytes) -> Index:
        """Write and propose what a bucket holds; its index. Raises OSError."""
        replica = self._replica
        now = self._clock.wall_ms()
        return self._propose(build_tier_marker(replica.log.end_offset, replica.epoch, payload, now))

    def _propose(self, marker: bytes) -> Index:
        self.append_marker(marker, epoch=self._replica.epoch, configuration=None)
        index = self._replica.log.last_index
        self._owner.step(Propose(1, unflushed_visible=False))
        return index

    def _take_in(
        self,
        first_index: Index,
        last_index: Index,
        buffers: Sequence[Buffer],
        *,
        epoch: Epoch,
        relaxed: bool = False,
        configuration: Configuration | None = None,
    ) -> None:
        replica = self._replica
        tail = self.tail
        size = sum(map(len, buffers))
        if not replica.raft.state.progress:  # No follower: nothing is sent, or kept for that.
            tail.clear()
            self._memory.give_back(size)
            return
        now = self._clock.monotonic_ms()
        if self.append_times.is_due(now):
            self.append_times.note(first_index, now, replica.held_index)
        for stream in self.streams.values():
            if stream.is_recovering:
                stream.allowance_bytes += size
        had_waiting = tail.waiting_bytes > 0
        tail.add(Chunk(first_index, last_index, epoch, buffers, size, configuration, relaxed))
        if had_waiting or len(replica.raft.state.configuration.voters) == 1:
            self._release()  # Else the new entries wait for a follower's socket.

    def _release(self) -> None:
        """Return the memory units of entries that a write quorum's sockets, and this broker, have
        taken (RFC: "after the request is handed off to the socket")."""
        tail = self.tail
        if not tail.waiting_bytes:
            return
        handed = {peer: stream.handed_index for peer, stream in self.streams.items()}
        handed[self._replica.self_id] = BEYOND
        had_room = tail.has_room
        tail.hand_through(self._replica.configuration.quorum_index(handed))
        if tail.has_room and not had_room:
            self._tell_room()
