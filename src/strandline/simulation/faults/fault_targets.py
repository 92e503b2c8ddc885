"""What several kinds of faults share: how they end, and how they strike several brokers or links.

Owns:   nothing.
Source: design section 10."""

from collections.abc import Callable, Sequence

from strandline.model.ids import BrokerId
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.host import SimHost
from strandline.simulation.world.member import Member

End = Callable[[], None]


def over() -> None:
    """How to end a fault that has ended by itself."""


def fail_several(
    cluster: SimCluster, brokers: Sequence[BrokerId], fail: Callable[[SimHost[Member]], None]
) -> End:
    """Strike all of them; in the end they are started."""
    for broker in brokers:
        fail(cluster.hosts[broker])

    def end() -> None:
        for broker in brokers:
            cluster.restart(broker)

    return end


def cut(cluster: SimCluster, ways: Sequence[tuple[BrokerId, BrokerId]]) -> End:
    """Cut these ways, until the end."""
    text = ", ".join(f"{source} -> {target}" for source, target in ways)
    cluster.trace.add("world", f"cut: {text}")
    for source, target in ways:
        cluster.fabric.cut(source, target)

    def end() -> None:
        cluster.trace.add("world", f"healed: {text}")
        for source, target in ways:
            cluster.fabric.heal(source, target)

    return end
