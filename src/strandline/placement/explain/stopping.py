"""Whether brokers may stop together now, and the effect on partitions while they are away. Pure.

Why:    before a restart an operator wants yes or no, and for a no the partitions behind it.
How:    the model of `survival.fates`, from the brokers that are down or behind now. A partition
        that continues by itself allows the stop. Others lose acks=all (a leader stays), the leader
        (no reads or writes), or every voter; acknowledged records return with the brokers.
Source: decisions 0011 and 0026."""

from collections.abc import Collection, Iterable
from enum import StrEnum

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.survival.course import Course
from strandline.placement.survival.courses import Rules
from strandline.placement.survival.fates import Fate, Fates
from strandline.placement.survival.replicas import Placement


class Lacks(StrEnum):
    """What a stopped broker takes from a partition, the least first."""

    ACKS_ALL = "acks=all"
    LEADER = "a leader"
    ALL = "every voter"


class Stop(msgspec.Struct, frozen=True):
    """What the stop of some brokers does."""

    brokers: tuple[BrokerId, ...]
    lacking: dict[Lacks, tuple[str, ...]]
    """{what is lacking: partitions that lack it, and have a replica there}"""
    stops_controller: bool
    """Whether the controller has no majority then."""
    appointed: tuple[str, ...]
    """Partitions that go on, once the controller has appointed a leader or observers stand in."""

    @property
    def is_ok(self) -> bool:
        """Whether all goes on without them."""
        return not self.lacking and not self.stops_controller


def stop_of(
    brokers: Collection[BrokerId],
    partitions: Iterable[tuple[str, Placement, Rules]],
    *,
    controllers: Collection[BrokerId] = (),
    down: Collection[BrokerId] = (),
    leaderless: Collection[str] = (),
) -> Stop:
    """`partitions`: [(name, its replicas at present, the rules of its topic)]; `controllers`: the
    controller's voters; `down`: brokers that are down before; `leaderless`: partitions whose leader
    does not answer: their replicas may be behind."""
    found: dict[Lacks, list[str]] = {}
    appointed: list[str] = []
    known: dict[object, Lacks | Course] = {}
    for name, placement, rules in partitions:
        if not any(one.broker in brokers for one in placement.voters):
            continue
        if name in leaderless:
            found.setdefault(Lacks.LEADER, []).append(name)
            continue
        fates = Fates(placement, rules)
        mask = fates.mask(brokers)
        least, promotion = rules.min_insync_replicas, rules.promotion
        key = fates.key, mask, least, promotion, rules.shrinks, rules.promises
        if key not in known:
            fate = fates.of(mask)
            known[key] = fate.course if fate.course.acts_alone else lacks_of(fate)
        what = known[key]
        if isinstance(what, Lacks):
            found.setdefault(what, []).append(name)
        elif what is not Course.ELECTION:
            appointed.append(name)
    return Stop(
        brokers=tuple(sorted(brokers)),
        lacking={one: tuple(found[one]) for one in Lacks if one in found},
        stops_controller=not {*brokers}.isdisjoint(controllers)
        and len({*controllers} - {*brokers, *down}) <= len(controllers) // 2,
        appointed=tuple(appointed),
    )


def lacks_of(fate: Fate) -> Lacks:
    """What a partition lacks that does not go on by itself."""
    if fate.course is Course.GONE:
        return Lacks.ALL
    leads = fate.left > fate.quorum.voters // 2 or fate.course is Course.LOWER
    return Lacks.ACKS_ALL if leads else Lacks.LEADER
