"""How far the logs of a group must be equal when each replica compacts its own.

Why:    two replicas compact at different times, so their bytes differ. A consumer's table must be
        the same from both, and so must the entries that Raft compares.
How:    indexes, epochs and offsets of committed entries stay equal. A record is the same in every
        log that has it. In the end every log gives the same table of keys and values. A deleted key
        stays deleted: on every replica the tombstone goes after the records before it.
Owns:   the committed entries of one run.
Source: design section 4 ("compaction by key, the same on every replica")."""

from collections.abc import Callable, Iterable

from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset
from strandline.simulation.invariants.facts import (
    Acknowledged,
    LogAudited,
    MarksMoved,
    Subject,
    TableRead,
)
from strandline.simulation.invariants.invariants import QUORUM_ACK, Invariant, records_of
from strandline.simulation.invariants.superseding import Superseding


class CompactedPrefixEqual(Invariant):
    """If one replica knows a record as committed, every replica has it, unless it is superseded."""

    def __init__(self) -> None:
        self._entries: dict[tuple[GroupId, Index], tuple[Epoch, int]] = {}
        """{(group, index): (epoch, markers up to here)} of committed entries."""
        self._records: dict[tuple[GroupId, Offset], bytes] = {}

    def on_log_audited(self, fact: LogAudited) -> None:
        """Compare with the known committed entries, then add to them."""
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
        """Compare with the first log."""
        if not fact.is_final:
            return
        table = self._superseding.table(records_of(fact))
        broker, known = self._tables.setdefault(fact.group, (fact.broker, table))
        if known != table:
            different = sorted(set(known.items()) ^ set(table.items()))[:3]
            raise self.broken(
                f"group {fact.group}: brokers {broker} and {fact.broker} differ in {different}",
                Subject(fact.group, different[0][1]),
            )


class DeletedKeysStayDeleted(Invariant):
    """If a committed tombstone is gone, so are all records of its key before it: in every log that
    reaches beyond it, and for every consumer that reads such a log from its beginning."""

    def __init__(
        self,
        superseding: Superseding,
        *,
        logs_of: Callable[[GroupId], Iterable[LogAudited]] = lambda group: (),
    ) -> None:
        """`logs_of`: the present logs of all living replicas."""
        self._superseding = superseding
        self._logs_of = logs_of
        self._commits: dict[GroupId, tuple[Index, Epoch]] = {}
        """{group: the last entry that any replica knew to be committed, and its epoch}"""

    def on_marks_moved(self, fact: MarksMoved) -> None:
        """Remember the commit, also of a replica that dies before it reports it."""
        if fact.commit_epoch and fact.commit > self._commits.get(fact.group, (Index(-1), 0))[0]:
            self._commits[fact.group] = fact.commit, fact.commit_epoch

    def on_acknowledged(self, fact: Acknowledged) -> None:
        """Remember tombstones."""
        if fact.acks == QUORUM_ACK:
            for number, value in enumerate(fact.values):
                offset = Offset(fact.base_offset + number)
                self._superseding.note(fact.group, offset, value)

    def on_log_audited(self, fact: LogAudited) -> None:
        """Remember tombstones, and check that no deleted key is back."""
        self._note(fact)
        newest = self._superseding.newest(records_of(fact))
        self._check(fact.broker, fact.group, newest=newest, end=fact.committed_end)

    def on_table_read(self, fact: TableRead) -> None:
        """The same check for a table that a consumer built."""
        newest = self._superseding.newest(fact.records)
        self._check(fact.broker, fact.group, newest=newest, end=fact.end)

    def _note(self, fact: LogAudited) -> None:
        """Remember the committed records of a log. A log with the last committed entry has all
        entries before it, too."""
        commit, epoch = self._commits.get(fact.group, (Index(-1), Epoch(0)))
        has_all = any(
            batch.epoch == epoch and batch.index <= commit < batch.index + batch.index_count
            for batch in fact.batches
        )
        limit = max(fact.commit, commit) if has_all else fact.commit
        for batch in fact.batches:
            if batch.index + batch.index_count - 1 <= limit:
                for offset, value in batch.records:
                    self._superseding.note(fact.group, offset, value)

    def _missed(
        self, group: GroupId, newest: dict[bytes | None, Offset], end: Offset
    ) -> tuple[bytes | None, Offset, Offset] | None:
        """(key, offset of its record, offset of its tombstone) of a deleted key that is back."""
        for key, tombstone in self._superseding.deleted(group).items():
            offset = newest.get(key, tombstone)
            if offset < tombstone < end:
                return key, offset, tombstone
        return None

    def _check(
        self,
        broker: BrokerId,
        group: GroupId,
        *,
        newest: dict[bytes | None, Offset],
        end: Offset,
    ) -> None:
        if self._missed(group, newest, end) is None:
            return
        for fact in self._logs_of(group):
            self._note(fact)
        missed = self._missed(group, newest, end)
        if missed is not None:
            key, offset, tombstone = missed
            raise self.broken(
                f"group {group}: {key!r} was deleted at offset {tombstone}; broker {broker} "
                f"has its record at {offset} and no tombstone",
                Subject(group, offset),
            )
