"""Compiles a policy and the candidate brokers into a `Plan`: the placement problem to be solved.

Why:    search, judging and refusing must work on the same constraints.
How:    Each rule becomes one group of replicas. Constraints that depend on the broker alone become
        one mask of allowed brokers for each group. Constraints that count replicas are evaluated at
        each step of the search. Checks of missing labels, hosts, full disks and the default spread
        are omitted if they cannot distinguish any two brokers of this cluster.
            Costs have tiers, the heaviest first: brokers that are up; brokers with room on their
        disks; the user's weights; the default spread of voters, then that of all replicas, each
        over regions, zones, racks, hosts. The policy's preferences for leaders become
        `leader_tiers`.
Source: design section 7; decision 0008."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from strandline.model.ids import BrokerId
from strandline.placement.constraints.active import Active
from strandline.placement.constraints.capacity import Capacity
from strandline.placement.constraints.contract import (
    COST_MAX,
    Group,
    HardConstraint,
    HardEvaluator,
    Seats,
    Shape,
    SoftConstraint,
    SoftEvaluator,
)
from strandline.placement.constraints.distinct_host import DistinctHost
from strandline.placement.constraints.even import Even
from strandline.placement.constraints.even_spread import EvenSpread
from strandline.placement.constraints.label_count import ExactCount
from strandline.placement.constraints.labelled import Labelled
from strandline.placement.constraints.leader_reach import LeaderReach
from strandline.placement.constraints.nearest_quorum import NearestQuorum
from strandline.placement.constraints.pinned import Pinned
from strandline.placement.constraints.preferred import Preferred, PreferRoom, PreferUp
from strandline.placement.constraints.residency import Resident
from strandline.placement.constraints.selectors import Selectors, matching
from strandline.placement.constraints.spread import MaxPer, MinDistinct
from strandline.placement.constraints.survive import Survive
from strandline.placement.policy.document import Policy, Rule, Spread, Where, labels_of_rule
from strandline.placement.solver.request import Request
from strandline.placement.survival.replicas import Quorum
from strandline.placement.topology.labels import BROKER_LABEL
from strandline.placement.topology.universe import LEVELS, BrokerState, Universe

LEADER_REACH_WEIGHT = 1_000
_STEP = 200
"""Weights of neighbouring levels: the step of a cost, at least 1,000 / C(15, 2) = 9 of 1,000, is
worth more than all narrower levels together."""
_OBSERVERS_TIER = _STEP ** len(LEVELS)
_USER_TIER = _OBSERVERS_TIER**2 * COST_MAX
_ROOM_TIER = _USER_TIER * COST_MAX**3
_UP_TIER = _ROOM_TIER * COST_MAX


@dataclass(frozen=True, slots=True)
class Plan:
    """The compiled problem, not a solution: the replicas to place, and the constraints on them."""

    request: Request
    shape: Shape
    static: tuple[HardEvaluator, ...]
    """Hard constraints that depend on the broker alone; `allowed` is what they leave."""
    hard: tuple[HardEvaluator, ...]
    """Hard constraints that count replicas."""
    soft: tuple[SoftEvaluator, ...]
    """Soft constraints, the heaviest first."""
    allowed: tuple[int, ...]
    """By group: the mask of the brokers that satisfy all of `static`."""
    leader_tiers: tuple[int, ...]
    """A mask of brokers for each of the policy's preferences for leaders, the best first. A broker
    may be in several masks, or in none."""

    @property
    def universe(self) -> Universe:
        """The candidates."""
        return self.shape.universe

    def cost(self, seats: Seats) -> int:
        """The cost of a complete placement; 0 is the best possible."""
        return sum(one.weight * one.cost(seats) for one in self.soft)

    def scope_allowed(self, scope: int, allowed: Sequence[int]) -> int:
        """The union of `allowed` over the groups of a scope."""
        union = 0
        for group, mask in enumerate(allowed):
            if scope >> group & 1:
                union |= mask
        return union


def make_plan(request: Request, universe: Universe, *, voters: int) -> Plan:
    """The plan for `voters` voters; observers come on top.

    Rules with a count get that count. The rule without one gets the rest of `voters`, at least
    one."""
    policy = request.policy
    groups = _groups(policy, voters)
    quorum = Quorum.of(
        sum(group.count for group in groups if group.is_voter), request.min_insync_replicas
    )
    shape = Shape(universe, groups, write_quorum=quorum.write_quorum)
    static = [one.prepare(shape) for one in _static(request, shape)]
    allowed = tuple(_allowed(static, shape, group) for group in range(len(groups)))
    hard = [one.prepare(shape) for one in _counting(policy, shape, allowed)]
    soft = [one.prepare(shape) for one in _soft(request, shape)]
    soft.sort(key=lambda one: -one.weight)
    return Plan(
        request=request,
        shape=shape,
        static=tuple(static),
        hard=tuple(hard),
        soft=tuple(soft),
        allowed=allowed,
        leader_tiers=tuple(matching(universe, where) for where in policy.leaders.prefer),
    )


def _groups(policy: Policy, voters: int) -> list[Group]:
    rules = list(enumerate(policy.rules))
    if not any(rule.role == "voter" for rule in policy.rules):
        rules.append((-1, Rule()))
    missing = max(1, voters - sum(rule.count or 0 for rule in policy.voter_rules()))
    groups = [
        Group(rule.role, missing if rule.count is None else rule.count, number)
        for number, rule in rules
    ]
    return sorted(groups, key=lambda group: not group.is_voter)


def _static(request: Request, shape: Shape) -> Iterable[HardConstraint]:
    away = frozenset({BrokerState.DOWN, BrokerState.MAINTENANCE})
    yield Active(away if request.takes_down_brokers else frozenset())
    yield Capacity(request.disk_used_percent_max)
    yield from _labelled(request.policy, shape)
    if request.policy.residency.allow or request.policy.residency.deny:
        yield Resident(request.policy.residency)
    for number, group in enumerate(shape.groups):
        if group.rule >= 0:
            rule = request.policy.rules[group.rule]
            if rule.where and rule.level == "hard":
                yield from _where(rule.where, 1 << number)


def _labelled(policy: Policy, shape: Shape) -> Iterable[HardConstraint]:
    for number, group in enumerate(shape.groups):
        needed = tuple(labels_of_rule(policy, rule_of(policy, group)))
        if any(not one.labels.get(name) for one in shape.universe.candidates for name in needed):
            yield Labelled(needed, 1 << number)


def rule_of(policy: Policy, group: Group) -> Rule:
    """The policy's rule for a group; a rule without conditions if the policy has none."""
    return policy.rules[group.rule] if group.rule >= 0 else Rule()


