"""A controller, its balancer, and brokers whose disks hold what the state says they hold."""

from collections.abc import Sequence

from tests.controller.balancer.balancer_world import BalancerWorld, ids

from strandline.controller.balancer.fullness import LASTING_MS
from strandline.controller.reports import Report
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId

GB = 1_000_000_000
DISK_BYTES = 100 * GB


class DiskWorld(BalancerWorld):
    """Each disk holds 100 GB. `log_bytes`: how large each partition's log is; `foreign_bytes`: what
    else is on a disk; `copied`: which part of a copy under way has arrived; `silent`: who is up and
    tells nothing."""

    def __init__(self, regions: Sequence[str]) -> None:
        self.log_bytes: dict[GroupId, int] = {}
        self.foreign_bytes: dict[BrokerId, int] = {}
        self.copied = 0.0
        self.silent: set[BrokerId] = set()
        super().__init__(regions)

    def unrest(self) -> None:
        """One more broker is down: what is only better waits."""
        number = len(self.state.cluster.brokers) + 1
        self.add_broker(number, "east")
        self.down(number)

    def logs(self, name: str, replicas: Sequence[int], gigabytes: Sequence[int]) -> None:
        """A topic with a partition for each of these sizes, all on these brokers."""
        self.topic(name, partitions=len(gigabytes), replicas=replicas)
        partitions = self.state.cluster.topics[name].partitions
        for one, size in zip(partitions, gigabytes, strict=True):
            self.log_bytes[one.group] = size * GB

    def fill(self, gigabytes: Sequence[int]) -> None:
        """What else is on each disk, from the first one; and it stays so for more than a moment."""
        self.foreign_bytes = dict(enumerate((one * GB for one in gigabytes), start=1))  # type: ignore[arg-type]
        self.tell()
        self.wait(LASTING_MS)

    def held(self, broker: BrokerId) -> dict[GroupId, int]:
        """The logs on a broker's disk."""
        found = {}
        for group, one in self.state.cluster.groups.items():
            size = self.log_bytes.get(group, 0)
            if broker in one.roles.all:
                found[group] = size
            elif broker in one.hosts:
                found[group] = int(size * self.copied)
        return found

    def used_percent(self, broker: int) -> int:
        held = sum(self.held(BrokerId(broker)).values())
        return 100 * (held + self.foreign_bytes.get(BrokerId(broker), 0)) // DISK_BYTES

    def tell(self) -> None:
        """Brokers tell how it is now."""
        for broker in self.state.cluster.brokers:
            self.reports.pop(broker, None)
            if broker in self.alive and broker not in self.silent:
                held = self.held(broker)
                used = min(DISK_BYTES, sum(held.values()) + self.foreign_bytes.get(broker, 0))
                self.reports[broker] = Report(used, DISK_BYTES - used, held)

    def _look(self) -> None:
        self.tell()
        super()._look()

    def on(self, *brokers: int) -> list[Partition]:
        """What moves to or from these."""
        found = [self.state.cluster.groups[one] for one in sorted(self.state.cluster.moving)]
        return [one for one in found if set(ids(*brokers)) & {*one.adding, *one.removing}]
