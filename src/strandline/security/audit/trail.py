"""The lines of the audit log that wait for the disk, within bounds.

Why:    a client that is refused a thousand times a second must not fill the disk, and must not hide
        what it changed meanwhile behind its refusals.
How:    each kind of event has its own number of lines per second. Events other than changes take at
        most half of the queue. A line that is dropped is counted, and a line tells the count, at
        most once a second.
Owns:   the queue, the counts.
Source: decision 0069."""

from strandline.security.audit.event import AuditEvent, EventKind, dropped_line, line_of

QUEUE_BYTES_MAX = 4 * 1024 * 1024


class Trail:
    """See the module. `lines_per_s_max`: of each kind of event."""

    def __init__(
        self, *, broker_id: int, lines_per_s_max: int, queue_bytes_max: int = QUEUE_BYTES_MAX
    ) -> None:
        self.dropped_count = 0
        """Lines dropped so far."""
        self.queue_bytes = 0
        self._broker_id = broker_id
        self._lines_per_s_max = lines_per_s_max
        self._queue_bytes_max = queue_bytes_max
        self._queue: list[bytes] = []
        # The second of the counts: {kind of event: its lines}.
        self._second = -1
        self._counts: dict[EventKind, int] = {}
        # How many dropped lines the queue has told of, and in which second.
        self._told_count = 0
        self._told_second = -1

    def add(self, event: AuditEvent, wall_ms: int) -> bool:
        """Queue the event's line; False if it was dropped."""
        second = wall_ms // 1000
        if second != self._second:
            self._second = second
            self._counts.clear()
        count = self._counts.get(event.kind, 0) + 1
        if count > self._lines_per_s_max:
            self.dropped_count += 1
            return False
        line = line_of(event, broker_id=self._broker_id, wall_ms=wall_ms)
        share = 1 if event.kind is EventKind.CHANGE else 2
        if self.queue_bytes + len(line) > self._queue_bytes_max // share:
            self.dropped_count += 1
            return False
        self._counts[event.kind] = count
        self._queue.append(line)
        self.queue_bytes += len(line)
        return True

    def take(self, wall_ms: int) -> bytes:
        """All that waits, as whole lines; empty if nothing does."""
        lines, self._queue = self._queue, []
        self.queue_bytes = 0
        untold, second = self.dropped_count - self._told_count, wall_ms // 1000
        if untold and second != self._told_second:
            self._told_count, self._told_second = self.dropped_count, second
            lines.append(dropped_line(untold, broker_id=self._broker_id, wall_ms=wall_ms))
        return b"".join(lines)
