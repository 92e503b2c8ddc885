"""Which brokers' disks are too full for more replicas. Pure.

Why:    a copy that fills a disk stops everything on it.
How:    fuller than `balancer.disk.high.percent`: full; full until it is 5 % below that. What is on
        a full disk stays there, and what was begun goes on. Of whom nothing is heard, what was
        known before holds.
Owns:   who is full, on the active controller; a new one asks again.
Source: decision 0010."""

from strandline.controller.reports import Reports
from strandline.model.ids import BrokerId

HYSTERESIS_PERCENT = 5


class Fullness:
    """See the module. `used_percent`: {broker: how full its disk was last}."""

    def __init__(self) -> None:
        self.full: frozenset[BrokerId] = frozenset()
        self.used_percent: dict[BrokerId, int] = {}

    def step(self, reports: Reports, *, high_percent: int) -> frozenset[BrokerId]:
        """Look at what brokers tell; who is full now."""
        full = set(self.full)
        for broker, report in reports.items():
            self.used_percent[broker] = report.used_percent
            if report.room_bytes(high_percent) < 0:
                full.add(broker)
            elif report.room_bytes(high_percent - HYSTERESIS_PERCENT) >= 0:
                full.discard(broker)
        self.full = frozenset(full)
        return self.full
