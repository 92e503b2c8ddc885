"""Why a broker is not eligible: a code and its numbers, and the words for them.

How:    one table of codes; a reason's parameters fill its row. `{held:replica}` is a number with
        its noun, in the plural where that is right. Reasons are equal when users would read the
        same, so brokers are grouped by them.
Source: STYLE, rule 4."""

from collections.abc import Sequence

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.topology.naming import brokers_named

REASONS = {
    "down": "is down",
    "maintenance": "is in maintenance",
    "decommissioning": "is being decommissioned",
    "taken": "holds another replica of the partition",
    "replicas-full": "holds {held} of at most {limit:replica}",
    "disk-full": "disk is {held} % used, of at most {limit} %",
    "not-in": "{label} is not in [{values}]",
    "in": "{label} is in [{values}]",
    "without": "has no label {label}",
    "with": "has the label {label}",
    "not-pinned": "is not among the brokers [{values}]",
    "host-taken": "{domain} is the host of another replica",
    "domain-full": "{label} {domain} has {held} of at most {limit:replica}",
    "distinct-needed": "{label} {domain} has a replica, and another {label} is required",
    "distinct-short": "{left:more replica} cannot be in {needed:more distinct {label}}",
    "uneven": "{label} {domain} has {held:replica}; one more would be uneven",
    "count-full": "{label}={domain} has {held} of exactly {limit:replica}",
    "count-needed": "{left:more replica} must be in {label}={domain}",
    "count-short": (
        "{needed:more replica} must be in {label}={domain}, and only {left} can be placed"
    ),
    "goal": "losing {goal} could then take {lost:voter}, but at most {limit} may be lost",
}  # fmt: skip
_PLURALS = {"is": "are", "has": "have", "holds": "hold"}
"""The first words of the texts with the broker as the subject."""


class Reason(msgspec.Struct, frozen=True):
    """One code of REASONS with its parameters, ((name, value), ...)."""

    code: str
    parameters: tuple[tuple[str, str | int], ...] = ()

    def __str__(self) -> str:
        words = {
            name: _Number(value) if isinstance(value, int) else value
            for name, value in self.parameters
        }
        return REASONS[self.code].format(**words)

    def text_for(self, brokers: Sequence[BrokerId]) -> str:
        """A sentence without an end: "brokers 1, 2 are down", "broker 3: region is in [a]"."""
        text = str(self)
        verb, _, rest = text.partition(" ")
        if verb not in _PLURALS:
            return f"{brokers_named(brokers)}: {text}"
        return f"{brokers_named(brokers)} {verb if len(brokers) == 1 else _PLURALS[verb]} {rest}"


class _Number(int):
    """Its format is a noun."""

    def __format__(self, noun: str) -> str:
        return f"{int(self)} {noun}{'s' * (self != 1)}" if noun else str(int(self))


def because(code: str, **parameters: str | int) -> Reason:
    """A reason; its code and parameters are those of the table."""
    assert code in REASONS, code
    return Reason(code, tuple(parameters.items()))
