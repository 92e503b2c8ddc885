"""The keys of a single broker that are set while the cluster runs: whether it is to leave, or to be
spared for a while; how fast it may copy.

Why:    what a person wants of a broker has to be known to every broker, and outlive the controller
        that was told; so it is not in the broker's file, which only that broker reads.
How:    the values lie as text in the controller's log (`model.Cluster.broker_configs`), set through
        the Kafka config APIs on the broker's resource; `BrokerLife.from_values` reads them.
Owns:   nothing.
Source: docs/decisions/0011-the-life-of-a-broker.md."""

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.config.keys import LONG_MAX, Key, Value, key, keys_of

DECOMMISSION = "broker.decommission"
MAINTENANCE = "broker.maintenance.until.ms"
NO_END = -1
SENT_RATE = "leader.replication.throttled.rate"
TAKEN_RATE = "follower.replication.throttled.rate"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLife:
    """What is wanted of a broker."""

    broker_decommission: bool = key(
        False,
        "Whether the broker is to hold nothing any more: it is given no replicas, and those that "
        "it has move to other brokers. Refused where they would have no place there.",
        reloadable=True,
    )

    broker_maintenance_until_ms: int = key(
        0,
        "Until when the broker is in maintenance, in milliseconds since 1970: it keeps its "
        "replicas and leads nothing that another can lead. -1: until this is no more set; 0: not. "
        "Refused where partitions could not be written without the broker.",
        unit="ms",
        minimum=NO_END,
        reloadable=True,
        long=True,
    )

    follower_replication_throttled_rate: int = key(
        LONG_MAX,
        "How many bytes a second all copies to new replicas on the broker may take together. The "
        "cluster-wide key of this name is the default for each broker.",
        unit="bytes/s",
        minimum=0,
        reloadable=True,
        long=True,
    )

    leader_replication_throttled_rate: int = key(
        LONG_MAX,
        "How many bytes a second all copies to new replicas may take together that are read from "
        "the broker's logs. The cluster-wide key of this name is the default for each broker.",
        unit="bytes/s",
        minimum=0,
        reloadable=True,
        long=True,
    )

    replica_alter_log_dirs_io_max_bytes_per_second: int = key(
        LONG_MAX,
        "Of Kafka's tools, for copies from one directory of a broker to another. A broker has one "
        "here: it limits nothing.",
        unit="bytes/s",
        minimum=0,
        long=True,
    )

    @property
    def is_maintained(self) -> bool:
        """Whether it is in maintenance; the controller unsets what is over."""
        return self.broker_maintenance_until_ms != 0

    @classmethod
    def from_values(cls, values: Mapping[str, str]) -> "BrokerLife":
        """Read the values that are set, which were checked before."""
        parsed: dict[str, Value] = {
            row.field: row.parse(values[row.name]) for row in LIFE_KEYS if row.name in values
        }
        return cls(**parsed)  # type: ignore[arg-type]


LIFE_KEYS: tuple[Key, ...] = keys_of(BrokerLife, dotted=True)
LIFE_KEYS_BY_NAME: dict[str, Key] = {row.name: row for row in LIFE_KEYS}


def validate_life_config(name: str, value: str) -> str | None:
    """Why a broker may not have this value, in one line; None when it may."""
    row = LIFE_KEYS_BY_NAME.get(name)
    if row is None:
        known = ", ".join(LIFE_KEYS_BY_NAME)
        return f"{name[:200]}: of a single broker only {known} can be set; others are in its file"
    return row.refuse(value)
