"""Entities of quotas: users, client ids and addresses, and legal values of a quota.

How:    An entity is a user, a client id, a user with a client id, or an address. Each name may be
        the default: all that have no quota of their own.
Source: Kafka 4.3's ClientQuotaControlManager; KIP-55, KIP-546."""

import ipaddress
import math
from collections.abc import Sequence

from strandline.model.access import QuotaEntity
from strandline.security.quotas.keys import ENTITY_TYPES, IP, QUOTA_KEYS, WHOLE_MAX

NAME_LENGTH_MAX = 1_024
"""Characters of a user, a client id or an address."""
FRACTION_MAX = 1e-6
"""A value is whole if it is this near to a whole number: clients send floating-point numbers."""
DEFAULT_NAME = "<default>"


def entity_of(names: Sequence[tuple[str, str | None]]) -> QuotaEntity:
    """The entity of these types and names, in the one order."""
    return tuple(sorted(names, key=lambda one: one[0]))


def show_entity(entity: Sequence[tuple[str, str | None]]) -> str:
    """An entity as people read it: `client-id billing, user <default>`. Names that a terminal would
    not print as they are stand in quotes."""
    return ", ".join(f"{kind} {_shown(name)}" for kind, name in entity)


def _shown(name: str | None) -> str:
    if name is None:
        return DEFAULT_NAME
    return name if name.isprintable() and name != DEFAULT_NAME else repr(name)


def why_illegal(entity: Sequence[tuple[str, str | None]]) -> str | None:
    """Why nothing can be limited for these types and names; None if it can."""
    if not entity:
        return "Invalid empty client quota entity"
    types = [kind for kind, _ in entity]
    for kind, name in entity:
        if kind not in ENTITY_TYPES:
            return f"Unhandled client quota entity type: {kind[:NAME_LENGTH_MAX]}"
        if types.count(kind) > 1:
            return f"Invalid client quota entity, duplicate entity entry {kind}"
        if name == "":
            return f"Empty {kind} not supported"
        if name is not None and len(name) > NAME_LENGTH_MAX:
            return f"A {kind} of more than {NAME_LENGTH_MAX} characters is not supported"
    if IP not in types:
        return None
    if len(types) > 1:
        return "Invalid client quota entity: an ip stands alone, without a user or a client-id"
    return _why_no_address(entity[0][1])


def why_illegal_value(entity: QuotaEntity, key: str, value: float) -> str | None:
    """Why an entity cannot have this quota; None if it can."""
    row = QUOTA_KEYS.get(key)
    if row is None or not row.entity_types.issuperset(kind for kind, _ in entity):
        return f"Invalid configuration key {key[:NAME_LENGTH_MAX]}"
    if not value > 0 or math.isinf(value):
        return f"Quota {key} must be greater than 0"
    if row.is_whole and (value > WHOLE_MAX or abs(value - round(value)) > FRACTION_MAX):
        return f"Quota {key} must be a whole number, not {value}"
    return None


def _why_no_address(name: str | None) -> str | None:
    if name is None:
        return None
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return f"{name} is not a valid IP address"
    return None
