"""Which disks are too full for more replicas, and which even for their present ones. Pure.

Why:    a copy that fills a disk stops everything on it.
How:    A disk is full above `balancer.disk.high.percent`, and overfull if that lasts for more than
        a moment; both until it falls to `balancer.disk.low.percent`. A full disk gets nothing;
        replicas leave an overfull one (`relief`); moves that have begun continue. Without a report
        the earlier finding holds. If the marks change, all disks are judged anew.
Owns:   which brokers are full and overfull, on the active controller; a new one asks again.
Source: decision 0010."""

from strandline.controller.reports import Reports
from strandline.model.ids import BrokerId

LASTING_MS = 20_000
"""How long a disk must be above the high mark before replicas move away."""


class Fullness:
    """See the module. `used_percent`: {broker: how full its disk was last}."""

    def __init__(self) -> None:
        self.full: frozenset[BrokerId] = frozenset()
        self.overfull: frozenset[BrokerId] = frozenset()
        self.used_percent: dict[BrokerId, int] = {}
        self._above_ms: dict[BrokerId, int] = {}
        """{broker above the high mark: since when}"""
        self._marks = (0, 0)

    def step(self, now_ms: int, reports: Reports, *, high_percent: int, low_percent: int) -> None:
        """Judge the last reports of the brokers."""
        if self._marks != (high_percent, low_percent):
            self._marks = high_percent, low_percent
            self.full = self.overfull = frozenset()
            self._above_ms.clear()
        full, overfull = set(self.full), set(self.overfull)
        for broker, report in reports.items():
            self.used_percent[broker] = report.used_percent
            if report.room_bytes(high_percent) < 0:
                since_ms = self._above_ms.setdefault(broker, now_ms)
                full.add(broker)
                if now_ms - since_ms >= LASTING_MS:
                    overfull.add(broker)
                continue
            self._above_ms.pop(broker, None)
            if report.room_bytes(low_percent) >= 0:
                full.discard(broker)
                overfull.discard(broker)
        self.full, self.overfull = frozenset(full), frozenset(overfull)
