"""What was deleted stays deleted, and nothing else goes with it.

Why:    a start that goes back shows records that a client was answered are deleted.
How:    every read says where the replica that served it lets the partition begin. A leader never
        says less than what was answered, nor than what anybody showed before; any replica never
        says less than it said before in the same process; and none says more than was asked for.
Owns:   what was asked, answered and shown; one set for each run.
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
        """Below here, by an answer or as some replica showed."""
        self._starts: dict[tuple[BrokerId, int, GroupId], Offset] = {}

    def on_deletion_asked(self, fact: DeletionAsked) -> None:
        """From now on it may be done."""
        self._asked[fact.group] = max(fact.before, self._asked.get(fact.group, fact.before))

    def on_deleted(self, fact: Deleted) -> None:
        """It was done."""
        self._raise(fact.group, fact.before)
        if fact.low_watermark < fact.before:
            raise self.broken(
                f"group {fact.group}: deleting before {fact.before} left a start of "
                f"{fact.low_watermark}",
                Subject(fact.group, fact.before),
            )

    def on_records_read(self, fact: RecordsRead) -> None:
        """As a reader sees it."""
        asked = self._asked.get(fact.group, Offset(0))
        if fact.deleted_before > asked:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} has deleted up to "
                f"{fact.deleted_before}; nobody asked for more than {asked}",
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
        """One that is added again is another replica."""
        self._starts.pop((fact.broker, fact.life, fact.group), None)

    def _raise(self, group: GroupId, before: Offset) -> None:
        self._deleted[group] = max(before, self._deleted.get(group, before))
