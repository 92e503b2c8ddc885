"""The nearest policy that can be met: relaxations of the document, the cheapest first.

Why:    if a policy cannot be met, the refusal names the nearest one that can.
How:    Each relaxation changes one part a little: a count by one or two more, which gives up no
        promise; a goal to a narrower level or one loss less, a spread by one or to soft, a `where`
        to soft, a count by one less. Cheapest first over sums of prices (Dijkstra), up to
        CHANGES_MAX changes and TRIED_MAX policies. Residency is never relaxed: it is the law's.
Source: decision 0008."""

import heapq
from collections.abc import Callable, Iterator

import msgspec

from strandline.placement.policy.document import (
    REPLICAS_MAX,
    VOTERS_MAX,
    Goal,
    Policy,
    Rule,
    Spread,
    goal_levels,
)
from strandline.placement.policy.text import encode_policy
from strandline.placement.policy.words import changes_between
from strandline.placement.solver.refusal import Relaxation

CHANGES_MAX = 3
TRIED_MAX = 60
MORE_MAX = 2
"""By how many replicas one relaxation makes a count larger, at the price of one each."""
_NARROWER = {
    "region": ("zone", "rack", "host", "broker"),
    "zone": ("rack", "host", "broker"),
    "rack": ("host", "broker"),
    "host": ("broker",),
    "upgrade_domain": ("broker",),
}
_NARROWER_PRICES = (2, 3, 4, 4)
"""Brokers may say nothing of the next level; to give the loss up is dearer than all these."""

Change = tuple[int, Policy]
"""(price, the policy then)"""


def nearest_policy(policy: Policy, can_be_met: Callable[[Policy], bool]) -> Relaxation | None:
    """The cheapest relaxation that can be met; None when none was found."""
    waiting: list[tuple[int, int, int, Policy]] = [(0, 0, 0, policy)]
    """(price, number, changes, the policy then)"""
    seen = {encode_policy(policy)}
    number = tried = 0
    while waiting:
        price, _, changes, current = heapq.heappop(waiting)
        if changes:
            tried += 1
            if can_be_met(current):
                return Relaxation(encode_policy(current), changes_between(policy, current))
            if tried >= TRIED_MAX:
                return None
        if changes == CHANGES_MAX:
            continue
        for more, relaxed in relaxations(current):
            text = encode_policy(relaxed)
            if text not in seen:
                seen.add(text)
                number += 1
                heapq.heappush(waiting, (price + more, number, changes + 1, relaxed))
    return None


def relaxations(policy: Policy) -> Iterator[Change]:
    """Every policy that is a little easier in one place: by more replicas, or by less asked."""
    yield from _more_replicas(policy)
    for number, goal in enumerate(policy.survive):
        for price, instead in _weaker_goals(goal):
            goals = list(policy.survive)
            goals[number : number + 1] = [instead] if instead and instead not in goals else []
            yield price, msgspec.structs.replace(policy, survive=tuple(goals))
    for number, spread in enumerate(policy.spread):
        for price, weaker in _weaker_spreads(spread):
            spreads = _replaced(policy.spread, number, weaker)
            yield price, msgspec.structs.replace(policy, spread=spreads)
    for number in range(len(policy.counts)):
        counts = policy.counts[:number] + policy.counts[number + 1 :]
        yield 2, msgspec.structs.replace(policy, counts=counts)
    for number, rule in enumerate(policy.rules):
        for price, weaker_rule in _weaker_rules(rule):
            rules = _replaced(policy.rules, number, weaker_rule)
            yield price, msgspec.structs.replace(policy, rules=rules)
    if policy.distinct_host:
        yield 3, msgspec.structs.replace(policy, distinct_host=False)


def _more_replicas(policy: Policy) -> Iterator[Change]:
    """Only where something counts replicas: else more of them are no easier to place."""
    voters = sum(rule.count or 1 for rule in policy.voter_rules())
    replicas = voters + sum(rule.count or 0 for rule in policy.observer_rules())
    for number, rule in enumerate(policy.rules):
        is_voter = rule.role == "voter"
        counts = (policy.survive or policy.spread or policy.counts) if is_voter else ()
        if rule.count is None or not (counts or rule.spread):
            continue
        room = min(REPLICAS_MAX - replicas, VOTERS_MAX - voters if is_voter else REPLICAS_MAX)
        for more in range(1, min(MORE_MAX, room) + 1):
            changed = msgspec.structs.replace(rule, count=rule.count + more)
            rules = _replaced(policy.rules, number, changed)
            yield more, msgspec.structs.replace(policy, rules=rules)


def _weaker_goals(goal: Goal) -> Iterator[tuple[int, Goal | None]]:
    levels = goal_levels(goal)
    for level, count in levels.items():
        less = {**levels, level: count - 1}
        for price, narrower in zip(_NARROWER_PRICES, _NARROWER.get(level, ()), strict=False):
            moved = {**less, narrower: levels.get(narrower, 0) + 1}
            yield price, Goal(**moved)
        yield 5, Goal(**less) if any(less.values()) else None


def _weaker_spreads(spread: Spread) -> Iterator[tuple[int, Spread]]:
    if spread.level == "soft":
        return
    if isinstance(spread.max_per, int):
        yield 2, msgspec.structs.replace(spread, max_per=spread.max_per + 1)
    if spread.min_distinct is not None and spread.min_distinct > 1:
        yield 2, msgspec.structs.replace(spread, min_distinct=spread.min_distinct - 1)
    yield 3, Spread(by=spread.by, level="soft")


def _weaker_rules(rule: Rule) -> Iterator[tuple[int, Rule]]:
    if rule.count is not None and rule.count > 1:
        yield 4, msgspec.structs.replace(rule, count=rule.count - 1)
    if rule.where and rule.level == "hard":
        yield 3, msgspec.structs.replace(rule, level="soft")
    for place, spread in enumerate(rule.spread):
        for price, weaker in _weaker_spreads(spread):
            spreads = _replaced(rule.spread, place, weaker)
            yield price, msgspec.structs.replace(rule, spread=spreads)


def _replaced(values: tuple, number: int, value: object) -> tuple:  # type: ignore[type-arg]
    return (*values[:number], value, *values[number + 1 :])
