"""Small clusters, and what a policy means, written down once more without any of the solver."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.policy.document import (
    Goal,
    Policy,
    Residency,
    Rule,
    Selector,
    Spread,
    goal_levels,
)
from strandline.placement.solver.request import Request
from strandline.placement.topology.universe import BrokerState, Candidate

LEVELS = ("region", "zone", "rack", "host")
Assignment = list[tuple[Candidate, Rule]]
"""Who is there by which rule."""


def candidate(number: int, path: str, **more: object) -> Candidate:
    """A broker at "region/zone/rack/host"."""
    region, zone, rack, host = (path.split("/") + [""] * 4)[:4]
    labels = Labels(region=region, zone=zone, rack=rack, host=host)
    return Candidate(id=BrokerId(number), labels=labels, **more)  # type: ignore[arg-type]


def cluster(*paths: str) -> list[Candidate]:
    """Brokers 1, 2, ... at these places."""
    return [candidate(number, path) for number, path in enumerate(paths, start=1)]


def grid(regions: int, zones: int, racks: int, each: int) -> list[Candidate]:
    """A regular cluster: so many brokers in each rack of each zone of each region."""
    paths = [
        f"r{region}/z{zone}/k{rack}/h{region}-{zone}-{rack}-{host}"
        for host in range(each)
        for rack in range(racks)
        for zone in range(zones)
        for region in range(regions)
    ]
    return cluster(*paths)


def domain(one: Candidate, label: str) -> object:
    """What a broker shares with those that fail with it."""
    if label == "broker":
        return one.id
    if label in LEVELS:
        return tuple(one.labels.get(level) for level in LEVELS[: LEVELS.index(label) + 1])
    return one.labels.get(label)


def selected(one: Candidate, selector: Selector) -> bool:
    """Whether a selector holds for a broker."""
    value = str(one.id) if selector.label == "broker" else one.labels.get(selector.label)
    return {
        "in": value in selector.values,
        "notIn": value not in selector.values,
        "exists": value != "",
        "notExists": value == "",
    }[selector.op]


def resides(one: Candidate, residency: Residency) -> bool:
    """Whether data may be on a broker."""
    return all(selected(one, s) for s in residency.allow) and not any(
        selected(one, s) for s in residency.deny
    )


def survives(voters: Sequence[Candidate], goal: Goal, write_quorum: int) -> bool:
    """Whether a write quorum is left after every such loss; all choices are tried."""

    def least(levels: list[tuple[str, int]], left: list[Candidate]) -> int:
        if not levels:
            return len(left)
        level, count = levels[0]
        domains = sorted({domain(one, level) for one in voters}, key=repr)
        return min(
            least(levels[1:], [one for one in left if domain(one, level) not in lost])
            for lost in combinations(domains, min(count, len(domains)))
        )

    return least(list(goal_levels(goal).items()), list(voters)) >= write_quorum


def spread_holds(
    members: Sequence[Candidate], spread: Spread, voters: int, cluster: Sequence[Candidate]
) -> bool:
    """Whether replicas are spread as they must be; `cluster`: who could have been taken at all."""
    if spread.level == "soft":
        return True
    held = Counter(domain(one, spread.by) for one in members)
    if spread.max_per is not None:
        most = (voters - 1) // 2 if spread.max_per == "minority" else spread.max_per
        if max(held.values(), default=0) > most:
            return False
    if spread.min_distinct is not None and len(held) < spread.min_distinct:
        return False
    if spread.even:
        if spread.over:
            values = Counter(one.labels.get(spread.by) for one in members)
            counts = [values[value] for value in spread.over]
        else:
            counts = [held[d] for d in {domain(one, spread.by) for one in cluster}]
        return max(counts) - min(counts) <= 1 if counts else True
    return True


def rules_of(policy: Policy, voters: int) -> list[tuple[Rule, int]]:
    """The rules with their counts, for so many voters."""
    rules = policy.voter_rules()
    given = sum(rule.count or 0 for rule in rules)
    return [
        (rule, voters - given if rule.count is None else rule.count)
        for rule in rules + policy.observer_rules()
    ]


def compared(policy: Policy, rule: Rule) -> set[str]:
    """The labels by which it is decided whether a rule's replicas are where they have to be."""
    selectors = [*policy.residency.allow, *policy.residency.deny]
    selectors += rule.where if rule.level == "hard" else ()
    labels = {one.label for one in selectors if one.op in ("in", "notIn")}
    labels |= {one.by for one in rule.spread if one.level == "hard"}
    if rule.role == "voter":
        labels |= {one.by for one in policy.spread if one.level == "hard"}
        labels |= {one.label for one in policy.counts}
        labels |= {level for goal in policy.survive for level in goal_levels(goal)}
    return labels - {"broker"}


def may_take(one: Candidate, rule: Rule, request: Request) -> bool:
    """Whether a broker may hold a replica of a rule, whoever holds the others. One that does not
    say a label that the rule needs may not: nobody knows where it is."""
    return (
        one.state is BrokerState.ACTIVE
        and (one.replicas_max is None or one.replicas < one.replicas_max)
        and one.disk_used_percent < request.disk_used_percent_max
        and resides(one, request.policy.residency)
        and all(one.labels.get(label) for label in compared(request.policy, rule))
        and (rule.level == "soft" or all(selected(one, s) for s in rule.where))
    )


def holds(request: Request, replicas: Assignment, candidates: Sequence[Candidate]) -> bool:
    """Whether every hard constraint of a policy holds for these replicas."""
    policy = request.policy
    members = [one for one, _ in replicas]
    voters = [one for one, rule in replicas if rule.role == "voter"]
    majority = len(voters) // 2 + 1
    write_quorum = max(majority, min(request.min_insync_replicas, len(voters)))
    hosts = [domain(one, "host") for one in members if one.labels.host]
    rules = policy.voter_rules() + policy.observer_rules()

    def could(*of: Rule) -> list[Candidate]:
        return [one for one in candidates if any(may_take(one, rule, request) for rule in of)]

    return (
        len({one.id for one in members}) == len(members)
        and all(may_take(one, rule, request) for one, rule in replicas)
        and (not policy.distinct_host or len(set(hosts)) == len(hosts))
        and all(survives(voters, goal, write_quorum) for goal in policy.survive)
        and all(
            spread_holds(voters, spread, len(voters), could(*policy.voter_rules()))
            for spread in policy.spread
        )
        and all(
            sum(one.labels.get(count.label) == count.value for one in voters) == count.count
            for count in policy.counts
        )
        and all(
            spread_holds(
                [one for one, by in replicas if by is rule], spread, len(voters), could(rule)
            )
            for rule in rules
            for spread in rule.spread
        )
    )


def assignments(
    rules: list[tuple[Rule, int]], candidates: Sequence[Candidate]
) -> Iterator[Assignment]:
    """Every way to give distinct brokers to the rules."""
    if not rules:
        yield []
        return
    (rule, count), *others = rules
    for chosen in combinations(candidates, count):
        left = [one for one in candidates if one not in chosen]
        for rest in assignments(others, left):
            yield [(one, rule) for one in chosen] + rest
