"""Which holders of a group's log hear each other, and which side of them continues. Pure.

Why:    The controller may hear all voters of a group while they do not hear each other. If the link
        between two cities is cut and a third site reaches both, each side has half of four voters,
        and neither elects a leader.
How:    Brokers report which brokers they do not hear. Two are cut off from each other if one of
        them says so: votes and acknowledgements need both ways. A side is a largest set in which
        all hear each other; a broker that all hear is on every side. A group stands still if no
        side elects a leader by all voters that may be in force, and one of the sides may be
        appointed.
            Of the sides that may be appointed, one with enough copies for acks=all continues. If
        there is none, the side with the preferred leader continues, which placement names first; if
        no side has it, the one with more voters.
            Reports may be old or wrong. They decide when the controller tries a grant and which
        members then vote. The register alone decides which member may be appointed (`arbiter`).
            After a declared loss all that are left are needed, and there is one side.
Owns:   nothing.
Source: decision 0020, "Cut off from each other"."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from strandline.controller.arbitration.arbiter import register_of
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId

Cuts = Mapping[BrokerId, frozenset[BrokerId]]
"""{broker: those that it does not hear, or that do not hear it}, without empty entries."""
Pattern = tuple[tuple[int, ...], int, int | tuple[tuple[int, ...], ...]]
"""Of a partition: what each of its hosts is like, its floor, and how many of them, or which, may
vote."""
UNABLE = -1


@dataclass(frozen=True, slots=True)
class Need:
    """The needs of acks=all: the number of voters, and whether observers may replace voters that a
    side lacks."""

    voter_count: int
    promotes: bool


@dataclass(slots=True)
class Reach:
    """The brokers that the controller hears, and which of these are cut off from each other."""

    heard: frozenset[BrokerId]
    cuts: Cuts = field(default_factory=dict)
    # {broker: a number for all that are cut off from the same ones}; these hear each other.
    _kinds: dict[BrokerId, int] = field(init=False, compare=False, repr=False)
    # {pattern: whether such a partition stands still}; there are few among thousands of partitions.
    _known: dict[Pattern, bool] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        numbers: dict[frozenset[BrokerId], int] = {}
        self._kinds = {
            one: numbers.setdefault(others, len(numbers) + 1) for one, others in self.cuts.items()
        }
        self._known = {}

    def is_whole(self, brokers: Collection[BrokerId]) -> bool:
        """Whether none of these is cut off from another one of them."""
        cuts = self.cuts
        return not cuts or all(cuts[one].isdisjoint(brokers) for one in cuts.keys() & set(brokers))

    def stands_still(self, partition: Partition, able: Collection[BrokerId]) -> bool:
        """Whether these members can elect no leader, and one of them may be appointed."""
        if partition.is_declared:
            return self._stands_still(partition, able)
        pattern = self._pattern(partition, able)
        known = self._known.get(pattern)
        if known is None:
            known = self._known[pattern] = self._stands_still(partition, able)
        return known

    def _pattern(self, partition: Partition, able: Collection[BrokerId]) -> Pattern:
        hosts, kinds = partition.hosts, self._kinds
        alike = tuple([kinds.get(one, 0) if one in able else UNABLE for one in hosts])
        if not (partition.target or partition.acting or partition.pending or partition.doubtful):
            # The voters are the first of `hosts`.
            return alike, partition.floor, len(partition.replicas)
        places = {one: place for place, one in enumerate(hosts)}
        possible = tuple(
            tuple([places.get(one, UNABLE) for one in voters]) for voters in partition.possible
        )
        return alike, partition.floor, possible

    def _stands_still(self, partition: Partition, able: Collection[BrokerId]) -> bool:
        possible = register_of(partition).possible
        for side in self._sides(partition, able):
            if all(one.wins_election(side) for one in possible):
                return False
        return self.may_appoint(partition, able)

    def may_appoint(self, partition: Partition, able: Collection[BrokerId]) -> bool:
        """Whether one side of these may be appointed."""
        register = register_of(partition)
        return any(register.may_appoint(side) for side in self._sides(partition, able))

    def side(
        self, partition: Partition, able: Collection[BrokerId], need: Need
    ) -> frozenset[BrokerId]:
        """The side of these that continues; empty if none may be appointed."""
        register = register_of(partition)
        sides = [one for one in self._sides(partition, able) if register.may_appoint(one)]
        if len(sides) < 2:
            return sides[0] if sides else frozenset()
        voters = {one for voters in partition.possible for one in voters} | {*partition.replicas}
        copies = voters | {*partition.observers} if need.promotes else voters
        places = {one: place for place, one in enumerate(partition.hosts)}
        first = {one: place for place, one in enumerate(partition.replicas)}

        def rank(side: frozenset[BrokerId]) -> tuple[bool, int, int, list[int]]:
            return (
                len(side & copies) < need.voter_count,
                min((first[one] for one in side if one in first), default=len(first)),
                -len(side & voters),
                sorted(places[one] for one in side),
            )

        return min(sides, key=rank)

    def _sides(self, partition: Partition, able: Collection[BrokerId]) -> list[frozenset[BrokerId]]:
        members = frozenset(one for one in partition.hosts if one in able)
        return [members] if partition.is_declared else sides_of(members, self.cuts)


def cuts_of(
    silent: Mapping[BrokerId, Collection[BrokerId]], heard: Collection[BrokerId]
) -> dict[BrokerId, frozenset[BrokerId]]:
    """The cuts between brokers that are heard. `silent`: {reporting broker: brokers that it does
    not hear}."""
    cuts: dict[BrokerId, set[BrokerId]] = {}
    for one, others in silent.items():
        if one not in heard:
            continue
        for other in others:
            if other != one and other in heard:
                cuts.setdefault(one, set()).add(other)
                cuts.setdefault(other, set()).add(one)
    return {one: frozenset(others) for one, others in cuts.items()}


def sides_of(members: frozenset[BrokerId], cuts: Cuts) -> list[frozenset[BrokerId]]:
    """The largest sets of these in which no two are cut off from each other."""
    found = sorted(_split(members, cuts), key=len, reverse=True)
    sides: list[frozenset[BrokerId]] = []
    for one in found:
        if not any(one <= side for side in sides):
            sides.append(one)
    return sides


def _split(members: frozenset[BrokerId], cuts: Cuts) -> list[frozenset[BrokerId]]:
    """Each largest set is among these: of each cut it lacks one end or the other."""
    for one in sorted(members):
        others = cuts.get(one, frozenset())
        if not others.isdisjoint(members):
            return _split(members - others, cuts) + _split(members - {one}, cuts)
    return [members]
