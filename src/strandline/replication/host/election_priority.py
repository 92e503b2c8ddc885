"""Who should lead a group, and who if that cannot be.

Why:    when a leader is gone, whoever stands first is elected, if it has what is committed: so the
        order in which followers stand is the order in which they are preferred. Only time-outs
        follow it: who may be elected is Raft's to say.
How:    the preferred replica; then by rank, 0 first. Those of one rank are equal.
Owns:   nothing.
Source: design section 7; decision 0012."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from strandline.model.ids import BrokerId


@dataclass(frozen=True, slots=True)
class ElectionPriority:
    """`ranks`: {broker: its rank}; one that is not in it has rank 0."""

    preferred: BrokerId
    ranks: Mapping[BrokerId, int] = field(default_factory=dict)

    def order(self, broker: BrokerId) -> tuple[bool, int]:
        """What brokers are sorted by, the best first."""
        return broker != self.preferred, self.ranks.get(broker, 0)

    def best(self, brokers: Iterable[BrokerId]) -> list[BrokerId]:
        """Those of the lowest rank, whether they are preferred besides or not; ascending."""
        found = sorted(brokers)
        least = min((self.ranks.get(one, 0) for one in found), default=0)
        return [one for one in found if self.ranks.get(one, 0) == least]

    def turn(self, broker: BrokerId, others: Iterable[BrokerId]) -> tuple[int, int]:
        """(how many ranks go before a broker that is not preferred, how many ranks there are), with
        these others."""
        if not self.ranks:
            return 0, 1
        of = self.ranks.get
        ranks = {of(one, 0) for one in others if one != self.preferred} | {of(broker, 0)}
        return sorted(ranks).index(of(broker, 0)), len(ranks)
