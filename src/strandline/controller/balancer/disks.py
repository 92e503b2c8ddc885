"""How full disks are after the present moves: the brokers' reports, and the changes since. Pure.

Why:    a disk must be neither relieved nor filled twice: reports are seconds old, and moves take
        hours.
How:    A broker reports, at one moment, the use of its disk and the size of each log there. With
        that and the state, each byte counts once:

            the replica           at the end                   at the worst, until then
            stays                 nothing: it is in the report
            comes, or came since  what its log lacks yet
            goes                  less what its log has        nothing: it goes last
            went                  less what its log had

        "Came since": its replicas changed after the question to the broker. A log is as large as
        the largest of its replicas. This does not predict new records. A report counts for
        `VALID_MS`: a broker without a report neither gives nor gets replicas.
Owns:   the reports, and when replicas changed, on the active controller.
Source: decision 0010."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from strandline.controller.reports import Report, Reports
from strandline.model.cluster import Cluster, Partition, Roles
from strandline.model.ids import BrokerId, GroupId

VALID_MS = 30_000
KEPT_MS = 2 * VALID_MS
COUNT_STEP = 500


@dataclass(frozen=True, slots=True)
class Reported:
    """A broker's report, and the time of the question."""

    report: Report
    asked_ms: int


class Disks:
    """See the module. The clock is the controller's."""

    def __init__(self) -> None:
        self._reported: dict[BrokerId, Reported] = {}
        self._changed_ms: dict[GroupId, int] = {}
        """{group: when its replicas became others}, as long as reports are older"""

    def hear(self, reports: Reports, *, asked_ms: int) -> None:
        """Take the brokers' reports with the sizes of their logs."""
        self._reported |= {broker: Reported(report, asked_ms) for broker, report in reports.items()}
        old = [one for one, at_ms in self._changed_ms.items() if asked_ms - at_ms > KEPT_MS]
        for group in old:
            del self._changed_ms[group]

    def note_change(self, group: GroupId, now_ms: int) -> None:
        """The replicas of a group have become others."""
        self._changed_ms[group] = now_ms

    def room(self, now_ms: int, *, low_percent: int) -> "Room":
        """The room on the disks, by the recent reports."""
        valid = {
            one: reported
            for one, reported in self._reported.items()
            if now_ms - reported.asked_ms <= VALID_MS
        }
        others = [reported.report for one, reported in self._reported.items() if one not in valid]
        return Room(valid, dict(self._changed_ms), others, low_percent=low_percent)


