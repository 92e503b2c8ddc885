"""Kafka's broker keys of tiered storage.

Why:    tools read them to find out whether there is any.
Source: Kafka 4.3's broker configuration; decision 0045."""

from strandline.config.kafka.rows import BOOLEAN, INT, LONG, STRING, fixed, stored
from strandline.config.keys import LONG_MAX, Key

_OWN_TIER = "Strandline's tiered storage has its own keys, `[tiered]` of the broker's file."

TIERING_STORED: tuple[Key, ...] = (
    stored(
        "follower.fetch.last.tiered.offset.enable",
        BOOLEAN,
        False,
        f"Whether a new replica begins behind what tiered storage has. {_OWN_TIER}",
    ),
    stored(
        "remote.fetch.max.wait.ms",
        INT,
        500,
        f"How long a fetch waits for tiered storage. {_OWN_TIER}",
        minimum=1,
    ),
    stored(
        "remote.list.offsets.request.timeout.ms",
        LONG,
        30_000,
        f"How long a look-up of offsets waits for tiered storage. {_OWN_TIER}",
        minimum=1,
    ),
    stored(
        "remote.log.index.file.cache.total.size.bytes",
        LONG,
        1_073_741_824,
        f"Disk space for the indexes of segments in tiered storage. {_OWN_TIER}",
        minimum=1,
    ),
    stored(
        "remote.log.manager.copier.thread.pool.size",
        INT,
        10,
        f"Threads that copy segments to tiered storage. {_OWN_TIER}",
        minimum=1,
    ),
    stored(
        "remote.log.manager.copy.max.bytes.per.second",
        LONG,
        LONG_MAX,
        f"The most bytes per second that are copied to tiered storage. {_OWN_TIER}",
        minimum=1,
    ),
    stored(
        "remote.log.manager.expiration.thread.pool.size",
        INT,
        10,
        f"Threads that remove segments from tiered storage. {_OWN_TIER}",
        minimum=1,
    ),
    stored(
        "remote.log.manager.fetch.max.bytes.per.second",
        LONG,
        LONG_MAX,
        f"The most bytes per second that are read from tiered storage. {_OWN_TIER}",
        minimum=1,
    ),
    stored(
        "remote.log.manager.follower.thread.pool.size",
        INT,
        2,
        f"Threads that follow what leaders copy to tiered storage. {_OWN_TIER}",
        minimum=1,
    ),
    stored(
        "remote.log.reader.threads",
        INT,
        10,
        f"Threads that read from tiered storage. {_OWN_TIER}",
        minimum=1,
    ),
)

TIERING_FIXED: tuple[Key, ...] = (
    fixed(
        "remote.log.manager.copy.quota.window.num",
        INT,
        11,
        f"Samples of that limit that are kept. {_OWN_TIER}",
    ),
    fixed(
        "remote.log.manager.copy.quota.window.size.seconds",
        INT,
        1,
        f"The length of a sample of that limit. {_OWN_TIER}",
    ),
    fixed(
        "remote.log.manager.fetch.quota.window.num",
        INT,
        11,
        f"Samples of that limit that are kept. {_OWN_TIER}",
    ),
    fixed(
        "remote.log.manager.fetch.quota.window.size.seconds",
        INT,
        1,
        f"The length of a sample of that limit. {_OWN_TIER}",
    ),
    fixed(
        "remote.log.manager.task.interval.ms",
        LONG,
        30_000,
        f"How often the broker looks for segments to copy. {_OWN_TIER}",
    ),
    fixed(
        "remote.log.manager.thread.pool.size",
        INT,
        2,
        f"Threads of the manager of tiered storage. {_OWN_TIER}",
    ),
    fixed(
        "remote.log.metadata.custom.metadata.max.bytes",
        INT,
        128,
        f"The most bytes that a storage plug-in may add to a segment's description. {_OWN_TIER}",
    ),
    fixed(
        "remote.log.metadata.manager.class.name",
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        f"The class that keeps the descriptions of segments. {_OWN_TIER}",
    ),
    fixed(
        "remote.log.metadata.manager.class.path",
        STRING,
        None,
        f"Where that class is found. {_OWN_TIER}",
    ),
    fixed(
        "remote.log.metadata.manager.impl.prefix",
        STRING,
        "rlmm.config.",
        f"The beginning of the names of that class's own keys. {_OWN_TIER}",
    ),
    fixed(
        "remote.log.metadata.manager.listener.name",
        STRING,
        None,
        f"The listener that that class connects to. {_OWN_TIER}",
    ),
    fixed(
        "remote.log.reader.max.pending.tasks",
        INT,
        100,
        f"The most reads that wait for tiered storage. {_OWN_TIER}",
    ),
    fixed(
        "remote.log.storage.manager.class.name",
        STRING,
        None,
        f"The class that stores segments. {_OWN_TIER}",
    ),
    fixed(
        "remote.log.storage.manager.class.path",
        STRING,
        None,
        f"Where that class is found. {_OWN_TIER}",
    ),
    fixed(
        "remote.log.storage.manager.impl.prefix",
        STRING,
        "rsm.config.",
        f"The beginning of the names of that class's own keys. {_OWN_TIER}",
    ),
)
