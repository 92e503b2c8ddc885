"""The keys of one broker that operators set at run time: decommission, maintenance, copy rates.

Why:    every broker must know these settings, and they must survive a change of the controller. The
        broker's file cannot hold them, because only that broker reads it.
How:    the values are text in the controller's log (`model.Cluster.broker_configs`), set through
        the Kafka config APIs on the broker's resource; `BrokerLife.from_values` reads them.
Owns:   nothing.
Source: docs/decisions/0011-the-life-of-a-broker.md."""

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.config.cluster import CLUSTER_KEYS_BY_NAME
from strandline.config.kafka.table import STORED_KEYS, why_fixed
from strandline.config.keys import INT_MAX, LONG_MAX, Key, Value, key, keys_of
from strandline.config.topic import unknown_key

DECOMMISSION = "broker.decommission"
MAINTENANCE = "broker.maintenance.until.ms"
NO_END = -1
SENT_RATE = "leader.replication.throttled.rate"
CONNECTION_RATE = "max.connection.creation.rate"
TAKEN_RATE = "follower.replication.throttled.rate"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLife:
    """The settings of one broker that operators change at run time."""

    broker_decommission: bool = key(
        False,
        "Whether the broker is being emptied: it gets no more replicas, and its replicas move "
        "to other brokers. Refused if they would have no place there.",
        own=True,
        reloadable=True,
    )

    broker_maintenance_until_ms: int = key(
        0,
        "The end of the broker's maintenance, in milliseconds since 1970. Until then it keeps "
        "its replicas and leads only what no other broker can lead. -1: until the key is unset; "
        "0: not in maintenance. Refused if partitions could not be written without the broker.",
        own=True,
        unit="ms",
        minimum=NO_END,
        reloadable=True,
        long=True,
    )

    follower_replication_throttled_rate: int = key(
        LONG_MAX,
        "The most bytes per second that all copies to new replicas on the broker take together. "
        "The cluster-wide key of this name is the default for each broker.",
        unit="bytes/s",
        minimum=0,
        reloadable=True,
        long=True,
    )

    leader_replication_throttled_rate: int = key(
        LONG_MAX,
        "The most bytes per second that all copies to new replicas read together from the "
        "broker's logs. The cluster-wide key of this name is the default for each broker.",
        unit="bytes/s",
        minimum=0,
        reloadable=True,
        long=True,
    )

    max_connection_creation_rate: int = key(
        INT_MAX,
        "The most connections per second that the broker accepts, over all listeners; further "
        "clients wait. The cluster-wide key of this name is the default for each broker.",
        minimum=0,
        reloadable=True,
    )

    replica_alter_log_dirs_io_max_bytes_per_second: int = key(
        LONG_MAX,
        "A key of Kafka's tools, for copies from one directory of a broker to another. A broker "
        "has one directory here: it limits nothing.",
        unit="bytes/s",
        minimum=0,
        long=True,
    )

    @property
    def is_maintained(self) -> bool:
        """Whether the broker is in maintenance; the controller unsets it when it is over."""
        return self.broker_maintenance_until_ms != 0

    @classmethod
    def from_values(cls, values: Mapping[str, str]) -> "BrokerLife":
        """Read the values that are set; they were checked before."""
        parsed: dict[str, Value] = {
            row.field: row.parse(values[row.name]) for row in LIFE_KEYS if row.name in values
        }
        return cls(**parsed)  # type: ignore[arg-type]


LIFE_KEYS: tuple[Key, ...] = keys_of(BrokerLife, dotted=True)
LIFE_KEYS_BY_NAME: dict[str, Key] = {row.name: row for row in (*LIFE_KEYS, *STORED_KEYS)}
"""Every key that can be set on a single broker."""


def validate_life_config(name: str, value: str) -> str | None:
    """Why a broker may not have this value, in one line; None when it may."""
    row = LIFE_KEYS_BY_NAME.get(name)
    if row is None and name in CLUSTER_KEYS_BY_NAME:
        return f"{name} is the same on every broker: set it on the broker default"
    if row is None:
        return why_fixed(name) or unknown_key(name, LIFE_KEYS_BY_NAME)
    return row.refuse(value)
