"""What acks=1 promises.

Why:    perhaps only the leader has such a record, and the record is lost with it. But if any log
        has a later entry of that leader, it also has this record, at the offset that the producer
        got.
How:    every log has a leader's entries in their order (LogMatching). So a log that has a later
        entry of the same epoch has this one.
Owns:   what was acknowledged in one run.
Source: Kafka's acks=1; Raft 5.3."""

from strandline.model.ids import Epoch, GroupId, Offset
from strandline.simulation.invariants.facts import Acknowledged, LogAudited, Subject
from strandline.simulation.invariants.invariants import Invariant, records_of, short
from strandline.simulation.invariants.superseding import Superseding

LEADER_ACK = 1


class LeaderAcknowledgedKept(Invariant):
    """See the module."""

    def __init__(self, superseding: Superseding) -> None:
        self._superseding = superseding
        self._acknowledged: dict[GroupId, dict[tuple[Epoch, Offset], bytes]] = {}

    def on_acknowledged(self, fact: Acknowledged) -> None:
        """Remember."""
        if fact.acks == LEADER_ACK:
            known = self._acknowledged.setdefault(fact.group, {})
            for number, value in enumerate(fact.values):
                known[fact.epoch, Offset(fact.base_offset + number)] = value

    def on_log_audited(self, fact: LogAudited) -> None:
        """Records before a leader's last entry here are as the leader acknowledged them."""
        ends = {batch.epoch: batch.next_offset for batch in fact.batches}
        found = records_of(fact)
        for (epoch, offset), value in self._acknowledged.get(fact.group, {}).items():
            if not fact.start_offset <= offset < ends.get(epoch, 0):
                continue
            if offset not in found and self._superseding.is_possible:
                continue
            if found.get(offset) != value:
                raise self.broken(
                    f"group {fact.group}: the leader of epoch {epoch} acknowledged {short(value)} "
                    f"at offset {offset}; broker {fact.broker} has {short(found.get(offset))} "
                    f"there, and later entries of that leader",
                    Subject(fact.group, offset, values=(value,)),
                )
