"""Which replicas leave disks that are too full, and where they go. Pure.

Why:    a full disk stops everything on it, while others have room.
How:    Each such disk gives up replicas until the low mark; those that leave already count
        (`disks`). First choice: the smallest replica that is enough alone, unless it is more than
        twice as large as needed and smaller ones together would do. Else: the largest that is not
        too much.
        It goes to a broker that may take its place by the hard constraints and whose disk stays
        below the low mark: at no higher soft cost while there is such a replica, then at the least.
        Without a policy the spread gets no worse. Between equals, the emptiest disk wins.
            No disk fills above the mark down to which disks are relieved, so relief ends. A replica
        that the soft rules prefer elsewhere returns only if there is room (`round`).
Owns:   nothing.
Source: decision 0010."""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from strandline.controller.balancer.disks import Room
from strandline.controller.balancer.evenness import Movable
from strandline.controller.balancer.needs import place_of
from strandline.controller.balancer.plans import Plans
from strandline.controller.balancer.reasons import Wait
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import BrokerId, GroupId
from strandline.placement.explain.amounts import format_bytes
from strandline.placement.solver.judge import judge, seated

SEARCHES_MAX = 200
"""Of places for one replica, in one round. They are remembered, so that the next one makes
others."""


_Candidate = tuple[int, GroupId, Movable]
"""(its bytes on the disk, group, the partition)"""


@dataclass(frozen=True, slots=True)
class Relieved:
    """A replica that should go, its target, and the reason to report while it waits."""

    partition: Partition
    target: Roles
    text: str


@dataclass(slots=True)
class Stuck:
    """Partitions of one disk that should leave it and cannot; empty if the cause is no
    partition."""

    wait: Wait
    partitions: list[Partition] = field(default_factory=list)


