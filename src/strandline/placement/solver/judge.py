"""Judges existing replicas by the constraints that would place them.

Why:    the balancer moves only replicas that violate a policy; an operator needs the violations.
How:    Replicas are assigned to the groups of their role: as many as possible to groups whose
        static constraints they satisfy, the rest where there is room. Then each evaluator says
        which would not be eligible beside the others. If there is one, other assignments are tried.
Source: design section 7; decision 0008."""

from collections.abc import Mapping, Sequence

import msgspec

from strandline.model.cluster import Roles
from strandline.model.ids import BrokerId
from strandline.placement.constraints.contract import Seat, Seats, Violation
from strandline.placement.policy.document import Role
from strandline.placement.solver.orbits import Orbits
from strandline.placement.solver.plan import Plan
from strandline.placement.solver.search import ANY_COST, Search

SEATINGS_MAX = 5_000


class Judgement(msgspec.Struct, frozen=True):
    """The violations of one partition's replicas, and their cost."""

    violations: tuple[Violation, ...]
    unknown: tuple[BrokerId, ...]
    """Replicas on brokers that are no candidates."""
    surplus: tuple[BrokerId, ...]
    """Replicas that no rule requires."""
    missing: Mapping[int, int]
    """{group: how many of its replicas there are too few}"""
    cost: int
    """By the soft constraints; the best placement's is the least."""

    @property
    def is_right(self) -> bool:
        """Whether every hard constraint holds, with the required number of replicas."""
        return not (self.violations or self.unknown or self.surplus or self.missing)


def judge(plan: Plan, replicas: Sequence[tuple[BrokerId, Role]]) -> Judgement:
    """Judge the replicas of one partition, each with its role."""
    index = plan.universe.index
    known = [(index[broker], role) for broker, role in replicas if broker in index]
    seats, surplus = seat(plan, known)
    violations = _violations(plan, seats)
    if violations and (other := _right_seats(plan, known)) is not None:
        seats, surplus, violations = other, [], []
    taken = [group for _, group in seats]
    missing = {
        number: group.count - taken.count(number)
        for number, group in enumerate(plan.shape.groups)
        if taken.count(number) < group.count
    }
    return Judgement(
        violations=tuple(violations),
        unknown=tuple(broker for broker, _ in replicas if broker not in index),
        surplus=tuple(plan.universe.candidates[bit].id for bit in surplus),
        missing=missing,
        cost=plan.cost(seats),
    )


def _violations(plan: Plan, seats: Seats) -> list[Violation]:
    return [one for each in (*plan.static, *plan.hard) for one in each.violations(seats)]


def _right_seats(plan: Plan, replicas: Sequence[tuple[int, Role]]) -> list[Seat] | None:
    """Another assignment of the replicas to the groups that breaks nothing; None if there is
    none. It matters only if rules have spreads of their own."""
    groups = plan.shape.groups
    if len(groups) == 1 or len(replicas) != plan.shape.total(plan.shape.everyone):
        return None
    masks = {
        role: plan.universe.mask(bit for bit, of in replicas if of == role)
        for role in ("voter", "observer")
    }
    allowed = [mask & masks[group.role] for mask, group in zip(plan.allowed, groups, strict=True)]
    none_alike = Orbits(plan.universe, (), range(len(plan.universe.candidates)))
    search = Search(plan, none_alike, allowed=allowed, good_enough=ANY_COST, nodes_max=SEATINGS_MAX)
    return search.run().seats


def seated(replicas: Roles) -> list[tuple[BrokerId, Role]]:
    """The replicas, each with its role."""
    voters: list[tuple[BrokerId, Role]] = [(one, "voter") for one in replicas.voters]
    return [*voters, *((one, "observer") for one in replicas.observers)]


def seat(plan: Plan, replicas: Sequence[tuple[int, Role]]) -> tuple[list[Seat], list[int]]:
    """Assign replicas to groups; the second list has those without room."""
    groups = plan.shape.groups
    placed: dict[int, int] = {}

    def fits(position: int, tried: set[int]) -> bool:
        bit, role = replicas[position]
        for number, group in enumerate(groups):
            if group.role != role or number in tried or not plan.allowed[number] >> bit & 1:
                continue
            tried.add(number)
            within = [other for other, at in placed.items() if at == number]
            if len(within) < group.count:
                placed[position] = number
                return True
            for other in within:
                # The replica in that seat may fit another group.
                if fits(other, tried):
                    placed[position] = number
                    return True
        return False

    for position in range(len(replicas)):
        fits(position, set())
    surplus = []
    for position, (bit, role) in enumerate(replicas):
        if position in placed:
            continue
        room = (
            number
            for number, group in enumerate(groups)
            if group.role == role and list(placed.values()).count(number) < group.count
        )
        number = next(room, None)
        if number is None:
            surplus.append(bit)
        else:
            placed[position] = number
    return [(replicas[position][0], number) for position, number in placed.items()], surplus
