"""Kafka's broker keys of logs that are no defaults of topics.

Why:    they are about how Kafka flushes and compacts.
Source: Kafka 4.3's broker configuration; decision 0045."""

from strandline.config.kafka.rows import BOOLEAN, DOUBLE, INT, LONG, fixed, stored
from strandline.config.keys import LONG_MAX, Key

_BY_MS = "Strandline reads only the key in milliseconds."
_CLEANER = "Strandline compacts in slices on the event loop."

LOG_STORED: tuple[Key, ...] = (
    stored(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        134_217_728,
        f"Memory for the keys of all passes of compaction together. {_CLEANER}",
    ),
    stored(
        "log.cleaner.io.buffer.load.factor",
        DOUBLE,
        0.9,
        f"How full the table of keys of a pass may be. {_CLEANER}",
    ),
    stored(
        "log.cleaner.io.buffer.size",
        INT,
        524_288,
        f"Memory for reading and writing during compaction. {_CLEANER}",
        minimum=0,
    ),
    stored(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        1.7976931348623157e308,
        f"The most bytes per second that compaction reads and writes. {_CLEANER}",
    ),
    stored("log.cleaner.threads", INT, 1, f"Threads that compact. {_CLEANER}", minimum=0),
    stored(
        "num.recovery.threads.per.data.dir",
        INT,
        2,
        "Threads that read a directory's logs at the start. A broker here reads them on its "
        "event loop.",
        minimum=1,
    ),
)

LOG_FIXED: tuple[Key, ...] = (
    fixed(
        "log.cleaner.enable",
        BOOLEAN,
        True,
        "Whether logs are compacted. Strandline always compacts topics with that policy.",
    ),
    fixed(
        "log.dir.failure.timeout.ms",
        LONG,
        30_000,
        "How long Kafka waits to report a failed directory before the broker stops. A broker "
        "here has one directory, and reports it at once.",
    ),
    fixed(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60_000,
        "How often Kafka writes up to where its logs are durable. Strandline writes that with "
        "its flushes.",
    ),
    fixed(
        "log.flush.scheduler.interval.ms",
        LONG,
        LONG_MAX,
        "How often Kafka looks for logs to flush. Strandline flushes before it acknowledges.",
    ),
    fixed(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60_000,
        "How often Kafka writes where its logs begin. Strandline writes that before it "
        "removes anything.",
    ),
    fixed(
        "log.retention.hours",
        INT,
        168,
        f"The age above which segments are removed, in hours. {_BY_MS}",
    ),
    fixed(
        "log.retention.minutes",
        INT,
        None,
        f"The age above which segments are removed, in minutes. {_BY_MS}",
    ),
    fixed("log.roll.hours", INT, 168, f"The age at which a segment is closed, in hours. {_BY_MS}"),
    fixed(
        "log.roll.jitter.hours",
        INT,
        0,
        f"The most by which a segment is closed earlier, in hours. {_BY_MS}",
    ),
)
