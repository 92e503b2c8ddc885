"""Survive: the worst such loss leaves a write quorum of voters.

How:    One voter more makes the worst loss worse by one at most. So all candidates are eligible
        while it is below the limit; at the limit, those whose domains would make it worse are not.
        For one level of which f domains are lost, these are the domains at least as full as the
        f-th fullest. For several levels, candidates differ by the touched domains that they are in,
        and one of each kind is tried."""

from dataclasses import dataclass

from strandline.placement.constraints.contract import HardEvaluator, Seats, Shape
from strandline.placement.constraints.reasons import Reason, because
from strandline.placement.policy.document import Goal, goal_levels
from strandline.placement.policy.goals import format_goal
from strandline.placement.survival.losses import LostDomains, worst_loss
from strandline.placement.topology.labels import BROKER_LABEL


@dataclass(frozen=True, slots=True)
class Survive:
    """The voters survive the goal, and writes continue."""

    goal: Goal

    def prepare(self, shape: Shape) -> HardEvaluator:
        """The evaluator for the voters."""
        return _Survive(shape, self.goal)


class _Survive(HardEvaluator):
    def __init__(self, shape: Shape, goal: Goal) -> None:
        super().__init__(shape, shape.voters_scope)
        self.name = f"survive {format_goal(goal)}"
        losses = goal_levels(goal)
        self._goal = format_goal(goal)
        self._limit = shape.voters - shape.write_quorum
        self._brokers = losses.pop(BROKER_LABEL, 0)
        self._levels = [(self.universe.domains(level), count) for level, count in losses.items()]
        self.labels = tuple(losses)

    def eligible(self, seats: Seats, group: int) -> int:
        if not self.scope >> group & 1:
            return self.universe.all
        chosen = self._chosen(seats)
        lost = self._lost(chosen)
        if lost < self._limit:
            return self.universe.all
        if lost > self._limit:
            return 0
        return self._left_at_the_limit(chosen)

    def reason(self, seats: Seats, group: int, bit: int) -> Reason:
        lost = self._lost(self._chosen(seats) | 1 << bit)
        return because("goal", goal=self._goal, lost=lost, limit=self._limit)

    def most(self, allowed: int) -> int:
        if not self._levels:
            return allowed.bit_count() if self._brokers <= self._limit else 0
        if self._least_loss(allowed) > self._limit:
            return 0
        most = allowed.bit_count()
        others = self._brokers + sum(count for _, count in self._levels)
        for domains, count in self._levels:
            # Of this level `count` domains are lost, and one voter at least by each other loss.
            limit = self._limit - (others - count)
            sizes = sorted(((mask & allowed).bit_count() for mask in domains.masks), reverse=True)
            each = limit // count
            rest = sum(min(size, each) for size in sizes[count:])
            most = min(most, max(0, min(limit, sum(sizes[:count]))) + rest if limit >= count else 0)
        return most

    def _least_loss(self, allowed: int) -> int:
        """How many voters the goal takes at least, with voters as even as possible: of D domains
        the f fullest hold f / D of the rest, or more."""
        least = 0
        for levels in (self._levels, self._levels[::-1]):
            lost = 0
            for domains, count in levels:
                there = sum(1 for mask in domains.masks if mask & allowed)
                if there:
                    lost += -(-(self.total - lost) * min(count, there) // there)
            least = max(least, min(lost + self._brokers, self.total))
        return least

    def _chosen(self, seats: Seats) -> int:
        chosen = 0
        for bit, group in seats:
            if self.scope >> group & 1:
                chosen |= 1 << bit
        return chosen

    def _lost(self, chosen: int) -> int:
        levels = [
            LostDomains([held for mask in domains.masks if (held := mask & chosen)], count)
            for domains, count in self._levels
        ]
        return worst_loss(levels, self._brokers, chosen.bit_count())

    def _left_at_the_limit(self, chosen: int) -> int:
        if len(self._levels) == 1 and chosen.bit_count() > self._limit:
            domains, count = self._levels[0]
            held = [(mask & chosen).bit_count() for mask in domains.masks]
            fullest = sorted(held, reverse=True)
            least = fullest[count - 1] if count <= len(fullest) else 0
            left = 0
            for mask, number in zip(domains.masks, held, strict=True):
                if number < least:
                    left |= mask
            return left
        left = 0
        for kind in self._kinds(chosen):
            if self._lost(chosen | kind & -kind) <= self._limit:
                left |= kind
        return left

    def _kinds(self, chosen: int) -> list[int]:
        """The candidates, split by which touched domains they are in."""
        kinds = [self.universe.all & ~chosen]
        for domains, _ in self._levels:
            touched = [mask for mask in domains.masks if mask & chosen]
            split = []
            for kind in kinds:
                for mask in touched:
                    if kind & mask:
                        split.append(kind & mask)
                    kind &= ~mask
                if kind:
                    split.append(kind)
            kinds = split
        return kinds
