"""What a leader knows about one peer, and what it may send it next.

Why:    appends are pipelined, so "what was acknowledged" and "what was sent" are two things.
How:    PROBE --accepted--> REPLICATE --refused, reset or timed out--> PROBE

        A leader elected by a transfer begins with REPLICATE for the peers that were sent
        everything. While probing, one append at a time is under way; while replicating, as many as
        the driver's window allows. A probe that follows a refusal is empty unless the refusal named
        an entry that this leader has too: only then does that entry end a batch on both sides. A
        probe that follows silence is empty too, and comes after all that was sent: it asks whether
        that has arrived. An answer that falls short of a probe is not the probe's.
Owns:   one Progress per member; changed only by the parts of a leader.
Source: etcd's Progress; Redpanda RFC 20220119 (last sent, so that nothing is sent twice)."""

from collections.abc import Sequence
from enum import IntEnum

import msgspec

from strandline.model.ids import BrokerId, Epoch, Index
from strandline.raft.events import ReplicationReady
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import AppendRequest, Run

NEVER_SENT = Index(-2)
"""Instead of a mark that was sent: none was, not even that nothing is committed."""


class PeerState(IntEnum):
    """PROBE: the leader does not know where the logs part. REPLICATE: it does, and pipelines
    appends."""

    PROBE = 0
    REPLICATE = 1


class Progress:
    """See the module."""

    __slots__ = (
        "answered_next",
        "asked_from",
        "awaits_answer",
        "compacted_index",
        "is_probing",
        "match_flushed",
        "match_written",
        "next_index",
        "peer",
        "probe_is_empty",
        "ready",
        "rejoin_at",
        "rejoin_marker",
        "sent_commit",
        "sent_visible",
    )

    def __init__(self, peer: BrokerId, next_index: Index) -> None:
        self.peer = peer
        self.ready = ReplicationReady(peer)
        # PROBE or REPLICATE, as a flag: it is looked at on every acknowledgement.
        self.is_probing = True
        # A probe is under way, and what it joins on to.
        self.awaits_answer = False
        self.asked_from = Index(-1)
        # The next probe carries no entries.
        self.probe_is_empty = False
        # The next entry to send; everything below was sent (or is assumed to be there).
        self.next_index = next_index
        # Where the last answer to a probe led to; -1 while there was none in this epoch. Kept over
        # a reset: where the logs part must be found though the peer is lost again and again.
        self.answered_next = Index(-1)
        # Everything up to here is in the peer's log; may fall when its page cache was lost.
        self.match_written = Index(-1)
        # Everything up to here is durable there; -1 while the peer has yet to rejoin.
        self.match_flushed = Index(-1)
        # What it said last of its `LogShape.compacted_index`, in this epoch.
        self.compacted_index = Index(-1)
        # The marks that were last sent along; NEVER_SENT if they must be sent whatever they are.
        self.sent_commit = Index(-1)
        self.sent_visible = Index(-1)
        # The peer lost its disk and counts again once it has flushed this index; else -1.
        self.rejoin_marker = Index(-1)
        # The same once a majority without it has flushed the marker; appends then carry it.
        self.rejoin_at = Index(-1)

    @property
    def state(self) -> PeerState:
        """PROBE or REPLICATE."""
        return PeerState.PROBE if self.is_probing else PeerState.REPLICATE

    @property
    def is_recovering(self) -> bool:
        """Whether the peer lost its disk and does not count yet."""
        return self.rejoin_marker >= 0

    @property
    def last_sent(self) -> Index:
        """The last entry that was sent, or is assumed to be there."""
        return Index(self.next_index - 1)

    def has_been_sent(self, last_index: Index) -> bool:
        """Whether everything up to `last_index` is there, or on its way."""
        return not self.is_probing and self.next_index > last_index

    def has_passed(self, hint: Index) -> bool:
        """Whether a refusal with this hint does not answer what is under way: it was overtaken,
        or answers what was sent side by side with the append that led to the present probe."""
        is_asking = self.is_probing and self.awaits_answer
        return hint >= (self.asked_from if is_asking else self.last_sent)

    def probe_from(self, next_index: Index, *, is_empty: bool) -> None:
        """Drop what is known of appends under way; ask anew from `next_index` on."""
        self.is_probing = True
        self.awaits_answer = False
        self.probe_is_empty = is_empty
        self.next_index = next_index

    def ask(self) -> None:
        """Ask whether everything that was sent has arrived, without sending any of it again."""
        if not self.is_probing or self.awaits_answer:
            self.probe_from(self.next_index, is_empty=True)
        self.sent_commit = self.sent_visible = Index(-1)

    def resend_marks(self) -> None:
        """The marks may be lost; while probing, also the question, or the reset in its place."""
        if self.is_probing:
            self.ask()
        self.sent_commit = self.sent_visible = Index(-1)


class AppendPlan(msgspec.Struct, frozen=True, gc=False):
    """What to send to a peer next: entries from `first_index` to at most `last_index`.

    `last_index < first_index`: no entries. The marks alone may then travel in a LeaderContact as
    well, unless `is_probe`, which asks for an answer."""

    epoch: Epoch
    prev_index: Index
    prev_epoch: Epoch
    first_index: Index
    last_index: Index
    commit: Index
    visible: Index
    report_written: bool
    is_probe: bool
    rejoin_at: Index
    configured: Index

    def request(
        self,
        runs: Sequence[Run] = (),
        configurations: Sequence[tuple[Index, Configuration]] = (),
        *,
        report_written: bool = False,
    ) -> AppendRequest:
        """The message; `runs` and `configurations` describe the entries that go with it.

        `report_written` asks for the report even where no mark waits for it."""
        return AppendRequest(
            epoch=self.epoch,
            prev_index=self.prev_index,
            prev_epoch=self.prev_epoch,
            commit=self.commit,
            visible=self.visible,
            runs=tuple(runs),
            configurations=tuple(configurations),
            report_written=self.report_written or report_written,
            rejoin_at=self.rejoin_at,
            configured=self.configured,
        )
