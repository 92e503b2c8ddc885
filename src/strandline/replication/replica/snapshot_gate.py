"""What a replica asks of the snapshots that stand for the removed part of its log.

Why:    a log whose records make a state, and which is cut behind snapshots of it, is worth nothing
        where it begins later than the newest snapshot here ends.
How:    leader --ResetRequest(start)--> follower without a snapshot up to `start`: the message is
        held back, and the follower fetches a snapshot first; then the message is taken in.
        A replica whose log begins behind its snapshots takes no part until it has one.
Owns:   nothing.
Source: decision 0062."""

from typing import Protocol

from strandline.model.ids import BrokerId, Offset
from strandline.raft.core import Raft
from strandline.raft.messages import ResetRequest


class SnapshotGate(Protocol):
    """The snapshots of one group on this broker."""

    @property
    def durable_offset(self) -> Offset:
        """The newest durable snapshot holds what all records below this offset make; 0 for none."""

    def fetch_before(self, leader: BrokerId, request: ResetRequest) -> None:
        """Get a snapshot up to `request.start_offset`, then give the replica the request again."""


def lacks_snapshot(gate: SnapshotGate, request: ResetRequest, raft: Raft) -> bool:
    """Whether the log may begin where a leader says only once a snapshot is here."""
    return request.start_offset > gate.durable_offset and request.start_index - 1 > raft.commit