@dataclass(slots=True)
class Relief:
    """One round of relief. `takers`: brokers that may get replicas; `left_alone`: {group: why none
    of its replicas moves}. Before the next step the caller counts each finding in `room`, whether
    the replica moves now or waits."""

    room: Room
    plans: Plans
    takers: frozenset[BrokerId]
    up: frozenset[BrokerId]
    led: Mapping[BrokerId, int]
    high_percent: int
    used_percent: Mapping[BrokerId, int]
    left_alone: Mapping[GroupId, Wait]
    search_count: int = 0
    is_cut: bool = False
    """Whether the round skipped searches."""
    _gone: set[GroupId] = field(default_factory=set)

    def steps(
        self,
        sources: Collection[BrokerId],
        spared: Collection[BrokerId],
        held: Mapping[BrokerId, Sequence[Movable]],
    ) -> Iterator[Relieved | Stuck | None]:
        """The replicas that should go, from the fullest disk on, and those that are stuck; None for
        a step without a result. `spared`: brokers in maintenance; `held`: {broker: the replicas of
        it that may move}."""
        for source in sorted(sources, key=lambda one: (-self.used_percent.get(one, 0), one)):
            hindrance = self._hindrance(source, spared)
            if hindrance:
                yield Stuck(("disk-high", f"{self.said(source)}; {hindrance}"))
            else:
                yield from self._relieve(source, held.get(source, ()))

    def said(self, source: BrokerId) -> str:
        """In words: how full a disk is, and how full it should be."""
        return said(source, self.used_percent.get(source, 0), self.room.low_percent)

    def _hindrance(self, source: BrokerId, spared: Collection[BrokerId]) -> str:
        if source in spared:
            return "it is in maintenance, and left alone"
        if source not in self.up or not self.room.knows(source):
            return "the broker does not answer"
        others = self.room.other_bytes(source)
        if others > self.room.part_bytes(source, self.high_percent):
            return (
                f"{format_bytes(others)} there are no logs of partitions: no move would bring it "
                f"below {self.high_percent} %"
            )
        return ""

    def _relieve(
        self, source: BrokerId, held: Sequence[Movable]
    ) -> Iterator[Relieved | Stuck | None]:
        if self.room.excess_bytes(source) <= 0:
            yield Stuck(("disk-high", f"{self.said(source)}; what goes already is enough"))
            return
        waits: dict[Wait, list[Partition]] = {}
        able: list[_Candidate] = []
        for one in held:
            partition = one.partition
            size = self.room.held_bytes(source, partition)
            if size <= 0 or partition.group in self._gone:
                continue
            if wait := self._wait_of(partition):
                waits.setdefault(wait, []).append(partition)
            else:
                able.append((size, partition.group, one))
        yield None
        for is_dearer in (False, True):
            able.sort(key=lambda one: one[:2])
            sizes = [one[0] for one in able]
            refused: list[_Candidate] = []
            while able and (excess := self.room.excess_bytes(source)) > 0:
                number = _choice(sizes, excess)
                sizes.pop(number)
                choice = able.pop(number)
                taker = self._taker(choice[2], source, is_dearer=is_dearer)
                if taker is None:
                    refused.append(choice)
                    yield None
                else:
                    yield self._moved(choice[2], source, taker)
            if self.is_cut or self.room.excess_bytes(source) <= 0:
                return
            able += refused
        yield from self._stuck(source, able, waits)

    def _wait_of(self, partition: Partition) -> Wait | None:
        if partition.group in self.left_alone:
            return self.left_alone[partition.group]
        away = [one for one in partition.roles.all if one not in self.up]
        return ("broker-down", f"broker {away[0]} is down") if away else None

    def _moved(self, one: Movable, source: BrokerId, taker: BrokerId) -> Relieved:
        partition = one.partition
        after = partition.roles.exchanged(source, taker)
        target = one.wanted.lead_first(after, self.led, present=partition.replicas[0])
        self._gone.add(partition.group)
        return Relieved(partition, target, self.said(source))

    # ---- targets -----------------------------------------------------------------------------

    def _taker(self, one: Movable, source: BrokerId, *, is_dearer: bool) -> BrokerId | None:
        """The broker that gets its place; None if none can."""
        partition, room = one.partition, self.room
        roomy = [
            broker
            for broker in self.takers
            if room.knows(broker) and room.has_room(broker, partition)
        ]
        if not roomy or not set(roomy).difference(partition.roles.all):
            return None
        places = self._places(one, source)
        now = one.wanted.cost(partition.roles)
        able = [
            (places[broker], room.used_ratio(broker, partition), broker)
            for broker in roomy
            if broker in places and (is_dearer or places[broker] <= now)
        ]
        return min(able)[2] if able else None

    def _places(self, one: Movable, source: BrokerId) -> Mapping[BrokerId, int]:
        """{broker that may have the place by the hard constraints, up or down, full or not: the
        cost of the placement}"""
        replicas, wanted = one.partition.roles, one.wanted
        key = wanted, replicas, source
        if key in self.plans.places:
            return self.plans.places[key]
        if self.search_count >= SEARCHES_MAX:
            self.is_cut = True
            return {}
        self.search_count += 1
        found: dict[BrokerId, int] = {}
        cost_max = None if wanted.has_policy else wanted.cost(replicas)
        for broker in self.plans.ids:
            if broker in replicas.all or broker in self.plans.lost:
                continue
            judged = judge(wanted.plan(), seated(replicas.exchanged(source, broker)))
            if judged.is_right and (cost_max is None or judged.cost <= cost_max):
                found[broker] = judged.cost
        self.plans.places[key] = found
        return found

    # ---- texts -------------------------------------------------------------------------------

    def _stuck(
        self,
        source: BrokerId,
        able: Sequence[_Candidate],
        waits: Mapping[Wait, list[Partition]],
    ) -> Iterator[Stuck | None]:
        head, mark = self.said(source), f"below {self.room.low_percent} %"
        for (code, text), partitions in waits.items():
            yield Stuck((code, f"{head}; {text}"), partitions)
        free = {one: self.room.free_bytes(one) for one in self.takers if self.room.knows(one)}
        if not any(one > 0 for one in free.values()):
            text = f"{head}; no other broker has a disk {mark} that may be given replicas"
            yield Stuck(("disk-high", text), [one.partition for _, _, one in able])
            return
        if not able and not waits:
            yield Stuck(("disk-high", f"{head}; nothing more of it can be moved now"))
        kinds: dict[str, list[Movable]] = {}
        for _, _, one in able:
            place = place_of(one.wanted, source, self._places(one, source))
            kinds.setdefault(place, []).append(one)
            yield None
        for place, some in kinds.items():
            least = min(self.room.sizes[one.partition.group] for one in some)
            needed = f"{head}; needs a broker{place} with {format_bytes(least)} free {mark}"
            yield Stuck(("disk-high", needed), [one.partition for one in some])


def said(source: BrokerId, used_percent: int, low_percent: int) -> str:
    """In words: how full a disk is, and how full it should be."""
    return f"disk of broker {source} is {used_percent} % full, {low_percent} is wanted"


def _choice(sizes: Sequence[int], excess: int) -> int:
    """The one of these, ascending, that goes first if so many bytes must go."""
    enough = bisect_left(sizes, excess)
    if enough < len(sizes) and (sizes[enough] <= 2 * excess or sum(sizes[:enough]) < excess):
        return enough
    return enough - 1 if enough else 0
