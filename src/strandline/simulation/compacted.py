"""In which sense the logs of a group are equal when each replica compacts its own.

Why:    two replicas compact at different times, so their bytes differ; what a consumer makes of
        them must not, and neither may what Raft sees.
How:    indexes, epochs and offsets of committed entries stay equal, a record that is there is the
        same everywhere, and in the end every log makes the same table of keys and values.
Owns:   what was found committed, in one run.
Source: design section 4 ("compaction by key, the same on every replica")."""

from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset
from strandline.simulation.facts import LogAudited, Subject
from strandline.simulation.invariants import Invariant, records_of
from strandline.simulation.superseding import Superseding


class CompactedPrefixEqual(Invariant):
    """What one replica holds to be committed, every replica has, or it is superseded."""

    def __init__(self) -> None:
        self._entries: dict[tuple[GroupId, Index], tuple[Epoch, int]] = {}
        """{(group, index): (epoch, markers up to here)} of committed entries."""
        self._records: dict[tuple[GroupId, Offset], bytes] = {}

    def on_log_audited(self, fact: LogAudited) -> None:
        """Compare with what was committed, then add to it."""
        end = fact.start_index - 1
        for batch in fact.batches:
            end = batch.index + batch.index_count - 1
            if end > fact.commit:
                continue
            is_marker = batch.next_offset == batch.base_offset
            markers = batch.index - batch.base_offset + is_marker
            for index in range(batch.index, end + 1):
                found = (batch.epoch, markers)
                known = self._entries.setdefault((fact.group, Index(index)), found)
                if known != found:
                    raise self.broken(
                        f"group {fact.group}: broker {fact.broker} has committed at {index} "
                        f"(epoch, markers so far) {found}; {known} was committed there",
                        Subject(fact.group, index=Index(index)),
                    )
            for offset, value in batch.records:
                if self._records.setdefault((fact.group, offset), value) != value:
                    raise self.broken(
                        f"group {fact.group}: broker {fact.broker} has committed another record at "
                        f"offset {offset} than was committed there",
                        Subject(fact.group, offset, values=(value,)),
                    )
        if end < fact.commit:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} holds {fact.commit} to be committed and "
                f"has a log up to {end}",
                Subject(fact.group, index=fact.commit),
            )


class CompactedTablesEqual(Invariant):
    """In the end every replica's log has the same last record of each key."""

    def __init__(self, superseding: Superseding) -> None:
        self._superseding = superseding
        self._tables: dict[GroupId, tuple[BrokerId, dict[bytes | None, Offset]]] = {}

    def on_log_audited(self, fact: LogAudited) -> None:
        """Compare with the first one."""
        if not fact.is_final:
            return
        table = self._superseding.newest(records_of(fact))
        broker, known = self._tables.setdefault(fact.group, (fact.broker, table))
        if known != table:
            different = sorted(set(known.items()) ^ set(table.items()))[:3]
            raise self.broken(
                f"group {fact.group}: brokers {broker} and {fact.broker} differ in {different}",
                Subject(fact.group, different[0][1]),
            )
