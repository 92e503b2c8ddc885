"""The order in which the replicas of a group should become its leader.

Why:    the first candidate with all committed entries wins, so the order in which followers stand
        decides. It only sets time-outs: Raft decides who may be elected.
How:    the preferred replica first, then by rank, 0 first. Replicas of one rank are equal.
Owns:   nothing.
Source: design section 7; decision 0012."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from strandline.model.ids import NO_BROKER, BrokerId


@dataclass(frozen=True, slots=True)
class ElectionPriority:
    """`ranks`: {broker: its rank}; a broker that is not in it has rank 0."""

    preferred: BrokerId
    ranks: Mapping[BrokerId, int] = field(default_factory=dict)

    def order(self, broker: BrokerId) -> tuple[bool, int]:
        """The sort key of a broker, the best first."""
        return broker != self.preferred, self.ranks.get(broker, 0)

    def first(self, brokers: Iterable[BrokerId]) -> BrokerId:
        """The broker that should lead before all others of `brokers`; of equal ones the lowest
        id. NO_BROKER for none."""
        return min(brokers, key=lambda one: (self.order(one), one), default=NO_BROKER)

    def best(self, brokers: Iterable[BrokerId]) -> list[BrokerId]:
        """The brokers of the lowest rank, ascending; preference does not count."""
        found = sorted(brokers)
        least = min((self.ranks.get(one, 0) for one in found), default=0)
        return [one for one in found if self.ranks.get(one, 0) == least]

    def turn(self, broker: BrokerId, others: Iterable[BrokerId]) -> tuple[int, int]:
        """(how many ranks stand before `broker`, how many ranks there are) among it and `others`,
        the preferred broker apart."""
        if not self.ranks:
            return 0, 1
        of = self.ranks.get
        ranks = {of(one, 0) for one in others if one != self.preferred} | {of(broker, 0)}
        return sorted(ranks).index(of(broker, 0)), len(ranks)
