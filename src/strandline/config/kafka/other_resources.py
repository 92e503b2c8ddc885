"""Kafka's keys of resources that are neither topics nor brokers: groups, client metrics.

Why:    tools describe them for every group they find, and show the defaults.
How:    none can be set here. Groups of the classic protocol have no keys of their own, and no
        client sends metrics. A group's key has the default of the broker key `cluster_name`.
Source: Kafka 4.3's group and client metrics configuration (KIP-848, KIP-932, KIP-1071, KIP-714);
        decision 0045."""

from strandline.config.kafka.rows import BOOLEAN, INT, LIST, STRING
from strandline.config.keys import Key, Value, ValueType

_CONSUMER = "Strandline has no groups of the consumer protocol (KIP-848) yet."
_SHARE = "Strandline has no share groups."
_STREAMS = "Strandline has no streams groups."
_METRICS = "Clients send no metrics here."


def _of_group(
    name: str,
    type_: ValueType,
    default: Value,
    doc: str,
    *,
    minimum: int | None = None,
    broker_key: str = "",
) -> Key:
    return Key(
        name=name,
        type=type_,
        default=default,
        doc=doc,
        minimum=minimum,
        cluster_name=broker_key or f"group.{name}",
    )


GROUP_KEYS: tuple[Key, ...] = (
    _of_group(
        "consumer.assignment.interval.ms",
        INT,
        1000,
        f"The shortest time between two assignments of the group. {_CONSUMER}",
        minimum=0,
    ),
    _of_group(
        "consumer.heartbeat.interval.ms",
        INT,
        5000,
        f"The interval of heartbeats of a member. {_CONSUMER}",
        minimum=1,
    ),
    _of_group(
        "consumer.session.timeout.ms",
        INT,
        45_000,
        f"How long a member may be silent. {_CONSUMER}",
        minimum=1,
    ),
    _of_group(
        "share.assignment.interval.ms",
        INT,
        1000,
        f"The shortest time between two assignments of the group. {_SHARE}",
        minimum=0,
    ),
    _of_group(
        "share.auto.offset.reset",
        STRING,
        "latest",
        f"Where a group without offsets begins. {_SHARE}",
        broker_key="share.auto.offset.reset",
    ),
    _of_group(
        "share.delivery.count.limit",
        INT,
        5,
        f"How often a record is delivered at most. {_SHARE}",
        minimum=2,
    ),
    _of_group(
        "share.heartbeat.interval.ms",
        INT,
        5000,
        f"The interval of heartbeats of a member. {_SHARE}",
        minimum=1,
    ),
    _of_group(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        f"Whether the group reads records of open transactions. {_SHARE}",
        broker_key="share.isolation.level",
    ),
    _of_group(
        "share.partition.max.record.locks",
        INT,
        2000,
        f"The most records of a partition that members hold at once. {_SHARE}",
        minimum=100,
    ),
    _of_group(
        "share.record.lock.duration.ms",
        INT,
        30_000,
        f"How long a member holds a record before it is delivered again. {_SHARE}",
        minimum=1000,
    ),
    _of_group(
        "share.renew.acknowledge.enable",
        BOOLEAN,
        True,
        f"Whether a member may hold a record longer. {_SHARE}",
        broker_key="share.renew.acknowledge.enable",
    ),
    _of_group(
        "share.session.timeout.ms",
        INT,
        45_000,
        f"How long a member may be silent. {_SHARE}",
        minimum=1,
    ),
    _of_group(
        "streams.assignment.interval.ms",
        INT,
        1000,
        f"The shortest time between two assignments of the group. {_STREAMS}",
        minimum=0,
    ),
    _of_group(
        "streams.heartbeat.interval.ms",
        INT,
        5000,
        f"The interval of heartbeats of a member. {_STREAMS}",
        minimum=1,
    ),
    _of_group(
        "streams.initial.rebalance.delay.ms",
        INT,
        3000,
        f"How long an empty group waits for more members. {_STREAMS}",
        minimum=0,
    ),
    _of_group(
        "streams.num.standby.replicas",
        INT,
        0,
        f"Standby replicas of each task. {_STREAMS}",
        minimum=0,
    ),
    _of_group(
        "streams.session.timeout.ms",
        INT,
        45_000,
        f"How long a member may be silent. {_STREAMS}",
        minimum=1,
    ),
)
"""By name; those of classic groups are keys of the cluster."""

CLIENT_METRICS_KEYS: tuple[Key, ...] = (
    Key(
        name="interval.ms",
        type=INT,
        default=300_000,
        doc=f"The interval at which a client sends its metrics. {_METRICS}",
        unit="ms",
    ),
    Key(name="match", type=LIST, default=(), doc=f"Which clients send metrics. {_METRICS}"),
    Key(name="metrics", type=LIST, default=(), doc=f"Which metrics clients send. {_METRICS}"),
)
"""The keys of a subscription to clients' metrics, by name."""