class Room:
    """How much room each broker has up to the low mark. A move counts once it is requested."""

    def __init__(
        self,
        reported: Mapping[BrokerId, Reported],
        changed_ms: Mapping[GroupId, int],
        outdated: Collection[Report] = (),
        *,
        low_percent: int = 100,
    ) -> None:
        self.sizes: Counter[GroupId] = Counter()
        """{group: bytes of its log}"""
        self.low_percent = low_percent
        self._reported = reported
        self._changed_ms = changed_ms
        self._outdated = outdated
        """They give the size of a log that no recent report has."""
        self._end: Counter[BrokerId] = Counter()
        """{broker: bytes on its disk after the present moves}"""
        self._worst: Counter[BrokerId] = Counter()
        """The same as long as nothing is gone that is to go."""

    @classmethod
    def unknown(cls) -> "Room":
        """No broker has reported."""
        return cls({}, {})

    def steps(self, cluster: Cluster) -> Iterator[None]:
        """Count present replicas and moves, in steps, all as of the first step."""
        groups = dict(cluster.groups)
        uneasy = {*cluster.moving, *self._changed_ms}
        for one in self._reported.values():
            for group, size in one.report.sizes.items():
                if size > self.sizes[group]:
                    self.sizes[group] = size
            yield
        known = frozenset(self.sizes)
        for report in self._outdated:
            for group, size in report.sizes.items():
                if group not in known and size > self.sizes[group]:
                    self.sizes[group] = size
            yield
        for broker, reported in self._reported.items():
            self._end[broker] = self._worst[broker] = reported.report.used_bytes
            for number, (group, size) in enumerate(reported.report.sizes.items()):
                if group not in groups:
                    self._add(broker, (-size, -size))
                elif broker not in groups[group].hosts:
                    self._add(broker, self._share(broker, groups[group]))
                if number % COUNT_STEP == 0:
                    yield
        for number, group in enumerate(sorted(uneasy & groups.keys())):
            for broker in groups[group].hosts:
                if broker in self._reported:
                    self._add(broker, self._share(broker, groups[group]))
            if number % COUNT_STEP == 0:
                yield

    def knows(self, broker: BrokerId) -> bool:
        """Whether there is a recent report of the broker's disk."""
        return broker in self._reported

    def held_bytes(self, broker: BrokerId, partition: Partition) -> int:
        """The bytes that the broker has of a partition; 0 if it reported none."""
        return self._reported[broker].report.sizes.get(partition.group, 0)

    def other_bytes(self, broker: BrokerId) -> int:
        """The bytes on its disk beside the reported logs."""
        report = self._reported[broker].report
        return report.used_bytes - sum(report.sizes.values())

    def part_bytes(self, broker: BrokerId, percent: int) -> int:
        """This share of its disk, in bytes."""
        report = self._reported[broker].report
        return (report.used_bytes + report.free_bytes) * percent // 100

    def excess_bytes(self, broker: BrokerId) -> int:
        """How many more bytes must go until the low mark, beside the present moves."""
        return self._end[broker] - self.part_bytes(broker, self.low_percent)

    def free_bytes(self, broker: BrokerId) -> int:
        """How many bytes may come until the low mark; negative above it."""
        return self.part_bytes(broker, self.low_percent) - self._worst[broker]

    def has_room(self, broker: BrokerId, partition: Partition) -> bool:
        """Whether a copy stays below the low mark. Without a report that is unknown, and
        allowed."""
        if broker not in self._reported:
            return True
        return self._coming_bytes(broker, partition) <= self.free_bytes(broker)

    def used_ratio(self, broker: BrokerId, partition: Partition) -> float:
        """How full its disk is at the worst with a copy."""
        total = max(1, self.part_bytes(broker, 100))
        return (self._worst[broker] + self._coming_bytes(broker, partition)) / total

    def move(self, partition: Partition, target: Roles) -> None:
        """Count another requested target."""
        after = replace(partition, target=target.voters, target_observers=target.observers)
        for broker in {*partition.hosts, *after.hosts}:
            if broker in self._reported:
                was, then = self._share(broker, partition), self._share(broker, after)
                self._add(broker, (then[0] - was[0], then[1] - was[1]))

    def _coming_bytes(self, broker: BrokerId, partition: Partition) -> int:
        """The bytes that a copy adds. An earlier log in the report counts as gone already."""
        if broker in partition.hosts:
            return 0
        return max(self.sizes[partition.group], self.held_bytes(broker, partition))

    def _add(self, broker: BrokerId, share: tuple[int, int]) -> None:
        self._end[broker] += share[0]
        self._worst[broker] += share[1]

    def _share(self, broker: BrokerId, partition: Partition) -> tuple[int, int]:
        """(bytes at the end, at the worst) of one replica, beside what is in the report."""
        group, reported = partition.group, self._reported[broker]
        here = reported.report.sizes.get(group, 0)
        if broker not in partition.hosts:
            return -here, -here
        is_new = self._changed_ms.get(group, -1) >= reported.asked_ms
        is_coming = broker not in partition.roles.all or is_new
        lacking = max(0, self.sizes[group] - here) if is_coming else 0
        stays = broker in (partition.wanted if partition.is_moving else partition.roles).all
        return (lacking if stays else -here), lacking
