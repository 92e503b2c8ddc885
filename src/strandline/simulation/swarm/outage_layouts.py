"""Layouts: in which region each broker is, and on which brokers the largest group lies.

Why:    what the controller may decide depends on where the voters are, its own and the groups'.
Owns:   nothing.
Source: docs/decisions/0016, 0018, 0020 and 0027."""

from dataclasses import dataclass

FIVE_BROKERS = ("east", "west", "south", "east", "west")
SEVEN_BROKERS = ("east", "west", "south", "east", "west", "east", "west")
THREE_PAIRS = ("east", "west", "south", "east", "west", "south")


@dataclass(frozen=True, slots=True)
class Layout:
    """`regions`: where each broker is; the first three are the controller's voters. `voters` and
    `observers`: of the largest group that is made there. `weight`: how often it is drawn."""

    regions: tuple[str, ...]
    voters: tuple[int, ...]
    observers: tuple[int, ...] = ()
    weight: int = 0


LAYOUTS = (
    # Two and two, with and without a third site for the controller.
    Layout(("east", "west", "east", "west"), (1, 2, 3, 4), weight=2),
    Layout(FIVE_BROKERS, (1, 2, 4, 5), weight=4),
    # Two voters, and their observers beside them or across.
    Layout(FIVE_BROKERS, (1, 4), (2, 5), weight=6),
    Layout(FIVE_BROKERS, (1, 2), (4, 5), weight=6),
    # Two and one, and a replica that only watches.
    Layout(("east", "west", "east"), (1, 2, 3), weight=2),
    Layout(("east", "west", "south", "east"), (1, 2, 4), (3,), weight=4),
    # All in one region.
    Layout(("east", "east", "east", "east"), (1, 2, 3), (4,), weight=2),
    # Three regions.
    Layout(("east", "west", "south", "west"), (1, 2, 3), (4,), weight=4),
    # Two and a half data centres: two voters and an observer each, and a third site.
    Layout(SEVEN_BROKERS, (1, 4, 2, 5), (6, 7), weight=2),
)
TARGETED_FAULT_LAYOUTS = (LAYOUTS[1], LAYOUTS[1], LAYOUTS[-1])
"""Two and two voters, and a third site."""
HELD_LAYOUT = Layout(FIVE_BROKERS, (1, 2, 3))
"""A voter in each region, and brokers that could have the replicas of a region that is lost."""
LOSS_LAYOUTS = (
    Layout(FIVE_BROKERS, (1, 4, 5)),
    Layout(FIVE_BROKERS, (1, 4, 5), (2,)),
    Layout(FIVE_BROKERS, (1, 2, 4), (5,)),
    Layout(FIVE_BROKERS, (1, 2, 4, 5)),
    Layout(SEVEN_BROKERS, (1, 2, 4, 5, 6), (7,)),
)
"""A majority of the controller's voters is left of each of these."""
LOST_REGION_LAYOUTS = (
    Layout(THREE_PAIRS, (1, 2, 3), (4, 5, 6)),
    Layout(THREE_PAIRS, (1, 2, 3), (4, 5)),
    Layout(THREE_PAIRS, (1, 2), (4, 5)),
    Layout(THREE_PAIRS, (1, 4, 2, 5), (3, 6)),
    Layout(THREE_PAIRS, (1, 4, 2, 5, 3), (6,)),
)
"""Whichever region is lost, it has brokers enough to be down (`outage.brokers.min`)."""
ENDURANCE_LAYOUT = Layout(SEVEN_BROKERS, (1, 2, 6))
"""Two zones of it have two brokers."""
