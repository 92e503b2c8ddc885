"""The quotas that there are: a table that the controller, brokers and the command line read.

How:    A key that no broker enforces has no row, so it is refused as an unknown one.
Source: Kafka 4.3's QuotaConfig; KIP-13, KIP-124, KIP-599, KIP-612."""

from typing import NamedTuple

USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)
OF_CLIENTS = frozenset({USER, CLIENT_ID})
"""The types of entity that quotas of clients are set for: a user, a client id, or both."""
OF_ADDRESSES = frozenset({IP})

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
REMOTE_REGION_BYTE_RATE = "remote_region_byte_rate"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"
WHOLE_MAX = 2**63 - 1


class QuotaKey(NamedTuple):
    """One quota. `entity_types`: of entities that may have it. `is_whole`: whether its value is a
    whole number. `throttle_ms_max`: the longest time that one answer throttles for."""

    name: str
    entity_types: frozenset[str]
    is_whole: bool
    throttle_ms_max: int
    unit: str
    help: str


QUOTA_KEYS: dict[str, QuotaKey] = {
    one.name: one
    for one in (
        QuotaKey(
            PRODUCER_BYTE_RATE,
            OF_CLIENTS,
            is_whole=True,
            throttle_ms_max=60_000,
            unit="bytes/s",
            help="Bytes of produce requests per second and broker.",
        ),
        QuotaKey(
            CONSUMER_BYTE_RATE,
            OF_CLIENTS,
            is_whole=True,
            throttle_ms_max=60_000,
            unit="bytes/s",
            help="Bytes of answers to fetches per second and broker.",
        ),
        QuotaKey(
            REQUEST_PERCENTAGE,
            OF_CLIENTS,
            is_whole=False,
            throttle_ms_max=1_000,
            unit="%",
            help="Time of a broker's event loop, in percent: 100 is all of it.",
        ),
        QuotaKey(
            REMOTE_REGION_BYTE_RATE,
            OF_CLIENTS,
            is_whole=True,
            throttle_ms_max=60_000,
            unit="bytes/s",
            help="Bytes that cross regions per second and broker. Kafka has no such quota.",
        ),
        QuotaKey(
            CONTROLLER_MUTATION_RATE,
            OF_CLIENTS,
            is_whole=False,
            throttle_ms_max=60_000,
            unit="partitions/s",
            help="Partitions that are made or removed per second and broker.",
        ),
        QuotaKey(
            CONNECTION_CREATION_RATE,
            OF_ADDRESSES,
            is_whole=True,
            throttle_ms_max=1_000,
            unit="connections/s",
            help="New connections of an address per second and broker.",
        ),
    )
}
"""{key: its row}"""
