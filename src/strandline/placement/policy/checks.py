"""Refuses policies that are invalid although their types are right; each refusal says what to
write.

Source: decision 0008."""

from strandline.base.errors import OperatorError
from strandline.config.addresses import check_label
from strandline.placement.policy.document import (
    REPLICAS_MAX,
    VOTERS_MAX,
    Goal,
    Policy,
    Rule,
    Selector,
    Spread,
    Where,
    goal_levels,
)
from strandline.placement.policy.goals import format_goal
from strandline.placement.topology.labels import BROKER_LABEL, check_label_name

LISTED_MAX = 64
"""The most rules, goals, spreads or preferences in one list."""
LOSSES_MAX = 7


def check_policy(policy: Policy) -> None:
    """Raise OperatorError for the first invalid part."""
    for what, listed in (
        ("survive", policy.survive),
        ("rules", policy.rules),
        ("spread", policy.spread),
        ("counts", policy.counts),
        ("leaders.prefer", policy.leaders.prefer),
    ):
        if len(listed) > LISTED_MAX:
            raise OperatorError(f"{what}: {len(listed)} entries: write at most {LISTED_MAX}")
    _check_goals(policy.survive)
    _check_rules(policy)
    for number, spread in enumerate(policy.spread):
        _check_spread(f"spread[{number}]", spread)
    _check_counts(policy)
    for number, where in enumerate(policy.leaders.prefer):
        _check_where(f"leaders.prefer[{number}]", where)
        if not where:
            raise OperatorError(
                f"leaders.prefer[{number}]: is empty: write a selector or leave it out"
            )
    if policy.leaders.follow and policy.leaders.prefer:
        raise OperatorError(
            "leaders: leaders go either where they are preferred or where writers are: leave out "
            "prefer or follow"
        )
    if policy.promotion and not policy.observer_rules():
        raise OperatorError("promotion: is for observers, and no rule places any: leave it out")
    _check_where("residency.allow", policy.residency.allow)
    _check_where("residency.deny", policy.residency.deny)


def _check_goals(goals: tuple[Goal, ...]) -> None:
    for number, goal in enumerate(goals):
        losses = sum(goal_levels(goal).values())
        if not losses:
            raise OperatorError(f"survive[{number}]: is empty: write for example region")
        if losses > LOSSES_MAX:
            raise OperatorError(
                f"survive[{number}]: {format_goal(goal)} are {losses} losses, and {VOTERS_MAX} "
                f"voters survive {LOSSES_MAX}: ask for fewer"
            )
        if goal in goals[:number]:
            raise OperatorError(f"survive[{number}]: {format_goal(goal)} is there twice")


def _check_rules(policy: Policy) -> None:
    for number, rule in enumerate(policy.rules):
        _check_rule(f"rules[{number}]", rule)
    voters = policy.voter_rules()
    if [rule.count for rule in voters].count(None) > 1:
        raise OperatorError(
            "rules: several voter rules without a count: only one can have its count derived, "
            "give the others theirs"
        )
    given = sum(rule.count or 1 for rule in voters)
    if given > VOTERS_MAX:
        raise OperatorError(f"rules: {given} voters: ask for at most {VOTERS_MAX}")
    given += sum(rule.count or 0 for rule in policy.observer_rules())
    if given > REPLICAS_MAX:
        raise OperatorError(f"rules: {given} replicas: ask for at most {REPLICAS_MAX}")


def _check_rule(place: str, rule: Rule) -> None:
    if rule.role == "observer" and rule.count is None:
        raise OperatorError(f"{place}: observers need a count: write for example count: 1")
    if rule.level == "soft" and not rule.where:
        raise OperatorError(f"{place}: is soft, but has no `where` that it prefers: write one")
    _check_weight(place, rule.level, rule.weight)
    _check_where(f"{place}.where", rule.where)
    for number, spread in enumerate(rule.spread):
        _check_spread(f"{place}.spread[{number}]", spread)


def _check_spread(place: str, spread: Spread) -> None:
    _check_name(f"{place}.by", spread.by)
    if spread.by == BROKER_LABEL:
        raise OperatorError(f"{place}: replicas are always on distinct brokers: leave it out")
    numbers = spread.max_per is not None or spread.min_distinct is not None
    if spread.level == "soft" and (numbers or spread.even):
        raise OperatorError(
            f"{place}: a soft spread is as even as it can be: leave out max_per, min_distinct "
            "and even, or make it hard"
        )
    if spread.level == "hard" and not (numbers or spread.even):
        raise OperatorError(
            f"{place}: a hard spread needs max_per, min_distinct or even: write one of them, or "
            "level: soft"
        )
    if spread.even and numbers:
        raise OperatorError(f"{place}: even says it all: leave out max_per and min_distinct")
    if spread.over and not spread.even:
        raise OperatorError(f"{place}: `over` goes with even: true")
    if len(set(spread.over)) != len(spread.over):
        raise OperatorError(f"{place}.over: names a value twice")
    _check_weight(place, spread.level, spread.weight)


def _check_weight(place: str, level: str, weight: int) -> None:
    if level == "hard" and weight != 1:
        raise OperatorError(f"{place}: a weight goes with level: soft")
    if weight < 1:
        raise OperatorError(f"{place}: weight 0 counts for nothing: leave the part out")


def _check_counts(policy: Policy) -> None:
    seen = set()
    for number, one in enumerate(policy.counts):
        _check_name(f"counts[{number}].label", one.label)
        _check_value(f"counts[{number}].value", one.label, one.value)
        if (one.label, one.value) in seen:
            raise OperatorError(f"counts[{number}]: {one.label}={one.value} is there twice")
        seen.add((one.label, one.value))


def _check_where(place: str, where: Where) -> None:
    if len(where) > LISTED_MAX:
        raise OperatorError(f"{place}: {len(where)} selectors: write at most {LISTED_MAX}")
    for number, selector in enumerate(where):
        _check_selector(f"{place}[{number}]", selector)


def _check_selector(place: str, selector: Selector) -> None:
    _check_name(f"{place}.label", selector.label)
    takes_values = selector.op in ("in", "notIn")
    if takes_values and not selector.values:
        raise OperatorError(f"{place}: {selector.op} needs values: write values: [...]")
    if not takes_values and selector.values:
        raise OperatorError(f"{place}: {selector.op} takes no values: leave them out")
    if not takes_values and selector.label == BROKER_LABEL:
        raise OperatorError(f"{place}: every broker has an id: write in or notIn with ids")
    for value in selector.values:
        _check_value(f"{place}.values", selector.label, value)


def _check_name(place: str, name: str) -> None:
    reason = None if name == BROKER_LABEL else check_label_name(name)
    if reason is not None:
        raise OperatorError(f"{place}: {reason}")


def _check_value(place: str, label: str, value: str) -> None:
    if label == BROKER_LABEL and not (value.isascii() and value.isdigit()):
        raise OperatorError(f'{place}: must be a broker\'s id, like "3", not {value[:80]!r}')
    reason = check_label(value) if value else "must not be empty"
    if reason is not None:
        raise OperatorError(f"{place}: {reason}")
