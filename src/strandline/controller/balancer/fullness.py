"""Which brokers' disks are too full for more replicas. Pure.

Why:    a copy that fills a disk stops everything on it.
How:    fuller than `balancer.disk.high.percent`: full; full until it is no fuller than
        `balancer.disk.low.percent`. What is on a disk that is full for more than a moment moves
        away (`relief`); what was begun goes on. Of whom nothing is heard, what was known before
        holds. Marks that change make everybody be looked at anew.
Owns:   who is full and since when, on the active controller; a new one asks again.
Source: decision 0010."""

from strandline.controller.reports import Reports
from strandline.model.ids import BrokerId

LASTING_MS = 20_000
"""So long a disk has to be full before anything moves away: two reports at least."""


class Fullness:
    """See the module. `used_percent`: {broker: how full its disk was last}."""

    def __init__(self) -> None:
        self.used_percent: dict[BrokerId, int] = {}
        self._since_ms: dict[BrokerId, int] = {}
        """{who is full: since when}"""
        self._marks = (0, 0)

    @property
    def full(self) -> frozenset[BrokerId]:
        """Who is full now."""
        return frozenset(self._since_ms)

    def lasting(self, now_ms: int) -> frozenset[BrokerId]:
        """Who has been full for more than a moment."""
        since_ms = self._since_ms.items()
        return frozenset(one for one, since in since_ms if now_ms - since >= LASTING_MS)

    def step(
        self, now_ms: int, reports: Reports, *, high_percent: int, low_percent: int
    ) -> frozenset[BrokerId]:
        """Look at what brokers tell; who is full now."""
        if self._marks != (high_percent, low_percent):
            self._marks = high_percent, low_percent
            low_percent = high_percent
        for broker, report in reports.items():
            self.used_percent[broker] = report.used_percent
            if report.room_bytes(high_percent) < 0:
                self._since_ms.setdefault(broker, now_ms)
            elif report.room_bytes(low_percent) >= 0:
                self._since_ms.pop(broker, None)
        return self.full
