"""Reports commit and visible to followers that no append brings them, a little later.

Why:    only clients that read from a follower wait for the marks. A message for each commit would
        cost more than all appends.
How:    a leader whose marks moved is noted. `DELAY_MS` later each of them sends its followers what
        an append has not brought meanwhile.
Owns:   the leaders that have something to report; one per broker.
Source: design section 5."""

from collections.abc import Callable

from strandline.base.clock import Clock
from strandline.model.ids import GroupId

DELAY_MS = 5


class MarkNotices:
    """See the module."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[GroupId, Callable[[], None]] = {}

    def add(self, group: GroupId, report: Callable[[], None]) -> None:
        """Call `report` in a little while, once for each group."""
        if not self._due:
            self._clock.call_later(DELAY_MS, self._report)
        self._due[group] = report

    def _report(self) -> None:
        due, self._due = self._due, {}
        for report in due.values():
            report()
