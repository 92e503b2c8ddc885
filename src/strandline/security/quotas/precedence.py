"""Which of several quotas counts for a client, and which clients share it.

How:    the first of these entities that has the key:
        1  user, client id                  each pair of user and client id has its own
        2  user, default client id          as 1
        3  user                             all client ids of the user share it
        4  default user, client id          as 1
        5  default user, default client id  as 1
        6  default user                     each user has its own
        7  client id                        all users with this client id share it
        8  default client id                each client id has its own
        Each key is looked up for itself.
            A client without a client id has the empty one, which the defaults cover.
Source: Kafka 4.3's DefaultQuotaCallback; KIP-55."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from strandline.model.access import QuotaEntity
from strandline.security.quotas.keys import CLIENT_ID, USER

Sharers = tuple[str | None, str | None]
"""(user, client id) of the clients that use one quota together; None for all."""


class Applicable(NamedTuple):
    """The quota that counts for a client."""

    value: float
    sharers: Sharers


def applicable(
    quotas: Mapping[QuotaEntity, Mapping[str, float]], key: str, *, user: str, client_id: str
) -> Applicable | None:
    """The quota of this key for a client; None if it has none."""
    for entity, sharers in _levels(user, client_id):
        values = quotas.get(entity)
        if values is not None and key in values:
            return Applicable(values[key], sharers)
    return None


def _levels(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, Sharers]]:
    """Entities, sorted by type as `QuotaEntity` is, and who shares their quota."""
    pair = (user, client_id)
    yield ((CLIENT_ID, client_id), (USER, user)), pair
    yield ((CLIENT_ID, None), (USER, user)), pair
    yield ((USER, user),), (user, None)
    yield ((CLIENT_ID, client_id), (USER, None)), pair
    yield ((CLIENT_ID, None), (USER, None)), pair
    yield ((USER, None),), (user, None)
    yield ((CLIENT_ID, client_id),), (None, client_id)
    yield ((CLIENT_ID, None),), (None, client_id)
