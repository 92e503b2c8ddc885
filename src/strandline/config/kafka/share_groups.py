"""Kafka's broker keys of share groups.

Why:    tools read them to find out what share groups may do.
Source: Kafka 4.3's broker configuration; decision 0045."""

from strandline.config.kafka.rows import INT, LIST, SHORT, fixed, stored
from strandline.config.keys import Key

_NO_SHARE = "Strandline has no share groups."

SHARE_GROUP_STORED: tuple[Key, ...] = (
    stored(
        "group.share.assignment.interval.ms",
        INT,
        1000,
        f"The shortest time between two assignments of a share group. {_NO_SHARE}",
        minimum=0,
    ),
    stored(
        "share.coordinator.cached.buffer.max.bytes",
        INT,
        1_048_588,
        f"The largest write buffer that the share coordinator keeps. {_NO_SHARE}",
        minimum=524288,
    ),
)

SHARE_GROUP_FIXED: tuple[Key, ...] = (
    fixed(
        "group.share.assignors",
        LIST,
        ("simple",),
        f"Names of the assignors of share groups, the first one being the default. {_NO_SHARE}",
    ),
    fixed(
        "group.share.delivery.count.limit",
        INT,
        5,
        f"How often a record is delivered to a share group at most. {_NO_SHARE}",
    ),
    fixed(
        "group.share.heartbeat.interval.ms",
        INT,
        5000,
        f"The interval of heartbeats of a member of a share group. {_NO_SHARE}",
    ),
    fixed(
        "group.share.max.assignment.interval.ms",
        INT,
        15_000,
        "The highest value that a share group may have for the time between two assignments. "
        f"{_NO_SHARE}",
    ),
    fixed(
        "group.share.max.delivery.count.limit",
        INT,
        10,
        f"The highest limit on deliveries that a share group may have. {_NO_SHARE}",
    ),
    fixed(
        "group.share.max.heartbeat.interval.ms",
        INT,
        15_000,
        f"The longest interval of heartbeats that a share group may have. {_NO_SHARE}",
    ),
    fixed(
        "group.share.max.partition.max.record.locks",
        INT,
        4000,
        "The highest limit on locked records of a partition that a share group may have. "
        f"{_NO_SHARE}",
    ),
    fixed(
        "group.share.max.record.lock.duration.ms",
        INT,
        60_000,
        f"The longest lock on a record that a share group may have. {_NO_SHARE}",
    ),
    fixed(
        "group.share.max.session.timeout.ms",
        INT,
        60_000,
        f"The longest session time-out that a share group may have. {_NO_SHARE}",
    ),
    fixed(
        "group.share.max.share.sessions",
        INT,
        2000,
        f"The most share sessions of a broker. {_NO_SHARE}",
    ),
    fixed("group.share.max.size", INT, 200, f"The most members of a share group. {_NO_SHARE}"),
    fixed(
        "group.share.min.assignment.interval.ms",
        INT,
        0,
        "The lowest value that a share group may have for the time between two assignments. "
        f"{_NO_SHARE}",
    ),
    fixed(
        "group.share.min.delivery.count.limit",
        INT,
        2,
        f"The lowest limit on deliveries that a share group may have. {_NO_SHARE}",
    ),
    fixed(
        "group.share.min.heartbeat.interval.ms",
        INT,
        5000,
        f"The shortest interval of heartbeats that a share group may have. {_NO_SHARE}",
    ),
    fixed(
        "group.share.min.partition.max.record.locks",
        INT,
        100,
        "The lowest limit on locked records of a partition that a share group may have. "
        f"{_NO_SHARE}",
    ),
    fixed(
        "group.share.min.record.lock.duration.ms",
        INT,
        15_000,
        f"The shortest lock on a record that a share group may have. {_NO_SHARE}",
    ),
    fixed(
        "group.share.min.session.timeout.ms",
        INT,
        45_000,
        f"The shortest session time-out that a share group may have. {_NO_SHARE}",
    ),
    fixed(
        "group.share.partition.max.record.locks",
        INT,
        2000,
        f"The most locked records of a partition in a share group. {_NO_SHARE}",
    ),
    fixed(
        "group.share.record.lock.duration.ms",
        INT,
        30_000,
        f"How long a record stays locked for a consumer of a share group. {_NO_SHARE}",
    ),
    fixed(
        "group.share.session.timeout.ms",
        INT,
        45_000,
        f"How long a member of a share group may be silent. {_NO_SHARE}",
    ),
    fixed(
        "share.coordinator.append.linger.ms",
        INT,
        -1,
        f"How long the share coordinator collects changes before it writes them. {_NO_SHARE}",
    ),
    fixed(
        "share.coordinator.load.buffer.size",
        INT,
        5_242_880,
        f"How much of its log the share coordinator reads at a time. {_NO_SHARE}",
    ),
    fixed(
        "share.coordinator.snapshot.update.records.per.snapshot",
        INT,
        500,
        f"How many changes the share coordinator writes between two snapshots. {_NO_SHARE}",
    ),
    fixed(
        "share.coordinator.state.topic.compression.codec",
        INT,
        0,
        f"The codec of the share coordinator's log, as Kafka's number. {_NO_SHARE}",
    ),
    fixed(
        "share.coordinator.state.topic.min.isr",
        SHORT,
        2,
        f"The least replicas in sync of the share coordinator's log. {_NO_SHARE}",
    ),
    fixed(
        "share.coordinator.state.topic.num.partitions",
        INT,
        50,
        f"Partitions of the share coordinator's log. {_NO_SHARE}",
    ),
    fixed(
        "share.coordinator.state.topic.replication.factor",
        SHORT,
        3,
        f"Replicas of the share coordinator's log. {_NO_SHARE}",
    ),
    fixed(
        "share.coordinator.state.topic.segment.bytes",
        INT,
        104_857_600,
        f"The size at which a segment of the share coordinator's log is closed. {_NO_SHARE}",
    ),
    fixed("share.coordinator.threads", INT, 1, f"Threads of the share coordinator. {_NO_SHARE}"),
    fixed(
        "share.coordinator.write.timeout.ms",
        INT,
        5000,
        f"The longest time that a write of the share coordinator waits. {_NO_SHARE}",
    ),
)
