"""Preferred leaders of a topic that pile up on one broker. Pure.

Why:    a topic without a policy keeps the order that it was given, so the balancer does not even
        out its leaders; an operator should see it.
Source: decision 0012."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from strandline.model.ids import BrokerId

EXCESS_MIN = 2
"""So many more than its share a broker is preferred for."""


class Pile(NamedTuple):
    """A broker that is the preferred leader of `led` partitions; `share`: of an even spread."""

    broker: BrokerId
    led: int
    share: int


def pile_of(partitions: Sequence[Sequence[BrokerId]]) -> Pile | None:
    """The largest pile, from the voters of each partition, the preferred leader first; None where
    they are even enough."""
    led = Counter(voters[0] for voters in partitions if voters)
    if not led:
        return None
    brokers = {one for voters in partitions for one in voters}
    broker, count = max(led.items(), key=lambda one: (one[1], -one[0]))
    share = -(-len(partitions) // len(brokers))
    return Pile(broker, count, share) if count >= share + EXCESS_MIN else None
