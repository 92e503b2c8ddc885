"""Kafka's broker keys of replication, the controller, and directories.

Why:    here replicas are Raft groups with timers of their own.
Source: Kafka 4.3's broker configuration; decision 0045."""

from strandline.config.kafka.rows import BOOLEAN, CLASS, INT, LIST, LONG, STRING, fixed, stored
from strandline.config.keys import Key

_NO_CLASSES = "Strandline loads no Java classes."
_PUSH = "Strandline's leaders send to followers; followers do not fetch."
_QUORUM = "Strandline's controller is a Raft group with the timers of `[replication]`."
_TO_SNAPSHOTS = (
    "Strandline closes a segment of it with each snapshot, and keeps what the two newest snapshots "
    "need."
)

REPLICATION_STORED: tuple[Key, ...] = (
    stored(
        "num.replica.fetchers", INT, 1, f"Threads that fetch from each leader. {_PUSH}", minimum=1
    ),
)

REPLICATION_FIXED: tuple[Key, ...] = (
    fixed(
        "alter.config.policy.class.name",
        CLASS,
        None,
        f"The class that may refuse changes of configuration. {_NO_CLASSES}",
    ),
    fixed(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        "Samples of the limit on copies between directories that are kept. A broker here has "
        "one directory.",
    ),
    fixed(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        1,
        "The length of a sample of the limit on copies between directories. A broker here has "
        "one directory.",
    ),
    fixed(
        "broker.session.timeout.ms",
        INT,
        9000,
        "How long the controller waits for a broker's heartbeat before its partitions get "
        "other leaders. Here each partition's replicas elect a leader after `[replication] "
        "election_timeout_ms` of the broker's file.",
    ),
    fixed(
        "controlled.shutdown.enable",
        BOOLEAN,
        True,
        "Whether a broker hands its leaderships over before it stops. Strandline always does.",
    ),
    fixed(
        "controller.quorum.append.linger.ms",
        INT,
        25,
        f"How long the controller collects changes before it writes them. {_QUORUM}",
    ),
    fixed(
        "controller.quorum.auto.join.enable",
        BOOLEAN,
        False,
        f"Whether a new controller makes itself a voter. {_QUORUM}",
    ),
    fixed(
        "controller.quorum.bootstrap.servers",
        LIST,
        (),
        "Addresses at which a broker first asks for the controller. Here they are `[cluster] "
        f"seeds`. {_QUORUM}",
    ),
    fixed(
        "controller.quorum.election.backoff.max.ms",
        INT,
        1000,
        f"The longest pause after an election without a winner. {_QUORUM}",
    ),
    fixed(
        "controller.quorum.fetch.max.bytes",
        INT,
        1_048_576,
        f"The most bytes of the controller's log in one fetch. {_QUORUM}",
    ),
    fixed(
        "controller.quorum.fetch.snapshot.max.bytes",
        INT,
        1_048_576,
        f"The most bytes of a snapshot in one fetch. {_QUORUM}",
    ),
    fixed(
        "controller.quorum.fetch.timeout.ms",
        INT,
        2000,
        f"How long a voter waits for the leader before it stands for election. {_QUORUM}",
    ),
    fixed(
        "controller.quorum.request.timeout.ms",
        INT,
        2000,
        f"How long voters wait for each other's answers. {_QUORUM}",
    ),
    fixed(
        "controller.quorum.retry.backoff.ms",
        INT,
        20,
        f"How long a voter waits after a failed request. {_QUORUM}",
    ),
    fixed(
        "controller.socket.timeout.ms",
        INT,
        30_000,
        f"How long the controller waits for a broker's answer. {_QUORUM}",
    ),
    fixed(
        "cordoned.log.dirs",
        LIST,
        (),
        "Directories that get no new replicas. A broker here has one directory: use "
        "`strandline broker decommission` or `strandline broker maintain`.",
    ),
    fixed(
        "create.topic.policy.class.name",
        CLASS,
        None,
        f"The class that may refuse new topics. {_NO_CLASSES}",
    ),
    fixed(
        "delete.topic.enable", BOOLEAN, True, "Whether topics can be deleted. Here they always can."
    ),
    fixed(
        "initial.broker.registration.timeout.ms",
        INT,
        60_000,
        "How long a broker tries to join before it stops. Strandline tries until it has joined.",
    ),
    fixed(
        "metadata.log.segment.bytes",
        INT,
        1_073_741_824,
        f"The size at which a segment of the controller's log is closed. {_TO_SNAPSHOTS}",
    ),
    fixed(
        "metadata.log.segment.ms",
        LONG,
        604_800_000,
        f"The age at which a segment of the controller's log is closed. {_TO_SNAPSHOTS}",
    ),
    fixed(
        "metadata.max.idle.interval.ms",
        INT,
        500,
        "How often an idle controller writes an empty change. Strandline's heartbeats need no "
        "writes.",
    ),
    fixed(
        "metadata.max.retention.bytes",
        LONG,
        104_857_600,
        f"The most bytes of the controller's log and snapshots that are kept. {_TO_SNAPSHOTS}",
    ),
    fixed(
        "metadata.max.retention.ms",
        LONG,
        604_800_000,
        f"How long the controller's log and snapshots are kept. {_TO_SNAPSHOTS}",
    ),
    fixed(
        "num.replica.alter.log.dirs.threads",
        INT,
        None,
        "Threads that move replicas between directories. A broker here has one directory.",
    ),
    fixed(
        "replica.fetch.backoff.ms",
        INT,
        1000,
        f"How long a follower waits after a failed fetch. {_PUSH}",
    ),
    fixed(
        "replica.fetch.max.bytes",
        INT,
        1_048_576,
        "The most bytes of one partition in a follower's fetch. See `[replication] "
        f"append_bytes_max`. {_PUSH}",
    ),
    fixed(
        "replica.fetch.min.bytes",
        INT,
        1,
        f"The least bytes that a follower's fetch waits for. {_PUSH}",
    ),
    fixed(
        "replica.fetch.response.max.bytes",
        INT,
        10_485_760,
        f"The most bytes in the answer to a follower's fetch. {_PUSH}",
    ),
    fixed(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        f"The longest time that a follower's fetch waits. {_PUSH}",
    ),
    fixed(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        "How often Kafka writes high watermarks to the disk. Strandline derives them from its log.",
    ),
    fixed(
        "replica.selector.class",
        STRING,
        None,
        "The class that chooses the replica that a consumer reads from. The topic key "
        f"`fetch.from.nearest.enable` decides here. {_NO_CLASSES}",
    ),
    fixed(
        "replica.socket.receive.buffer.bytes",
        INT,
        65_536,
        f"The receive buffer of a follower's connection. {_PUSH}",
    ),
    fixed(
        "replica.socket.timeout.ms",
        INT,
        30_000,
        f"How long a follower waits for the answer to a fetch. {_PUSH}",
    ),
    fixed(
        "replication.quota.window.num",
        INT,
        11,
        "Samples of the limits on copies that are kept. Here the limits are token buckets.",
    ),
    fixed(
        "replication.quota.window.size.seconds",
        INT,
        1,
        "The length of a sample of the limits on copies. Here the limits are token buckets.",
    ),
)
