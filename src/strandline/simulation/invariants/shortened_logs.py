"""A log loses its beginning only by its topic's retention, or by a request to delete records.

Why:    all other promises start where a log begins; they miss losses below that.
How:    `disk.log_starts` sees at the disk where a log is about to begin. The invariant compares
        that start with the bytes that are left and with the requests. A log that is reset follows
        its leader, which may have decided a deletion and not done it yet. So the invariant judges
        the start of a reset log only if no retention applies.
Owns:   the requests so far; one set for each run.
Source: Kafka's retention.bytes; docs/decisions/0006-deleting-records.md."""

from strandline.model.ids import GroupId, Offset
from strandline.simulation.invariants.facts import DeletionAsked, LogShortened, Subject
from strandline.simulation.invariants.invariants import Invariant


class OnlyExpiredIsRemoved(Invariant):
    """See the module. No record expires by time here: histories are too short."""

    def __init__(self) -> None:
        self._asked: dict[GroupId, Offset] = {}

    def on_deletion_asked(self, fact: DeletionAsked) -> None:
        """From now on logs may begin there."""
        self._asked[fact.group] = max(fact.before, self._asked.get(fact.group, fact.before))

    def on_log_shortened(self, fact: LogShortened) -> None:
        """The retention or a request allows the new start."""
        asked = self._asked.get(fact.group, Offset(0))
        due_bytes = min(fact.retention_bytes, 0) if fact.begins_anew else fact.retention_bytes
        if fact.start_offset > asked and not 0 <= due_bytes <= fact.kept_bytes:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} lets its log begin at "
                f"{fact.start_offset}, with {fact.kept_bytes} bytes from there on; neither a "
                f"retention of {fact.retention_bytes} bytes nor a request allows a start above "
                f"{asked}",
                Subject(fact.group, asked),
            )
