"""What several kinds of faults have in common: how they end, and how they strike many at once.

Owns:   nothing.
Source: design section 10."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from strandline.model.ids import BrokerId

if TYPE_CHECKING:
    from strandline.simulation.world.host import SimHost
    from strandline.simulation.world.member import Member
    from strandline.simulation.world.world import World

End = Callable[[], None]


def over() -> None:
    """How to end a fault that has ended by itself."""


def strike_several(
    world: "World", brokers: Sequence[BrokerId], strike: Callable[["SimHost[Member]"], None]
) -> End:
    """Strike all of them; in the end they are started."""
    for broker in brokers:
        strike(world.hosts[broker])

    def end() -> None:
        for broker in brokers:
            world.restart(broker)

    return end


def cut(world: "World", ways: Sequence[tuple[BrokerId, BrokerId]]) -> End:
    """Cut these ways, until the end."""
    text = ", ".join(f"{source} -> {target}" for source, target in ways)
    world.trace.add("world", f"cut: {text}")
    for source, target in ways:
        world.fabric.cut(source, target)

    def end() -> None:
        world.trace.add("world", f"healed: {text}")
        for source, target in ways:
            world.fabric.heal(source, target)

    return end
