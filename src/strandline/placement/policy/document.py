"""The parts of a placement policy; the field names are those of the document.

Why:    text, checks, solver, validator and explanation must mean the same by a word.
How:    msgspec structs: unknown fields and wrong types are refused while reading. Defaults are left
        out of the canonical text, so that a later version with more fields writes the same.
Source: design section 7; decision 0008."""

from typing import Annotated, Literal

import msgspec

VOTERS_MAX = 15
REPLICAS_MAX = 31
WEIGHT_MAX = 1_000
KAFKA_RACK_LABEL = "region"
"""The label for Kafka's `broker.rack` (`model.cluster.Labels.kafka_rack`)."""

Promotion = Literal["", "under-min-isr", "under-replicated", "leader-is-observer", "region-lost"]
Role = Literal["voter", "observer"]
Level = Literal["hard", "soft"]
_Count = Annotated[int, msgspec.Meta(ge=1, le=REPLICAS_MAX)]
_Loss = Annotated[int, msgspec.Meta(ge=0, le=7)]
_Weight = Annotated[int, msgspec.Meta(ge=0, le=WEIGHT_MAX)]


class Goal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Losses that must be survived when they come together: so many domains of each level."""

    region: _Loss = 0
    zone: _Loss = 0
    rack: _Loss = 0
    host: _Loss = 0
    upgrade_domain: _Loss = 0
    broker: _Loss = 0


class Selector(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A condition on one label; `values` go with `in` and `notIn`."""

    label: str
    op: Literal["in", "notIn", "exists", "notExists"]
    values: tuple[str, ...] = ()


Where = tuple[Selector, ...]
"""All of them must hold."""


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How replicas are spread over a label. Hard with numbers, or soft: as even as can be."""

    by: str
    max_per: Annotated[int, msgspec.Meta(ge=1, le=REPLICAS_MAX)] | Literal["minority"] | None = None
    """Of the replicas in scope; `minority` is less than a majority of the voters."""
    min_distinct: Annotated[int, msgspec.Meta(ge=1, le=REPLICAS_MAX)] | None = None
    even: bool = False
    """No two domains (of `over`, or all that there are) differ by more than one replica."""
    over: tuple[str, ...] = ()
    level: Level = "hard"
    weight: _Weight = 1


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Replicas of one role: how many (None: derived from `survive`), and on which brokers."""

    role: Role = "voter"
    count: _Count | None = None
    where: Where = ()
    spread: tuple[Spread, ...] = ()
    level: Level = "hard"
    """Of `where`; soft prefers brokers instead of requiring them."""
    weight: _Weight = 1


class LabelCount(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Exactly so many voters where a label has a value."""

    label: str
    value: str
    count: Annotated[int, msgspec.Meta(ge=0, le=VOTERS_MAX)]


class Leaders(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where leaders should be. `prefer`: the first that a healthy voter meets; within it, even.
    `follow`: in the region that produces most (decision 0014); one or the other."""

    prefer: tuple[Where, ...] = ()
    follow: Literal["", "writers"] = ""
    failback_delay_ms: Annotated[int, msgspec.Meta(ge=0, le=86_400_000)] | None = None
    """How long a preferred replica has to be caught up before leadership returns; None: as long as
    the cluster's configuration says."""


class Residency(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where data may be: all of `allow` hold, and none of `deny`. Binds everything."""

    allow: Where = ()
    deny: Where = ()


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All of it. The empty policy is the default spread."""

    survive: tuple[Goal, ...] = ()
    rules: tuple[Rule, ...] = ()
    spread: tuple[Spread, ...] = ()
    """Over all voters."""
    counts: tuple[LabelCount, ...] = ()
    leaders: Leaders = Leaders()
    residency: Residency = Residency()
    distinct_host: bool = True
    """No two replicas on one host, where brokers say on which they are."""
    nearest_quorum: _Weight = 0
    """How much a short round trip to the nearest quorum is worth."""
    promotion: Promotion = ""
    """When observers become voters for a while; see `controller.promotion`."""

    def voter_rules(self) -> tuple[Rule, ...]:
        """The rules that place voters; one without conditions where none is written."""
        return tuple(rule for rule in self.rules if rule.role == "voter") or (Rule(),)

    def observer_rules(self) -> tuple[Rule, ...]:
        """The rules that place observers."""
        return tuple(rule for rule in self.rules if rule.role == "observer")

    def fixed_replicas(self) -> int | None:
        """How many replicas the rules require; None if a count must be derived."""
        counts = [rule.count for rule in self.voter_rules() + self.observer_rules()]
        return None if None in counts else sum(count or 0 for count in counts)


def with_observers(policy: Policy, count: int) -> Policy:
    """The policy with this many more observers, anywhere: for topics with observers that no policy
    requires."""
    rules = (*policy.rules, *((Rule(role="observer", count=count),) if count else ()))
    return msgspec.structs.replace(policy, rules=rules)


def goal_levels(goal: Goal) -> dict[str, int]:
    """{level: how many of its domains are lost}, widest first, without zeros."""
    levels = {name: getattr(goal, name) for name in goal.__struct_fields__}
    return {name: count for name, count in levels.items() if count}


def needed_labels(policy: Policy) -> list[str]:
    """The labels without which no broker can be given some replica; see `labels_of_rule`."""
    rules = policy.voter_rules() + policy.observer_rules()
    return list(dict.fromkeys(label for one in rules for label in labels_of_rule(policy, one)))


def labels_of_rule(policy: Policy, rule: Rule) -> list[str]:
    """The labels that a broker needs to get a rule's replicas: without them it is unknown whether
    it meets the requirements. Soft parts and leader preferences require nothing; `exists` and
    `notExists` check whether a label is there, and need none."""
    wheres = [policy.residency.allow, policy.residency.deny]
    wheres += [rule.where] if rule.level == "hard" else []
    labels = [one.label for where in wheres for one in where if one.op in ("in", "notIn")]
    is_voter = rule.role == "voter"
    spreads = (policy.spread if is_voter else ()) + rule.spread
    labels += [one.by for one in spreads if one.level == "hard"]
    if is_voter:
        labels += [one.label for one in policy.counts]
        labels += [level for goal in policy.survive for level in goal_levels(goal)]
    return [label for label in dict.fromkeys(labels) if label != "broker"]
