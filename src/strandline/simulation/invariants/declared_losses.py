"""What must hold of groups with replicas that an operator has declared lost.

Why:    it is the one command that gives up acknowledged records. It may lose only the records that
        the operator was shown to be at risk.
How:    compares what the operator saw before typing the name with the controller's log, with
        elections, and with the acknowledged records; see `simulation.invariants`.
Source: docs/decisions/0026 and 0027; design section 6, 3."""

from strandline.model.ids import BrokerId, GroupId, Offset, first_epoch, grant_of
from strandline.simulation.invariants.facts import (
    Acknowledged,
    Declaration,
    LeaderElected,
    LogAudited,
    LossConfirmed,
    LossRecorded,
    Subject,
)
from strandline.simulation.invariants.invariants import (
    QUORUM_ACK,
    Invariant,
    NoAcknowledgedRecordLost,
    records_of,
)
from strandline.simulation.invariants.superseding import Superseding

NOTHING = Superseding()


class OnlyShownIsLost(NoAcknowledgedRecordLost):
    """The declaration is the one that the operator saw. The named log continues from the end that
    was shown. Every acknowledged record that was not shown to be at risk stays where it was.

    `lost_count`: acknowledged records that were at risk and are missing in the end."""

    def __init__(self, superseding: Superseding = NOTHING, *, may_lose: bool = False) -> None:
        super().__init__(superseding, may_lose=may_lose)
        self._confirmed: set[Declaration] = set()
        self._at_risk: dict[GroupId, dict[Offset, bytes]] = {}
        self._missing: dict[GroupId, int] = {}

    @property
    def lost_count(self) -> int:
        """See the class."""
        return sum(self._missing.values())

    def on_loss_confirmed(self, fact: LossConfirmed) -> None:
        """Remember what the operator saw."""
        self._confirmed.add(fact.declaration)

    def on_loss_recorded(self, fact: LossRecorded) -> None:
        """The operator saw and confirmed exactly this."""
        declared = fact.declaration
        if declared not in self._confirmed:
            raise self.broken(
                f"{declared} is in the controller's log, and no operator has confirmed it",
                Subject(declared.group, declared.at_risk_from),
            )
        known = self._acknowledged.get(declared.group, {})
        at_risk = {one: value for one, value in known.items() if one >= declared.at_risk_from}
        self._at_risk.setdefault(declared.group, {}).update(at_risk)
        super().on_loss_recorded(fact)

    def on_leader_elected(self, fact: LeaderElected) -> None:
        """The appointed broker is the one that was named, with the log that was shown."""
        for one in self._declared.get(fact.group, ()):
            if fact.epoch != first_epoch(one.grant) or fact.end_offset is None:
                continue
            if (fact.broker, fact.end_offset) != (one.leader, one.end):
                raise self.broken(
                    f"group {fact.group}: broker {fact.broker} goes on from {fact.end_offset}; "
                    f"broker {one.leader} was to go on from {one.end}",
                    Subject(fact.group, fact.end_offset),
                )

    def on_log_audited(self, fact: LogAudited) -> None:
        """The check of `NoAcknowledgedRecordLost`, for groups with a declared loss."""
        if fact.group not in self._declared:
            return
        super().on_log_audited(fact)
        if fact.is_final:
            at_risk, found = self._at_risk.get(fact.group, {}), records_of(fact)
            gone = [one for one in at_risk if found.get(one) != at_risk[one]]
            self._missing[fact.group] = len(gone)


class OldSideNeverAcknowledges(Invariant):
    """A broker that was declared lost acknowledges nothing by its old log. Once the next leader is
    appointed, no broker acknowledges by an earlier grant."""

    def __init__(self) -> None:
        self._given_up: dict[tuple[GroupId, BrokerId], int] = {}
        """{(group, broker): the last grant by which it was declared lost}"""
        self._appointed: dict[GroupId, int] = {}
        """{group: the last grant of a declaration by which a broker leads}"""
        self._declared: dict[GroupId, int] = {}
        """{group: the last grant of a declaration}"""

    def on_loss_recorded(self, fact: LossRecorded) -> None:
        """From now on the lost brokers must not acknowledge by an earlier grant."""
        declared = fact.declaration
        self._declared[declared.group] = declared.grant
        for broker in declared.lost:
            self._given_up[declared.group, broker] = declared.grant

    def on_leader_elected(self, fact: LeaderElected) -> None:
        """From now on no broker may acknowledge by an earlier grant."""
        declared = self._declared.get(fact.group, 0)
        if declared and grant_of(fact.epoch) >= declared:
            self._appointed[fact.group] = declared

    def on_acknowledged(self, fact: Acknowledged) -> None:
        """The broker that acknowledges leads by the present grant."""
        grant = grant_of(fact.epoch)
        appointed = self._appointed.get(fact.group, 0)
        over = max(appointed, self._given_up.get((fact.group, fact.broker), 0))
        if fact.acks == QUORUM_ACK and grant < over:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} acknowledges offset {fact.base_offset} "
                f"by grant {grant}; a loss was declared by grant {over}",
                Subject(fact.group, fact.base_offset, values=tuple(fact.values)),
            )
