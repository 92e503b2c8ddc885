"""Deleted records stay deleted, and no other records go with them.

Why:    a log start that goes back shows records again after a client got the answer that they are
        deleted.
How:    every read gives the log start of the replica that served it. A leader's start is never
        below an answered deletion, nor below a start that a broker showed before. No replica's
        start goes back within one process. No start is beyond the last requested deletion.
Owns:   the requested, answered and shown starts; one set for each run.
Source: docs/decisions/0006-deleting-records.md."""

from strandline.model.ids import BrokerId, GroupId, Offset
from strandline.simulation.invariants.facts import (
    Deleted,
    DeletionAsked,
    RecordsRead,
    ReplicaRemoved,
    Subject,
)
from strandline.simulation.invariants.invariants import Invariant


class DeletedStaysDeleted(Invariant):
    """See the module."""

    def __init__(self) -> None:
        self._asked: dict[GroupId, Offset] = {}
        self._deleted: dict[GroupId, Offset] = {}
        """{group: the end of the deleted records, by an answer or by a read}"""
        self._starts: dict[tuple[BrokerId, int, GroupId], Offset] = {}

    def on_deletion_asked(self, fact: DeletionAsked) -> None:
        """From now on replicas may delete these records."""
        self._asked[fact.group] = max(fact.before, self._asked.get(fact.group, fact.before))

    def on_deleted(self, fact: Deleted) -> None:
        """The leader's start is at or above the answered deletion."""
        self._raise(fact.group, fact.before)
        if fact.low_watermark < fact.before:
            raise self.broken(
                f"group {fact.group}: deleting before {fact.before} left a start of "
                f"{fact.low_watermark}",
                Subject(fact.group, fact.before),
            )

    def on_records_read(self, fact: RecordsRead) -> None:
        """The log start that a reader sees is between those answered and requested."""
        asked = self._asked.get(fact.group, Offset(0))
        if fact.deleted_before > asked:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} has deleted up to "
                f"{fact.deleted_before}; no client requested more than {asked}",
                Subject(fact.group, asked),
            )
        place = fact.broker, fact.life, fact.group
        due = self._starts.get(place, Offset(0))
        if fact.is_leader_read:
            due = max(due, self._deleted.get(fact.group, Offset(0)))
        if fact.start_offset < due:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} begins at {fact.start_offset}; records "
                f"below {due} were gone",
                Subject(fact.group, fact.start_offset),
            )
        self._starts[place] = fact.start_offset
        self._raise(fact.group, fact.deleted_before)

    def on_replica_removed(self, fact: ReplicaRemoved) -> None:
        """A replica that is added again counts as another one."""
        self._starts.pop((fact.broker, fact.life, fact.group), None)

    def _raise(self, group: GroupId, before: Offset) -> None:
        self._deleted[group] = max(before, self._deleted.get(group, before))
