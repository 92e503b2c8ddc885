"""Parts of a policy in words, and the differences between two policies.

Why:    a place in a document, `rules[2]`, does not help a user who wrote the policy in another
        language; the brokers of the rule do.
Source: decision 0008."""

from collections.abc import Iterator, Sequence

from strandline.placement.policy.document import Goal, Policy, Rule, Selector, Spread, Where
from strandline.placement.policy.goals import format_goal

_OPERATORS = {
    "in": "{label} in [{values}]",
    "notIn": "{label} not in [{values}]",
    "exists": "{label} is there",
    "notExists": "{label} is not there",
}


def format_where(where: Where) -> str:
    """ "where region=a and disk is there"."""
    return f"where {' and '.join(map(_selector, where))}"


def format_rule(rule: Rule, *, count: int | None = None) -> str:
    """The replicas that a rule places: "2 voters where region=a"; without a count, "voters"."""
    noun = rule.role if count == 1 else f"{rule.role}s"
    number = "" if count is None else f"{count} "
    return f"{number}{noun}" + (f" {format_where(rule.where)}" if rule.where else "")


def changes_between(before: Policy, after: Policy) -> tuple[str, ...]:
    """The changes from `before` to `after`, each in words. Spreads and rules are compared by their
    places; goals and counts may be missing."""
    return tuple(_changes(before, after))


def _changes(before: Policy, after: Policy) -> Iterator[str]:
    yield from _goals(before.survive, after.survive)
    yield from _spreads(before.spread, after.spread)
    for count in before.counts:
        if count not in after.counts:
            yield f"any number where {count.label}={count.value}"
    for old, new in zip(before.rules, after.rules, strict=True):
        if old.count != new.count:
            yield f"{format_rule(new, count=new.count)} instead of {old.count}"
        if old.level != new.level:
            yield f"{format_rule(old)} preferred instead of required"
        for words in _spreads(old.spread, new.spread):
            yield f"{words} for {format_rule(old)}"
    if before.distinct_host != after.distinct_host:
        yield "replicas on the same host"


def _goals(before: Sequence[Goal], after: Sequence[Goal]) -> Iterator[str]:
    gone = [format_goal(one) for one in before if one not in after]
    come = [format_goal(one) for one in after if one not in before]
    if gone:
        instead = f"survive {', '.join(come)}" if come else "no survive"
        if not come and after:
            instead = f"survive {', '.join(map(format_goal, after))} alone"
        yield f"{instead} instead of {', '.join(gone)}"


def _spreads(before: Sequence[Spread], after: Sequence[Spread]) -> Iterator[str]:
    for old, new in zip(before, after, strict=True):
        if old == new:
            continue
        if new.level == "soft":
            yield f"{new.by} spread as far as it can be"
            continue
        if new.max_per != old.max_per:
            yield f"at most {new.max_per} in one {new.by}"
        if new.min_distinct is not None and new.min_distinct != old.min_distinct:
            yield f"at least {new.min_distinct} distinct {new.by}{'s' * (new.min_distinct != 1)}"


def _selector(one: Selector) -> str:
    if one.op == "in" and len(one.values) == 1:
        return f"{one.label}={one.values[0]}"
    return _OPERATORS[one.op].format(label=one.label, values=", ".join(one.values))
