"""A log loses its beginning only by its topic's retention, or by a request to delete records.

Why:    all other promises start where a log begins; they miss what is lost below.
How:    `disk.log_starts` sees at the disk where a log is about to begin. The invariant judges that
        by the bytes that are left and by the requests. A log that is reset follows its leader,
        which may have decided a deletion that it has yet to do: such a start is judged only if no
        retention applies.
Owns:   the requests so far; one set for each run.
Source: Kafka's retention.bytes; docs/decisions/0006-deleting-records.md."""

from strandline.model.ids import GroupId, Offset
from strandline.simulation.invariants.facts import DeletionAsked, LogShortened, Subject
from strandline.simulation.invariants.invariants import Invariant


class OnlyExpiredIsLetGo(Invariant):
    """See the module. Times do not let anything go here: histories are shorter than any."""

    def __init__(self) -> None:
        self._asked: dict[GroupId, Offset] = {}

    def on_deletion_asked(self, fact: DeletionAsked) -> None:
        """From now on it may be done."""
        self._asked[fact.group] = max(fact.before, self._asked.get(fact.group, fact.before))

    def on_log_shortened(self, fact: LogShortened) -> None:
        """Where a log is about to begin."""
        asked = self._asked.get(fact.group, Offset(0))
        due_bytes = min(fact.retention_bytes, 0) if fact.begins_anew else fact.retention_bytes
        if fact.start_offset > asked and not 0 <= due_bytes <= fact.kept_bytes:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} lets its log begin at "
                f"{fact.start_offset}, with {fact.kept_bytes} bytes from there on; nothing from "
                f"{asked} on was to go, by a retention of {fact.retention_bytes} bytes or a "
                "request",
                Subject(fact.group, asked),
            )
