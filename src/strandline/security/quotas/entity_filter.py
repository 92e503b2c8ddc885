"""Which entities a request to describe quotas names.

How:    All conditions must hold. A strict filter also wants no further type in the entity.
Source: Kafka 4.3's ClientQuotasImage.describe; KIP-546."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from strandline.model.access import QuotaEntity
from strandline.security.quotas.keys import ENTITY_TYPES, IP


class Match(IntEnum):
    """How a condition matches; the numbers are Kafka's."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2
    """This type, whatever its name."""


class Condition(NamedTuple):
    """One condition. `name`: None but for `Match.EXACT`."""

    type: str
    match: int
    name: str | None


class UnknownTypeError(Exception):
    """A filter names a type of entity that there is not."""


def check(conditions: Sequence[Condition]) -> None:
    """Refuse a filter that cannot be one. Raises UnknownTypeError; ValueError with the reason."""
    seen: set[str] = set()
    for kind, match, name in conditions:
        if not kind:
            raise ValueError("Invalid empty entity type.")
        if kind in seen:
            raise ValueError(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in ENTITY_TYPES:
            known = ", ".join(ENTITY_TYPES)
            raise UnknownTypeError(f"Unsupported entity type {kind}: use {known}.")
        if match not in list(Match):
            raise ValueError(f"Unknown match type {match}")
        if match == Match.EXACT and name is None:
            raise ValueError("A filter for one name does not give the name.")
        if match != Match.EXACT and name is not None:
            raise ValueError("A filter that is not for one name gives a name.")
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        raise ValueError("Invalid entity filter component combination: an ip stands alone.")


def fits(entity: QuotaEntity, conditions: Sequence[Condition], *, is_strict: bool) -> bool:
    """Whether a filter names an entity."""
    if is_strict and len(entity) != len(conditions):
        return False
    names = dict(entity)
    for kind, match, name in conditions:
        if kind not in names or (match != Match.ANY and names[kind] != name):
            return False
    return True
