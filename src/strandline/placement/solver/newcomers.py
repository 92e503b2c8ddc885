"""The brokers that would have to be added: "one more broker with region=south".

Why:    if the policy must stay, the user needs to know which brokers to buy.
How:    Brokers that do not exist are tried as candidates. For each label that counts: the values
        that a rule or the residency names; else the present ones, and a new one, "another region".
        Within a present region, the levels below it are new. One broker first, then two alike; the
        answer is the first that is enough.
Owns:   nothing.
Source: decision 0008; the words of the balancer (decision 0010)."""

from collections.abc import Callable, Iterator
from itertools import islice, product

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Policy, Rule, Where, needed_labels
from strandline.placement.topology.labels import BROKER_LABEL
from strandline.placement.topology.universe import LEVELS, Candidate, Universe

PROFILES_MAX = 12
NEWCOMERS_MAX = 2
VALUES_MAX = 8
_NEW = ""
"""A value that no broker has."""

Profile = dict[str, str]
"""{label: value}, `_NEW` for a value that no broker has, in the order of labels in texts."""


def newcomers(policy: Policy, universe: Universe, can_be_met: Callable[[Universe], bool]) -> str:
    """The fewest brokers, alike, with which there is a placement; empty where none was found."""
    profiles = list(islice(_profiles(policy, universe), PROFILES_MAX))
    for count in range(1, NEWCOMERS_MAX + 1):
        for profile in profiles:
            added = [_candidate(profile, universe, number) for number in range(count)]
            if can_be_met(Universe((*universe.candidates, *added))):
                return _told(profile, count)
    return ""


def _profiles(policy: Policy, universe: Universe) -> Iterator[Profile]:
    labels = list(dict.fromkeys([*needed_labels(policy), *_hard_labels(policy)]))
    labels.sort(key=lambda label: LEVELS.index(label) if label in LEVELS else len(LEVELS))
    seen = []
    for rule in (*policy.voter_rules(), *policy.observer_rules()):
        named = _named(policy, rule)
        options = [named.get(label) or _present(universe, label) for label in labels]
        for values in product(*options):
            profile = dict(zip(labels, values, strict=True))
            if profile not in seen:
                seen.append(profile)
                yield profile


def _hard_labels(policy: Policy) -> list[str]:
    """Labels that a rule requires to be there at all."""
    wheres = [rule.where for rule in policy.rules if rule.level == "hard"]
    wheres.append(policy.residency.allow)
    return [one.label for where in wheres for one in where if one.op == "exists"]


def _named(policy: Policy, rule: Rule) -> dict[str, list[str]]:
    """{label: the values that it has to have}"""
    found: dict[str, list[str]] = {}
    where: Where = policy.residency.allow
    if rule.level == "hard":
        where += rule.where
    for one in where:
        if one.op == "in" and one.label != BROKER_LABEL:
            given = found.get(one.label, list(one.values))
            found[one.label] = [value for value in given if value in one.values][:VALUES_MAX]
    for count in policy.counts if rule.role == "voter" else ():
        found.setdefault(count.label, []).append(count.value)
    return found


def _present(universe: Universe, label: str) -> list[str]:
    """The values there are, and a new one; of a level within another, the new one alone."""
    if label in LEVELS[1:]:
        return [_NEW]
    values = sorted({one.labels.get(label) for one in universe.candidates} - {""})
    return [*values[:VALUES_MAX], _NEW]


def _candidate(profile: Profile, universe: Universe, number: int) -> Candidate:
    last = universe.candidates[-1].id if universe.candidates else 0
    values = {label: value or f"another {label} {number}" for label, value in profile.items()}
    return Candidate(id=BrokerId(last + 1 + number), labels=Labels.of(values))


def _told(profile: Profile, count: int) -> str:
    """A new level makes those within it new: the text names the widest."""
    said = [f"{label}={value}" for label, value in profile.items() if value]
    new = [label for label, value in profile.items() if not value]
    levels = [label for label in new if label in LEVELS]
    new = levels[:1] + [label for label in new if label not in LEVELS]
    with_ = f" with {' '.join(said)}" if said else ""
    each = "" if count == 1 else ", each"
    in_ = f"{each} in another {' and another '.join(new)}" if new else ""
    return ("one more broker" if count == 1 else f"{count} more brokers") + with_ + in_
