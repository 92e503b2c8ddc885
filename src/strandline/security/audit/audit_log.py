"""The thread that writes the audit log.

Why:    a full, slow or hung disk must neither hold up the event loop nor refuse a client.
How:    the loop queues lines; the thread writes them, together, and tries a failed write again
        every second. The queue is bounded, so a disk that fails for long costs lines, which are
        counted. The broker's log tells of a failure once a minute. Lines are not flushed one by
        one: a machine that loses its power may lose the last ones.
Owns:   the thread.
Source: decision 0069."""

import logging
import threading

from strandline.base.clock import Clock
from strandline.security.audit.audit_file import AuditFile
from strandline.security.audit.event import AuditEvent
from strandline.security.audit.trail import Trail

RETRY_S = 1.0
TELL_INTERVAL_MS = 60_000
STOP_S = 2.0
"""How long the end of a broker waits for the last lines."""

_log = logging.getLogger("strandline.security")


class AuditLog:
    """See the module."""

    def __init__(self, trail: Trail, file: AuditFile, clock: Clock) -> None:
        self.write_error_count = 0
        self._trail = trail
        self._file = file
        self._clock = clock
        # Guards the trail.
        self._lock = threading.Lock()
        self._is_due = threading.Event()
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        # {what: when the log told of it last, in monotonic ms}
        self._told_ms: dict[str, int] = {}

    @property
    def dropped_count(self) -> int:
        """Lines that are not in the file."""
        return self._trail.dropped_count

    def start(self) -> None:
        """Write from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, within a bound, and end."""
        self._is_stopped.set()
        self._is_due.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    def add(self, event: AuditEvent) -> None:
        """Queue an event. Takes microseconds whatever the disk does."""
        with self._lock:
            is_queued = self._trail.add(event, self._clock.wall_ms())
        if is_queued:
            self._is_due.set()
        else:
            self._tell(
                "dropped",
                f"the audit log has dropped {self.dropped_count} lines so far: more came than "
                f"[access] audit_lines_per_s_max, or {self._file.path} takes no more",
            )

    def _run(self) -> None:
        waiting = b""
        while True:
            is_last = self._is_stopped.is_set()
            self._is_due.clear()
            if not waiting:
                with self._lock:
                    waiting = self._trail.take(self._clock.wall_ms())
            if not waiting or self._is_written(waiting):
                waiting = b""
                if is_last:
                    break
                self._is_due.wait(RETRY_S)
            elif is_last:
                break
            else:
                self._is_stopped.wait(RETRY_S)
        self._file.close()

    def _is_written(self, lines: bytes) -> bool:
        try:
            self._file.write(lines)
        except OSError as error:
            self.write_error_count += 1
            self._tell(
                "failed", f"cannot write the audit log {self._file.path}: {error.strerror or error}"
            )
            return False
        return True

    def _tell(self, what: str, text: str) -> None:
        now_ms = self._clock.monotonic_ms()
        told_ms = self._told_ms.get(what)
        if told_ms is None or now_ms - told_ms >= TELL_INTERVAL_MS:
            self._told_ms[what] = now_ms
            _log.error("%s", text)
