"""All best placements, up to exchanges of equal brokers, and the next one by the present loads.

Why:    one replica after the other, each to the emptiest broker, is not always even: in small
        clusters without equal brokers, the first choice limits the next ones.
How:    An exact search lists the placements that cost least, one of those that are each other's
        image. To the loads only the number of replicas for each kind of brokers matters: a pattern.
        The next one loads the kinds least (for the sum of the squares of the loads that is the
        steepest way down); the caller chooses among equals within a kind.
Owns:   the replicas given to each kind.
Source: decision 0008."""

from collections import Counter
from collections.abc import Iterator, Sequence

from strandline.placement.constraints.contract import Seat, Seats
from strandline.placement.solver.orbits import Orbits
from strandline.placement.solver.plan import Plan
from strandline.placement.solver.search import Found, Search

PATTERNS_MAX = 100
"""More than that are not asked: among so many, load alone decides well mostly."""
PLACEMENT_NODES_MAX = 1_000


class Patterns:
    """For one plan and its best placement."""

    def __init__(self, seats: Sequence[list[Seat]], orbits: Orbits) -> None:
        self._kinds = orbits.kinds
        self._sizes = Counter(self._kinds)
        self._given: Counter[int] = Counter()
        by_kinds: dict[tuple[tuple[int, int], ...], list[Seat]] = {}
        for one in seats:
            by_kinds.setdefault(tuple(sorted(self._counts(one).items())), one)
        self._patterns = list(by_kinds.items())

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._patterns)

    def by_load(self) -> Iterator[tuple[float, list[Seat]]]:
        """A placement of each pattern, with what its brokers were given together, on average over
        its images; first that of kinds whose brokers were given least."""
        load = {kind: self._given[kind] / size for kind, size in self._sizes.items()}
        priced = [
            (sum(count * load[kind] for kind, count in pattern), number)
            for number, (pattern, _) in enumerate(self._patterns)
        ]
        for price, number in sorted(priced):
            yield price, self._patterns[number][1]

    def give(self, seats: Seats) -> None:
        """A partition was placed so."""
        self._given.update(self._counts(seats))

    def _counts(self, seats: Seats) -> Counter[int]:
        return Counter(self._kinds[bit] for bit, _ in seats)


def patterns_of(plan: Plan, best: Found, orbits: Orbits) -> Patterns | None:
    """The patterns, None where there are too many, or it is not proved which are best."""
    if not best.is_proved:
        return None
    # A few placements tell mostly that there are too many; each placement is a step at least.
    for good_max in (PATTERNS_MAX + 1, PLACEMENT_NODES_MAX + 1):
        found = Search(
            plan,
            orbits,
            good_enough=best.cost,
            good_max=good_max,
            nodes_max=PLACEMENT_NODES_MAX,
        ).run()
        patterns = Patterns(found.good, orbits)
        if not found.is_proved or not 1 <= patterns.count <= PATTERNS_MAX:
            return None
        if len(found.good) < good_max:
            break
    return patterns
