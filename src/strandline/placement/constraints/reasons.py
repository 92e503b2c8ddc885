"""Why a broker is not eligible: a code and its numbers, and the words for them.

How:    one table of codes; a reason's parameters fill its row. Reasons are equal when users would
        read the same, so brokers are grouped by them.
Source: STYLE, rule 4."""

import msgspec

REASONS = {
    "down": "is down",
    "maintenance": "is in maintenance",
    "decommissioning": "is being decommissioned",
    "taken": "holds another replica of the partition",
    "replicas-full": "holds {held} of at most {limit} replicas",
    "disk-full": "disk is {held} % used, of at most {limit} %",
    "not-in": "{label} is not in [{values}]",
    "in": "{label} is in [{values}]",
    "without": "has no label {label}",
    "with": "has the label {label}",
    "not-pinned": "is not one of the brokers [{values}]",
    "host-taken": "{domain} is the host of another replica",
    "domain-full": "{label} {domain} has {held} of at most {limit} replicas",
    "distinct-needed": "{label} {domain} has a replica, and {needed} more are to be distinct",
    "distinct-short": "{needed} more replicas are to be in distinct {label}s, and {left} are left",
    "uneven": "{label} {domain} has {held} replicas, and others would be left behind",
    "count-full": "{label}={domain} has {held} of exactly {limit} replicas",
    "count-needed": "the {left} replicas left have to be where {label}={domain}",
    "count-short": "{needed} more replicas have to be where {label}={domain}, and {left} are left",
    "goal": "with it, losing {goal} could take {lost} voters, and {limit} may be lost",
}  # fmt: skip


class Reason(msgspec.Struct, frozen=True):
    """One code of REASONS with its parameters, ((name, value), ...)."""

    code: str
    parameters: tuple[tuple[str, str | int], ...] = ()

    def __str__(self) -> str:
        return REASONS[self.code].format(**dict(self.parameters))


def because(code: str, **parameters: str | int) -> Reason:
    """A reason; its code and parameters are those of the table."""
    assert code in REASONS, code
    return Reason(code, tuple(parameters.items()))
