"""Compares the acknowledged and the consumed records with the log.

Why:    the drill counts losses instead of assuming that there are none.
How:    each value identifies its record. An acknowledged record must be at its acknowledged offset,
        a consumed one at the offset where it was consumed.
Source: docs/decisions/0019-drills.md."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

NO_OFFSET = -1
EXAMPLES_MAX = 10


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record was acknowledged or consumed; NO_OFFSET: anywhere in the partition."""

    partition: int
    offset: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result. `lost`: acknowledged, but not in the log. `retracted`: consumed, but not in the
    log. `duplicate_count`: copies of a value in its partition beyond the first."""

    acknowledged_count: int
    consumed_count: int
    found_count: int
    lost: tuple[Place, ...]
    retracted: tuple[Place, ...]
    duplicate_count: int

    @property
    def holds(self) -> bool:
        """Whether no acknowledged and no consumed record is missing."""
        return not self.lost and not self.retracted


def compare(
    acknowledged: Iterable[Place],
    consumed: Iterable[Place],
    found: Mapping[int, Mapping[int, bytes]],
) -> Verdict:
    """Compare with `found`, the whole log: {partition: {offset: value}}."""
    values = {partition: set(records.values()) for partition, records in found.items()}

    def is_there(one: Place) -> bool:
        if one.offset == NO_OFFSET:
            return one.value in values.get(one.partition, set())
        return found.get(one.partition, {}).get(one.offset) == one.value

    acknowledged, consumed = list(acknowledged), list(consumed)
    count = sum(map(len, found.values()))
    return Verdict(
        acknowledged_count=len(acknowledged),
        consumed_count=len(consumed),
        found_count=count,
        lost=tuple(one for one in acknowledged if not is_there(one)),
        retracted=tuple(one for one in consumed if not is_there(one)),
        duplicate_count=count - sum(map(len, values.values())),
    )
