"""The cost of copying logs to other brokers: bytes, those that cross regions, and how long at the
throttle. Pure.

How:    A partition's leader sends each new replica the whole log. Limits bound sums of copies: from
        a broker, to a broker, and between regions. All of them hold at once, so the slowest gives
        the least duration. New records come on top; if partitions move in turns, there is less to
        send at a time.
Source: design section 5; `replication.throttle`; decision 0010 ("Budget")."""

from collections.abc import Iterable
from math import inf

import msgspec

from strandline.model.ids import BrokerId


class Copy(msgspec.Struct, frozen=True):
    """A log that is sent to a broker."""

    source: BrokerId
    target: BrokerId
    bytes: int | None
    """None if no broker has reported the size of the log."""
    crosses: bool
    """Whether it leaves the region."""


class Limit(msgspec.Struct, frozen=True):
    """How many bytes/s some copies may take together; 0 halts them. None: no limit."""

    key: str
    """The key that sets it."""
    bytes_per_s: int
    source: BrokerId | None = None
    target: BrokerId | None = None
    crosses: bool | None = None

    def counts(self, copy: Copy) -> bool:
        """Whether a copy is one of those."""
        return (
            self.source in (None, copy.source)
            and self.target in (None, copy.target)
            and self.crosses in (None, copy.crosses)
        )


class Slowest(msgspec.Struct, frozen=True):
    """The limit that takes longest. `seconds`: None where it halts everything."""

    limit: Limit
    bytes: int
    seconds: float | None


class CopyCost(msgspec.Struct, frozen=True):
    """All copies together. `unknown`: the number of copies of unknown size."""

    copies: int
    bytes: int
    cross_region_bytes: int
    unknown: int
    slowest: Slowest | None
    """None if no known limit applies to any copy."""


def cost_of(copies: Iterable[Copy], limits: Iterable[Limit]) -> CopyCost:
    """The cost of these copies."""
    copies = list(copies)
    lasting = []
    for limit in limits:
        count = sum(one.bytes or 0 for one in copies if limit.counts(one))
        if count:
            seconds = count / limit.bytes_per_s if limit.bytes_per_s else None
            lasting.append(Slowest(limit, count, seconds))
    return CopyCost(
        copies=len(copies),
        bytes=sum(one.bytes or 0 for one in copies),
        cross_region_bytes=sum(one.bytes or 0 for one in copies if one.crosses),
        unknown=sum(one.bytes is None for one in copies),
        slowest=max(
            lasting, key=lambda one: inf if one.seconds is None else one.seconds, default=None
        ),
    )