def _where(where: Where, scope: int) -> Iterable[HardConstraint]:
    pins = [one for one in where if one.label == BROKER_LABEL and one.op == "in"]
    for pin in pins:
        yield Pinned(frozenset(BrokerId(int(value)) for value in pin.values), scope)
    others = tuple(one for one in where if one not in pins)
    if others:
        yield Selectors(others, scope)


def _allowed(static: Iterable[HardEvaluator], shape: Shape, group: int) -> int:
    mask = shape.universe.all
    for one in static:
        mask &= one.eligible((), group)
    return mask


def _counting(policy: Policy, shape: Shape, allowed: Sequence[int]) -> Iterable[HardConstraint]:
    universe = shape.universe
    hosts = universe.domains("host")
    if policy.distinct_host and any(
        value and mask.bit_count() > 1
        for value, mask in zip(hosts.values, hosts.masks, strict=True)
    ):
        yield DistinctHost()
    for goal in policy.survive:
        yield Survive(goal)
    for spread in policy.spread:
        yield from _spread(spread, shape.voters_scope, shape, allowed)
    for count in policy.counts:
        yield ExactCount(count.label, count.value, count.count, shape.voters_scope)
    for number, group in enumerate(shape.groups):
        if group.rule >= 0:
            for spread in policy.rules[group.rule].spread:
                yield from _spread(spread, 1 << number, shape, allowed)


def _spread(
    spread: Spread, scope: int, shape: Shape, allowed: Sequence[int]
) -> Iterable[HardConstraint]:
    if spread.level == "soft":
        return
    if spread.max_per is not None:
        minority = (shape.voters - 1) // 2
        limit = minority if spread.max_per == "minority" else spread.max_per
        yield MaxPer(spread.by, limit, scope)
    if spread.min_distinct is not None:
        yield MinDistinct(spread.by, spread.min_distinct, scope)
    if spread.even:
        within = 0
        for group, mask in enumerate(allowed):
            if scope >> group & 1:
                within |= mask
        yield Even(spread.by, scope, spread.over, within)


def _soft(request: Request, shape: Shape) -> Iterable[SoftConstraint]:
    policy = request.policy
    if request.takes_down_brokers:
        yield PreferUp(_UP_TIER)
    high = request.disk_high_percent
    if any(one.disk_used_percent >= high for one in shape.universe.candidates):
        yield PreferRoom(high, _ROOM_TIER)
    if policy.leaders.prefer:
        yield LeaderReach(policy.leaders.prefer, LEADER_REACH_WEIGHT * _USER_TIER)
    if policy.nearest_quorum and request.round_trips is not None:
        yield NearestQuorum(
            request.round_trips, policy.leaders.prefer, policy.nearest_quorum * _USER_TIER
        )
    for spread in policy.spread:
        if spread.level == "soft":
            yield EvenSpread(spread.by, shape.voters_scope, spread.weight * _USER_TIER)
    for number, group in enumerate(shape.groups):
        if group.rule >= 0:
            rule = policy.rules[group.rule]
            if rule.level == "soft":
                yield Preferred(rule.where, 1 << number, rule.weight * _USER_TIER)
            for spread in rule.spread:
                if spread.level == "soft":
                    yield EvenSpread(spread.by, 1 << number, spread.weight * _USER_TIER)
    yield from _default_spread(shape)


def _default_spread(shape: Shape) -> Iterable[SoftConstraint]:
    """Spread voters, then all replicas, over each level. A level is omitted if all brokers are in
    one domain, each is in its own, or a wider level has the same domains."""
    universe = shape.universe
    known: set[tuple[int, ...]] = {(universe.all,)}
    levels = []
    for level in LEVELS:
        masks = universe.domains(level).masks
        is_each_its_own = len(masks) == len(universe.candidates)
        if masks not in known and not is_each_its_own:
            known.add(masks)
            levels.append(level)
    for number, level in enumerate(reversed(levels)):
        weight = _STEP**number
        if shape.voters > 1:
            yield EvenSpread(level, shape.voters_scope, weight * _OBSERVERS_TIER)
        if shape.voters_scope != shape.everyone:
            yield EvenSpread(level, shape.everyone, weight)
