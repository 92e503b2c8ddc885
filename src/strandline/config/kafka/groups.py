"""Kafka's broker keys of groups of the consumer and streams protocols.

Why:    the keys of classic groups are the cluster's (`config.cluster`).
Source: Kafka 4.3's broker configuration; decision 0045."""

from strandline.config.kafka.rows import INT, LIST, LONG, STRING, fixed, stored
from strandline.config.keys import INT_MAX, Key

_COORDINATOR = "Strandline's coordinators run on the event loop."
_NO_CONSUMER = "Strandline has no groups of the consumer protocol (KIP-848) yet."
_NO_STREAMS = "Strandline has no streams groups."

GROUP_STORED: tuple[Key, ...] = (
    stored(
        "group.consumer.assignment.interval.ms",
        INT,
        1000,
        f"The shortest time between two assignments of a consumer group. {_NO_CONSUMER}",
        minimum=0,
    ),
    stored(
        "group.coordinator.cached.buffer.max.bytes",
        INT,
        1_048_588,
        f"The largest write buffer that a group coordinator keeps. {_COORDINATOR}",
        minimum=524288,
    ),
    stored(
        "group.streams.assignment.interval.ms",
        INT,
        1000,
        f"The shortest time between two assignments of a streams group. {_NO_STREAMS}",
        minimum=0,
    ),
)

GROUP_FIXED: tuple[Key, ...] = (
    fixed(
        "group.consumer.assignors",
        LIST,
        ("uniform", "range"),
        "Names of the assignors of consumer groups, the first one being the default. "
        f"{_NO_CONSUMER}",
    ),
    fixed(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5000,
        f"The interval of heartbeats of a member of a consumer group. {_NO_CONSUMER}",
    ),
    fixed(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15_000,
        "The highest value that a consumer group may have for the time between two "
        f"assignments. {_NO_CONSUMER}",
    ),
    fixed(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15_000,
        f"The longest interval of heartbeats that a consumer group may have. {_NO_CONSUMER}",
    ),
    fixed(
        "group.consumer.max.session.timeout.ms",
        INT,
        60_000,
        f"The longest session time-out that a consumer group may have. {_NO_CONSUMER}",
    ),
    fixed(
        "group.consumer.max.size",
        INT,
        INT_MAX,
        f"The most members of a consumer group. {_NO_CONSUMER}",
    ),
    fixed(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        f"Which groups may change between the classic and the consumer protocol. {_NO_CONSUMER}",
    ),
    fixed(
        "group.consumer.min.assignment.interval.ms",
        INT,
        0,
        "The lowest value that a consumer group may have for the time between two "
        f"assignments. {_NO_CONSUMER}",
    ),
    fixed(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5000,
        f"The shortest interval of heartbeats that a consumer group may have. {_NO_CONSUMER}",
    ),
    fixed(
        "group.consumer.min.session.timeout.ms",
        INT,
        45_000,
        f"The shortest session time-out that a consumer group may have. {_NO_CONSUMER}",
    ),
    fixed(
        "group.consumer.session.timeout.ms",
        INT,
        45_000,
        f"How long a member of a consumer group may be silent. {_NO_CONSUMER}",
    ),
    fixed(
        "group.coordinator.append.linger.ms",
        INT,
        -1,
        f"How long a coordinator collects changes before it writes them. {_COORDINATOR}",
    ),
    fixed(
        "group.coordinator.background.threads",
        INT,
        2,
        f"Threads of the group coordinator for work in the background. {_COORDINATOR}",
    ),
    fixed(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer", "streams"),
        "The protocols of groups that Kafka's coordinator takes. Strandline takes what "
        "ApiVersions lists.",
    ),
    fixed("group.coordinator.threads", INT, 4, f"Threads of the group coordinator. {_COORDINATOR}"),
    fixed(
        "group.streams.heartbeat.interval.ms",
        INT,
        5000,
        f"The interval of heartbeats of a member of a streams group. {_NO_STREAMS}",
    ),
    fixed(
        "group.streams.initial.rebalance.delay.ms",
        INT,
        3000,
        f"How long a new streams group waits for more members. {_NO_STREAMS}",
    ),
    fixed(
        "group.streams.max.assignment.interval.ms",
        INT,
        15_000,
        "The highest value that a streams group may have for the time between two "
        f"assignments. {_NO_STREAMS}",
    ),
    fixed(
        "group.streams.max.heartbeat.interval.ms",
        INT,
        15_000,
        f"The longest interval of heartbeats that a streams group may have. {_NO_STREAMS}",
    ),
    fixed(
        "group.streams.max.session.timeout.ms",
        INT,
        60_000,
        f"The longest session time-out that a streams group may have. {_NO_STREAMS}",
    ),
    fixed(
        "group.streams.max.size",
        INT,
        INT_MAX,
        f"The most members of a streams group. {_NO_STREAMS}",
    ),
    fixed(
        "group.streams.max.standby.replicas",
        INT,
        2,
        f"The most standby replicas that a streams group may have. {_NO_STREAMS}",
    ),
    fixed(
        "group.streams.min.assignment.interval.ms",
        INT,
        0,
        "The lowest value that a streams group may have for the time between two assignments. "
        f"{_NO_STREAMS}",
    ),
    fixed(
        "group.streams.min.heartbeat.interval.ms",
        INT,
        5000,
        f"The shortest interval of heartbeats that a streams group may have. {_NO_STREAMS}",
    ),
    fixed(
        "group.streams.min.session.timeout.ms",
        INT,
        45_000,
        f"The shortest session time-out that a streams group may have. {_NO_STREAMS}",
    ),
    fixed(
        "group.streams.num.standby.replicas",
        INT,
        0,
        f"How many standby replicas a streams group has. {_NO_STREAMS}",
    ),
    fixed(
        "group.streams.session.timeout.ms",
        INT,
        45_000,
        f"How long a member of a streams group may be silent. {_NO_STREAMS}",
    ),
    fixed(
        "offsets.commit.timeout.ms",
        INT,
        5000,
        f"The longest time that a commit of offsets waits for its replicas. {_COORDINATOR}",
    ),
    fixed(
        "offsets.load.buffer.size",
        INT,
        5_242_880,
        f"How much of a group's log a coordinator reads at a time. {_COORDINATOR}",
    ),
    fixed(
        "offsets.retention.check.interval.ms",
        LONG,
        600_000,
        f"How often a coordinator looks for offsets that have expired. {_COORDINATOR}",
    ),
    fixed(
        "offsets.topic.compression.codec",
        INT,
        0,
        f"The codec of the groups' log, as Kafka's number. {_COORDINATOR}",
    ),
    fixed(
        "offsets.topic.segment.bytes",
        INT,
        104_857_600,
        f"The size at which a segment of the groups' log is closed. {_COORDINATOR}",
    ),
)
