"""Which side of a partition continues while the link between two regions is cut, and others reach
both. Pure.

Why:    a region that is cut off is one side or the other; here a broker in a third region is on
        both sides, and hears all.
How:    of N voters a are in one of the two regions, b in the other one, c elsewhere; M is a
        majority.

            a + c >= M           a leader in the first region stays, with a + c; else it steps down,
                                 and a voter that has M is elected
            b + c >= M           the same from the other end
            neither              c is 0 and a is b: no voter is elected; the controller appoints one
                                 half

        The controller's voters divide in the same way. A controller led from one of the regions
        appoints that side, for it hears no other; led from elsewhere, it appoints the better side.
        A leader that needs the controller and does not reach it hands over to a voter that both
        sides hear.
            A leader elsewhere reaches all: nothing changes, so that is no case.
Source: decisions 0020 ("Cut off from each other"), 0025 (giving way) and 0026."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from strandline.model.ids import BrokerId
from strandline.placement.survival.replicas import Placement, Replica

THIRD = ""
"""Instead of a region: from where both are heard."""


@dataclass(frozen=True, slots=True)
class Side:
    """The side that continues. `lost`: the replicas that it does not hear; `without_controller`:
    the controller has no majority, or this side does not reach it."""

    lost: frozenset[BrokerId]
    without_controller: bool = False


Case = tuple[Side, ...]
"""What may come of a cut: that one of these sides goes on which fares best."""


def cases(placement: Placement, controllers: Sequence[Replica], *, shrinks: bool) -> Iterator[Case]:
    """For every pair of regions with voters, with a broker elsewhere, and for any leader.
    `shrinks`: whether voters may leave; a leader that has too few needs the controller for
    that. Empty if a broker has no region."""
    regions = {one.labels.region for one in (*placement.replicas, *controllers)}
    if THIRD in regions:
        return
    for pair in combinations(sorted({one.labels.region for one in placement.voters}), 2):
        if len(regions) > len(pair):
            yield from _of_pair(placement, controllers, pair, shrinks=shrinks)


def _of_pair(
    placement: Placement,
    controllers: Sequence[Replica],
    pair: tuple[str, str],
    *,
    shrinks: bool,
) -> Iterator[Case]:
    quorum = placement.quorum
    others = dict(zip(pair, reversed(pair), strict=True))
    within = {region: _inside(placement.voters, region) for region in pair}
    is_elsewhere = quorum.voters > sum(map(len, within.values()))
    places = _led_from(controllers, pair)
    hears = {region: quorum.voters - len(within[others[region]]) for region in pair}
    lost = {region: _inside(placement.replicas, others[region]) for region in pair}
    majority = quorum.voters // 2 + 1
    for region in pair:
        if hears[region] >= quorum.write_quorum:
            yield (Side(lost[region]),)
        elif hears[region] >= majority:
            for place in places or (None,):
                if not shrinks or place in (region, THIRD):
                    yield (Side(lost[region]),)
                elif place is not None and is_elsewhere:
                    yield (Side(frozenset()),)  # It gives way.
                else:
                    yield (Side(lost[region], without_controller=True),)
    if max(hears.values()) >= majority:
        return
    if not places:
        yield (Side(lost[pair[0]], without_controller=True),)
    for place in places:
        yield tuple(Side(lost[region]) for region in pair if place in (region, THIRD))


def _led_from(controllers: Sequence[Replica], pair: tuple[str, str]) -> list[str]:
    """Where the controller may be led from, of the two regions and elsewhere; from elsewhere where
    its voters are not known."""
    if not controllers:
        return [THIRD]
    counts = [len(_inside(controllers, region)) for region in pair]
    elsewhere = len(controllers) - sum(counts)
    places = [
        region
        for region, count in zip(pair, counts, strict=True)
        if count and count + elsewhere > len(controllers) // 2
    ]
    return [*places, THIRD] if elsewhere else places


def _inside(replicas: Collection[Replica], region: str) -> frozenset[BrokerId]:
    return frozenset(one.broker for one in replicas if one.labels.region == region)
