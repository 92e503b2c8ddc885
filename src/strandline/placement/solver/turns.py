"""Chooses the rule whose replica goes where leaders should be: rules for voters take turns.

Why:    one replica there is enough. If always the rule with the fewest spare brokers placed it,
        preferred brokers that only other rules allow would hold nothing.
How:    In a rule's turn, its first replica goes where leaders should be, before all others are
        placed. The caller tries each rule's turn, and takes the one that loads the brokers least. A
        broker with which no placement is as good as the best one leaves that rule's turn for good,
        together with the brokers that are interchangeable with it.
Owns:   which brokers take part in which turn.
Source: decision 0008."""

from strandline.placement.constraints.contract import Seat
from strandline.placement.solver.orbits import Orbits
from strandline.placement.solver.plan import Plan
from strandline.placement.solver.search import group_order


class Turns:
    """The turns of one plan and its best placement; none if only one rule can take the place."""

    def __init__(self, plan: Plan, best: list[Seat], orbits: Orbits) -> None:
        groups = plan.shape.groups
        voters = plan.universe.mask(bit for bit, group in best if groups[group].is_voter)
        wanted = next((tier for tier in plan.leader_tiers if tier & voters), 0)
        masks = {
            group: plan.allowed[group] & wanted
            for group in group_order(plan, plan.allowed)
            if groups[group].is_voter and plan.allowed[group] & wanted
        }
        self._orbits = orbits
        self._masks = masks if len(masks) > 1 else {}

    def left(self) -> list[tuple[int, int]]:
        """(a group, the brokers that may take its preferred place), the scarcest group first."""
        return list(self._masks.items())

    def bar(self, seat: Seat) -> None:
        """Take this broker, and those interchangeable with it, out of the turn of this group."""
        bit, group = seat
        self._masks[group] &= ~self._orbits.peers(bit)
        if not self._masks[group]:
            del self._masks[group]
