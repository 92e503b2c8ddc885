"""What a leader hears of its followers, and what it concludes when it hears nothing.

Why:    appends are pipelined, so a follower that lost one answers nothing more; the leader must
        notice, and probe it. Only followers that keep up may be in sync.
How:    an acknowledgement makes room in the follower's window. A refusal, a new connection or a
        silence ends what was in flight, by the way that it took: from the leader, through a relay,
        or from a peer. The core then decides what the follower is sent next.
Owns:   nothing; it changes the followers' streams. One per leading replica.
Source: design section 5."""

import logging
from collections.abc import Mapping

from strandline.model.ids import BrokerId, Index
from strandline.raft.events import MarksMaybeLost
from strandline.raft.messages import NO_HINT, AppendResponse
from strandline.replication.leader.append_sender import AppendSender, LeadingReplica
from strandline.replication.leader.append_times import AppendTimes
from strandline.replication.leader.follower_stream import (
    BACK_OFF_MS,
    ORDER_MS_MAX,
    FollowerStream,
)
from strandline.replication.replica.state import ReplicaState
from strandline.replication.shared import Shared

RTT_FACTOR = 4

_log = logging.getLogger("strandline.replication")


class Followers:
    """See the module. `streams`: {follower: its stream}."""

    def __init__(
        self,
        replica: ReplicaState,
        shared: Shared,
        owner: LeadingReplica,
        streams: Mapping[BrokerId, FollowerStream],
        sender: AppendSender,
        append_times: AppendTimes,
    ) -> None:
        self._replica = replica
        self._owner = owner
        self._clock = shared.clock
        self._settings = shared.settings
        self._contacts = shared.contacts
        self._streams = streams
        self._sender = sender
        self._append_times = append_times

    # ---- hearing ---------------------------------------------------------------------------------

    def on_response(self, peer: BrokerId, response: AppendResponse) -> None:
        """Keep the window; the core decides the rest."""
        stream = self._streams.get(peer)
        epoch = self._replica.raft.state.epoch
        if stream is None or response.epoch != epoch or response.hint == NO_HINT:
            return
        if response.accepted:
            match = max(response.written, response.flushed)
            stream.on_acknowledged(match, self._clock.monotonic_ms())

    def on_refused(self, peer: BrokerId) -> None:
        """`peer` will not acknowledge the appends in flight: it lacks an entry before them."""
        stream = self._streams.get(peer)
        if stream is not None:
            self._back_off_source(peer, stream)
            self._sender.relays.back_off(peer)
            self._sender.relays.on_upset(peer)
            stream.reset()

    def on_reset(self, peer: BrokerId) -> None:
        """Appends in flight to `peer` are lost, and so are those that it was to send to others."""
        stream = self._streams.get(peer)
        if stream is not None:
            stream.reset()
        for other in self._sender.fetch_sources.on_gone(peer):
            self._sender.ask(other)
        self._sender.relays.on_gone(peer)

    def on_marks_lost(self, peer: BrokerId) -> None:
        """Marks sent to `peer` may be lost, and nothing else. Probe it for lost answers, too, if
        the probe cannot overtake what others send it."""
        stream = self._streams.get(peer)
        if stream is not None and stream.is_sent_by_others:
            self._owner.step(MarksMaybeLost(peer))
        else:
            self._sender.ask(peer)

    def on_returned(self, peer: BrokerId) -> None:
        """`peer` was silent, and is heard again."""
        stream = self._streams.get(peer)
        if stream is not None and stream.inflight:
            stream.on_returned(self._clock.monotonic_ms())
            self._sender.ask(peer)

    def on_stalled(self, peer: BrokerId) -> None:
        """`peer` acknowledges nothing: ask it, and send the rest from here, if others did so."""
        self._back_off_source(peer, self._streams[peer])
        self._sender.ask(peer)

    def _back_off_source(self, peer: BrokerId, stream: FollowerStream) -> None:
        """Where others were to send something: it has not come, and may never come from there."""
        if stream.has_peer_source:
            replica = self._replica
            stream.backs_off_until_ms = self._clock.monotonic_ms() + BACK_OFF_MS
            text = "%s: broker %d does not get what it lacks from broker %d"
            _log.info(text, replica.name, peer, stream.fetch_source)

    # ---- questions -------------------------------------------------------------------------------

    def stalled_peers(self, now_ms: int) -> list[BrokerId]:
        """Followers that owe an acknowledgement for too long, though all of it has left here."""
        stalled: list[BrokerId] = []
        for peer, stream in self._streams.items():
            if self._is_awaited(peer) and not stream.queued_count:
                limit = RTT_FACTOR * int(self._contacts.rtt_ms(peer))
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
        progress = self._replica.raft.state.progress.get(peer)
        return bool(self._streams[peer].inflight or (progress and progress.rejoin_at >= 0))

    def is_backing_off(self, peer: BrokerId) -> bool:
        """Whether only the leader serves `peer` for now: an append by another way has not come."""
        stream = self._streams.get(peer)
        now = self._clock.monotonic_ms()
        if stream is not None and now < stream.backs_off_until_ms:
            return True
        return self._sender.relays.is_going_round(peer, now)

    def lacks_ms(self, peer: BrokerId) -> int:
        """For how long a member lacks an entry of this leader, by its acknowledgements in this
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
        since_ms = max(self._append_times.of(index) or 0, replica.leading_since_ms)
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
