"""What must hold of groups in which observers stand in for voters.

Why:    an observer that votes without all records loses acknowledged ones, perhaps only after the
        next change of voters.
How:    judges by the voters in the controller's log, by elections, and by acknowledgements.
Source: docs/decisions/0016, 0020 and 0025; design section 6."""

from strandline.model.ids import BrokerId, Epoch, GroupId, Offset
from strandline.simulation.invariants.facts import (
    Acknowledged,
    LeaderElected,
    LogAudited,
    LossRecorded,
    Subject,
    VotersRecorded,
)
from strandline.simulation.invariants.invariants import QUORUM_ACK, NoAcknowledgedRecordLost
from strandline.simulation.invariants.superseding import Superseding

NOTHING = Superseding()


class PromotionKeepsRpoZero(NoAcknowledgedRecordLost):
    """The controller appoints only brokers that may have voted. Once an observer may vote, each
    leader elected from then on has every record acknowledged with acks=all before, and these
    records stay in every log."""

    def __init__(self, superseding: Superseding = NOTHING, *, may_lose: bool = False) -> None:
        super().__init__(superseding, may_lose=may_lose)
        self._state: dict[GroupId, int] = {}
        """{group: the latest version of the controller's state with a record of its voters}"""
        self._possible: dict[GroupId, frozenset[BrokerId]] = {}
        """{group: all brokers that may vote}"""
        self._promoting: set[GroupId] = set()
        """Groups in which an observer could vote at some time; a group never leaves."""
        self._ends: dict[GroupId, Offset] = {}
        """{group: the end offset of the records acknowledged with acks=all}"""
        self._epochs: dict[GroupId, Epoch] = {}
        """{group: the latest epoch with an elected leader}"""

    def on_voters_recorded(self, fact: VotersRecorded) -> None:
        """Takes each version of the state once, from the broker that replays it first."""
        if fact.state_version <= self._state.get(fact.group, -1):
            return
        self._state[fact.group] = fact.state_version
        before = self._possible.get(fact.group)
        if fact.leader is not None and before is not None and fact.leader not in before:
            raise self.broken(
                f"group {fact.group}: grant {fact.grant} appoints broker {fact.leader}; only "
                f"{sorted(before)} may have voted",
                Subject(fact.group),
            )
        self._possible[fact.group] = frozenset(one for each in fact.possible for one in each)
        if not self._possible[fact.group] <= set(fact.own):
            self._promoting.add(fact.group)

    def on_loss_recorded(self, fact: LossRecorded) -> None:
        """The offsets at risk are not required any more."""
        super().on_loss_recorded(fact)
        declared = fact.declaration
        if declared.group in self._ends:
            self._ends[declared.group] = min(self._ends[declared.group], declared.at_risk_from)

    def on_acknowledged(self, fact: Acknowledged) -> None:
        """From now on leaders and logs must have these records."""
        super().on_acknowledged(fact)
        is_at_risk = self.may_be_gone(fact.group, fact.base_offset, fact.epoch)
        if fact.acks == QUORUM_ACK and not self._may_lose and not is_at_risk:
            end = Offset(fact.base_offset + len(fact.values))
            self._ends[fact.group] = max(end, self._ends.get(fact.group, end))

    def on_leader_elected(self, fact: LeaderElected) -> None:
        """A leader of a new epoch must have the records that earlier leaders acknowledged."""
        if fact.epoch <= self._epochs.get(fact.group, -1):
            return
        self._epochs[fact.group] = fact.epoch
        end = self._ends.get(fact.group)
        if fact.group not in self._promoting or fact.end_offset is None or end is None:
            return
        if fact.end_offset < end:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} leads in epoch {fact.epoch} with "
                f"records up to {fact.end_offset}; those up to {end} were acknowledged",
                Subject(fact.group, fact.end_offset),
            )

    def on_log_audited(self, fact: LogAudited) -> None:
        """The check of `NoAcknowledgedRecordLost`, for groups in which observers could vote."""
        if fact.group in self._promoting:
            super().on_log_audited(fact)
