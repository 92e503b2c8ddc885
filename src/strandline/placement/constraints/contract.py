"""The interface of a constraint: a factory that knows the universe, and an evaluator over replicas.

Why:    placing a new partition, judging an old one and explaining either must never disagree.
How:    Factory.prepare(shape) -> evaluator, once for a decision. The evaluator takes the replicas
        chosen so far ("seats", which may be all of them but one) and answers for all candidates at
        once, bit i for candidate i. A hard one says which are eligible for the next seat of a
        group. A soft one gives a cost in 0 .. 1,000, a lower bound of all completions, and which
        candidates would add least.
Owns:   nothing; each decision prepares its own evaluators.
Source: design section 7; decision 0008."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.constraints.reasons import Reason
from strandline.placement.policy.document import Role
from strandline.placement.topology.universe import Universe

COST_MAX = 1_000

Seat = tuple[int, int]
"""A replica: (the candidate's bit, the number of its group)."""
Seats = Sequence[Seat]


@dataclass(frozen=True, slots=True)
class Group:
    """Replicas that one rule requires. `rule` is its place in the policy, -1 for the default."""

    role: Role
    count: int
    rule: int = -1

    @property
    def is_voter(self) -> bool:
        """Whether its replicas count in elections and commits."""
        return self.role == "voter"


class Shape:
    """The problem: groups of replicas over a universe. Scopes are masks over groups."""

    def __init__(self, universe: Universe, groups: Sequence[Group], *, write_quorum: int) -> None:
        self.universe = universe
        self.groups = tuple(groups)
        self.write_quorum = write_quorum
        """Voters that a write needs."""
        self.everyone = (1 << len(groups)) - 1
        self.voters_scope = sum(1 << n for n, group in enumerate(groups) if group.is_voter)
        self.voters = self.total(self.voters_scope)

    def total(self, scope: int) -> int:
        """How many seats the groups of a scope have."""
        return sum(group.count for n, group in enumerate(self.groups) if scope >> n & 1)


class Violation(msgspec.Struct, frozen=True):
    """A constraint that does not hold, and the brokers whose replicas are not eligible for it."""

    constraint: str
    reason: Reason
    brokers: tuple[BrokerId, ...]


class HardEvaluator:
    """Which candidates are eligible. Subclasses set `name`, `scope`, and `labels` if they count
    by domains."""

    name = ""
    title = ""
    """The text for users, if the name is not clear enough; see `text`."""
    labels: tuple[str, ...] = ()
    is_static = False
    """Whether the seats do not matter."""

    def __init__(self, shape: Shape, scope: int) -> None:
        self.shape = shape
        self.universe = shape.universe
        self.scope = scope
        self.total = shape.total(scope)

    @property
    def text(self) -> str:
        """The text for users."""
        return self.title or self.name

    def eligible(self, seats: Seats, group: int) -> int:
        """The candidates that may take the next seat of a group, by this constraint alone.

        The constraint must hold with the last seat of the scope; with earlier ones it must still be
        possible."""
        raise AssertionError(f"{type(self).__name__} answers nothing")

    def reason(self, seats: Seats, group: int, bit: int) -> Reason:
        """Why a candidate is not eligible; callers pass only such candidates."""
        raise AssertionError(f"{type(self).__name__} gives no reason")

    def most(self, allowed: int) -> int:
        """No more seats of the scope than this can be taken, by `allowed` candidates."""
        return allowed.bit_count()

    def attribute(self, bit: int) -> Hashable:
        """What else about a candidate matters, beside its domains by `labels`."""
        return None

    def violations(self, seats: Seats) -> list[Violation]:
        """The seats that would not be eligible beside the others, grouped by reason. If other
        brokers could take some of them, only those; else all."""
        found: dict[Reason, list[BrokerId]] = {}
        hopeless: dict[Reason, list[BrokerId]] = {}
        for position, (bit, group) in enumerate(seats):
            others = [*seats[:position], *seats[position + 1 :]]
            eligible = self.eligible(others, group)
            if not eligible >> bit & 1:
                reason = self.reason(others, group, bit)
                listed = found if eligible else hopeless
                listed.setdefault(reason, []).append(self.universe.candidates[bit].id)
        return [
            Violation(self.name, reason, tuple(ids)) for reason, ids in (found or hopeless).items()
        ]


class SoftEvaluator:
    """Which candidates are preferred. A full set of seats costs 0 .. COST_MAX times the weight."""

    name = ""
    labels: tuple[str, ...] = ()
    bound_by = ""
    """The label on which alone the cost depends, if `bound` does not bound it (see
    `solver.floors`)."""

    def __init__(self, shape: Shape, scope: int, weight: int) -> None:
        self.shape = shape
        self.universe = shape.universe
        self.scope = scope
        self.weight = weight
        self.total = shape.total(scope)

    def cost(self, seats: Seats) -> int:
        """The cost of these seats, without the weight, when all are taken."""
        raise AssertionError(f"{type(self).__name__} costs nothing")

    def bound(self, seats: Seats, allowed: int) -> int:
        """No completion of these seats by `allowed` candidates costs less."""
        return 0

    def prefer(self, seats: Seats, group: int, mask: int) -> int:
        """The candidates of `mask` that add least, as far as known; not empty unless `mask` is."""
        return mask

    def attribute(self, bit: int) -> Hashable:
        """What else about a candidate matters, beside its domains by `labels`."""
        return None


class HardConstraint(Protocol):
    """A factory of hard evaluators."""

    def prepare(self, shape: Shape) -> HardEvaluator:
        """The evaluator for one decision."""
        ...


class SoftConstraint(Protocol):
    """A factory of soft evaluators."""

    def prepare(self, shape: Shape) -> SoftEvaluator:
        """The evaluator for one decision."""
        ...
