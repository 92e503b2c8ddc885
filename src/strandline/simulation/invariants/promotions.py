"""What must hold of groups in which observers stand in for voters.

Why:    an observer that votes without having everything loses what was acknowledged, and may do so
        only after the next change, or the one after that.
How:    told of who may vote, by the controller's log, of elections, and of what was acknowledged;
        see `simulation.invariants`.
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
    """Who is seated may have voted; and once an observer may vote, whoever is elected has all that
    was acknowledged with acks=all before, and it stays in every log from then on."""

    def __init__(self, superseding: Superseding = NOTHING, *, may_lose: bool = False) -> None:
        super().__init__(superseding, may_lose=may_lose)
        self._state: dict[GroupId, int] = {}
        """{group: the last version of the controller's state that told of its voters}"""
        self._possible: dict[GroupId, frozenset[BrokerId]] = {}
        """{group: everybody who may vote}"""
        self._promoting: set[GroupId] = set()
        """Groups in which an observer could vote at some time."""
        self._ends: dict[GroupId, Offset] = {}
        """{group: where what was acknowledged ends}"""
        self._epochs: dict[GroupId, Epoch] = {}
        """{group: the last epoch that anybody was elected in}"""

    def on_voters_recorded(self, fact: VotersRecorded) -> None:
        """In the order of the state's versions, whoever tells first."""
        if fact.state_version <= self._state.get(fact.group, -1):
            return
        self._state[fact.group] = fact.state_version
        before = self._possible.get(fact.group)
        if fact.leader is not None and before is not None and fact.leader not in before:
            raise self.broken(
                f"group {fact.group}: grant {fact.grant} seats broker {fact.leader}; only "
                f"{sorted(before)} may have voted",
                Subject(fact.group),
            )
        self._possible[fact.group] = frozenset(one for each in fact.possible for one in each)
        if not self._possible[fact.group] <= set(fact.own):
            self._promoting.add(fact.group)

    def on_loss_recorded(self, fact: LossRecorded) -> None:
        """What was at risk may be gone."""
        super().on_loss_recorded(fact)
        declared = fact.declaration
        if declared.group in self._ends:
            self._ends[declared.group] = min(self._ends[declared.group], declared.at_risk_from)

    def on_acknowledged(self, fact: Acknowledged) -> None:
        """From now on it is there."""
        super().on_acknowledged(fact)
        is_at_risk = self.may_be_gone(fact.group, fact.base_offset, fact.epoch)
        if fact.acks == QUORUM_ACK and not self._may_lose and not is_at_risk:
            end = Offset(fact.base_offset + len(fact.values))
            self._ends[fact.group] = max(end, self._ends.get(fact.group, end))

    def on_leader_elected(self, fact: LeaderElected) -> None:
        """What was acknowledged up to now, an earlier leader acknowledged."""
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
        """As `NoAcknowledgedRecordLost`, where observers could vote."""
        if fact.group in self._promoting:
            super().on_log_audited(fact)
