"""A leader sends its entries to each follower once, and in order.

Why:    a repeated entry costs the slowest link twice, and puts late replicas further behind.
How:    for each connection, group and epoch, entries begin where the last ones ended, or later.
        Entries that a leader orders another replica to send count as its own. The leader may go
        back once for each reason: the follower refused, a connection between the two changed, or no
        acknowledgement came within the resend time-out. An answer does not name its request, so two
        refusals may answer two probes, and the first acceptance after going back may be for less
        than the leader has sent since.
Owns:   the next index of each connection.
Source: Redpanda RFC 20220119 (`last_sent`); design section 5."""

from dataclasses import dataclass

from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.simulation.invariants.facts import AnswerReceived, EntriesSent, Subject, WayChanged
from strandline.simulation.invariants.invariants import Invariant
from strandline.simulation.world.scheduler import US_PER_MS

CLOCK_RATIO_MIN = 0.99
"""A host's clock may run so much faster, which shortens its time-outs."""


@dataclass(slots=True)
class _Stream:
    """`next_index`: where the next entries have to begin. `received_us`: when the leader received
    an accepting answer last, or sent the first entries."""

    epoch: Epoch
    connection: int | None
    next_index: Index
    received_us: int
    has_gone_back: bool = True
    """The follower has accepted nothing since the stream began or went back."""


class EntriesSentOnce(Invariant):
    """See the module."""

    def __init__(self, *, resend_timeout_ms: int) -> None:
        self._silence_us = int(resend_timeout_ms * US_PER_MS * CLOCK_RATIO_MIN)
        self._streams: dict[tuple[BrokerId, BrokerId], dict[GroupId, _Stream]] = {}
        """{(leader, follower): {group: stream}}."""
        self._reasons: dict[tuple[BrokerId, BrokerId], dict[GroupId, tuple[int, int]]] = {}
        """{(leader, follower): {group: (unused reasons to go back, time of the last one)}}.

        A leader that continues at a later moment does not go back for these reasons."""

    def on_entries_sent(self, fact: EntriesSent) -> None:
        """The entries follow the last ones, or the leader has a reason to go back."""
        way = fact.leader, fact.peer
        streams = self._streams.setdefault(way, {})
        reasons = self._reasons.get(way, {})
        reason_count, since_us = reasons.get(fact.group, (0, 0))
        stream = streams.get(fact.group)
        end = Index(fact.last_index + 1)
        connection = fact.connection
        if connection is None and stream is not None:
            connection = stream.connection
        if stream is None or (stream.epoch, stream.connection) != (fact.epoch, connection):
            streams[fact.group] = _Stream(fact.epoch, connection, end, fact.at_us)
            return
        if fact.first_index < stream.next_index:
            is_silent = fact.at_us - stream.received_us >= self._silence_us
            if not reason_count and not is_silent:
                raise self.broken(
                    f"group {fact.group}: broker {fact.leader} sends entries {fact.first_index} to "
                    f"{fact.last_index} of epoch {fact.epoch} to broker {fact.peer}, which was "
                    f"sent all below {stream.next_index} on this connection",
                    Subject(fact.group, index=fact.first_index),
                )
            stream.received_us = fact.at_us
            stream.has_gone_back = True
            reasons[fact.group] = max(0, reason_count - 1), since_us
        elif fact.at_us > since_us:
            reasons.pop(fact.group, None)
        stream.next_index = end

    def on_answer_received(self, fact: AnswerReceived) -> None:
        """A refusal is a reason to go back."""
        way = fact.leader, fact.peer
        stream = self._streams.get(way, {}).get(fact.group)
        is_present = stream is not None and stream.epoch == fact.epoch
        if not fact.is_accepted or (is_present and stream is not None and stream.has_gone_back):
            self._add_reason(way, fact.group, fact.at_us)
        if stream is not None and is_present and fact.is_accepted:
            stream.received_us = fact.at_us
            stream.has_gone_back = False

    def on_way_changed(self, fact: WayChanged) -> None:
        """A connection that came or went is a reason to go back."""
        way = fact.here, fact.peer
        for group in self._streams.get(way, {}):
            self._add_reason(way, group, fact.at_us)

    def _add_reason(self, way: tuple[BrokerId, BrokerId], group: GroupId, at_us: int) -> None:
        reasons = self._reasons.setdefault(way, {})
        reasons[group] = reasons.get(group, (0, 0))[0] + 1, at_us
