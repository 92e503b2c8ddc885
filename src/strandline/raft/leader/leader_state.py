"""What a replica keeps while it leads one epoch: plain data.

Why:    it means something in one epoch only, so an election makes it and the next epoch drops it.
        It lies at the bottom, so that every part of the room may read it.
Owns:   nothing; `Leading` changes it, `Transfers` the fields of a transfer, `rejoin` those of peers
        that lost their disks.
Source: Raft thesis, figure 3.1 ("Volatile state on leaders")."""

from dataclasses import dataclass

from strandline.model.ids import NO_BROKER, BrokerId, Epoch, Index
from strandline.raft.events import ReplicationReady
from strandline.raft.group.quorums import Quorums
from strandline.raft.leader.progress import Progress


class LeaderState:
    """See the module."""

    __slots__ = (
        "awaits_delegations",
        "delegators",
        "epoch",
        "everybody",
        "excluded_delegators",
        "first_index",
        "has_recovering",
        "has_unsettled_members",
        "is_holding",
        "own",
        "progress",
        "quorums",
        "transfer_from",
        "transferring_to",
        "unflushed_visible_last",
    )

    def __init__(self, epoch: Epoch, own: Progress, quorums: Quorums) -> None:
        self.epoch = epoch
        # The marker that opens this epoch.
        self.first_index = own.next_index
        # What this replica itself has written and flushed.
        self.own = own
        # {peer: what it has}, this replica excepted.
        self.progress: dict[BrokerId, Progress] = {}
        # One ReplicationReady for each peer.
        self.everybody: list[ReplicationReady] = []
        # The quorums of the configuration in force.
        self.quorums = quorums
        # The configuration is joint, or this replica is not one of its voters.
        self.has_unsettled_members = False
        # A peer lost its disk and does not count yet.
        self.has_recovering = False
        # The last entry of this epoch proposed as relaxed; -1 for none.
        self.unflushed_visible_last = Index(-1)
        # The transfer target; None while no transfer is under way.
        self.transferring_to: BrokerId | None = None
        # The end of the log when that transfer began.
        self.transfer_from = Index(-1)
        # The leader takes no proposals: the transfer target does not keep up.
        self.is_holding = False
        # The transfer waits for delegated votes.
        self.awaits_delegations = False
        # The voters that have delegated their votes of the next epoch to this leader.
        self.delegators: set[BrokerId] = set()
        # The peers that lost their disks in this epoch, or were removed: what they delegated does
        # not count, for they may have forgotten it.
        self.excluded_delegators: set[BrokerId] = set()

    def end_transfer(self) -> None:
        """No transfer is under way."""
        self.transferring_to = None
        self.is_holding = self.awaits_delegations = False

    def most_advanced(self, voters: tuple[BrokerId, ...]) -> BrokerId:
        """The voter with the longest log, NO_BROKER when there is none that counts."""
        candidates = [
            self.progress[voter]
            for voter in voters
            if voter in self.progress and not self.progress[voter].is_recovering
        ]
        best = max(candidates, key=lambda progress: progress.match_written, default=None)
        return NO_BROKER if best is None else best.peer

    def holders(self, index: Index) -> set[BrokerId]:
        """The members that count and have flushed the entry at `index`."""
        members = (self.own, *self.progress.values())
        return {member.peer for member in members if member.match_flushed >= index}


@dataclass(frozen=True, slots=True)
class HandOver:
    """A leader that has handed over, while not all that it appended is committed."""

    leader_state: LeaderState
    last_index: Index
    """Where its log ended."""

    @property
    def epoch(self) -> Epoch:
        """The epoch that this replica led."""
        return self.leader_state.epoch
