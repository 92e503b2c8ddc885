"""Values that a policy names and no broker has: likely misspelt. Pure.

Why:    every broker meets a policy that denies the region "sout", and data goes to the south.
How:    A note, not a refusal: brokers of a region may come later, and a policy may be ready for
        them. A label that brokers lack altogether is refused elsewhere (`topology.labels`).
Owns:   nothing.
Source: decision 0008."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Policy, Where
from strandline.placement.topology.labels import BROKER_LABEL

LISTED_MAX = 8
CLOSE_RATIO = 0.8
"""Less alike is no slip of the pen: north is not meant by south."""


@dataclass(frozen=True, slots=True)
class UnknownValue:
    """A value that a policy names, and those that brokers have, in order; there are some."""

    label: str
    value: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        shown, more = ", ".join(self.known[:LISTED_MAX]), len(self.known) - LISTED_MAX
        shown += f" and {more} more" if more > 0 else ""
        if self.label == BROKER_LABEL:
            return f"there is no broker {self.value}; there are {shown}"
        close = get_close_matches(self.value, self.known, n=1, cutoff=CLOSE_RATIO)
        meant = f" (did you mean {close[0]}?)" if close else ""
        return f"no broker has {self.label}={self.value}; brokers have {shown}{meant}"


def unknown_values(
    policy: Policy, brokers: Iterable[tuple[BrokerId, Labels]]
) -> list[UnknownValue]:
    """The values that the policy names and no broker has, of labels that some broker has; each
    once, in the order of the document."""
    brokers = sorted(brokers, key=lambda pair: pair[0])
    found: dict[tuple[str, str], UnknownValue] = {}
    for label, value in dict.fromkeys(_named(policy)):
        if label == BROKER_LABEL:
            known = [str(broker) for broker, _ in brokers]
        else:
            known = sorted({labels.get(label) for _, labels in brokers} - {""})
        if known and value not in known:
            found[label, value] = UnknownValue(label, value, tuple(known))
    return list(found.values())


def _named(policy: Policy) -> Iterator[tuple[str, str]]:
    """(label, value), wherever a policy names a value."""
    wheres: list[Where] = [rule.where for rule in policy.rules]
    wheres += [policy.residency.allow, policy.residency.deny, *policy.leaders.prefer]
    for where in wheres:
        for one in where:
            yield from ((one.label, value) for value in one.values)
    spreads = policy.spread + tuple(one for rule in policy.rules for one in rule.spread)
    for spread in spreads:
        yield from ((spread.by, value) for value in spread.over)
    for count in policy.counts:
        yield count.label, count.value
