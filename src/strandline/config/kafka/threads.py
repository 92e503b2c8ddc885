"""Kafka's broker keys of threads, sockets, limits on clients, and metrics.

Why:    they are about how Kafka is built.
Source: Kafka 4.3's broker configuration; decision 0045."""

from strandline.config.kafka.rows import CLASS, INT, LIST, LONG, STRING, fixed, stored
from strandline.config.keys import Key

_KERNEL = "Strandline leaves the buffers of sockets to the kernel."
_LOOP = "A broker here has one event loop."
_METRICS = "Strandline has its own metrics (`[metrics]` of the broker's file)."
_NO_PURGE = "Strandline removes such requests at once."
_NO_CALLBACK = "Strandline decides as Kafka does without one."

THREAD_STORED: tuple[Key, ...] = (
    stored(
        "background.threads", INT, 10, f"Threads for work in the background. {_LOOP}", minimum=1
    ),
    stored(
        "config.providers",
        LIST,
        (),
        "Names of the sources from which Kafka resolves references in values.",
    ),
    stored(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        "Other limits than `max.connections.per.ip`, by address or host name.",
    ),
    stored(
        "metric.reporters",
        LIST,
        ("org.apache.kafka.common.metrics.JmxReporter",),
        f"The classes that report metrics. {_METRICS}",
    ),
    stored("num.io.threads", INT, 8, f"Threads that process requests. {_LOOP}", minimum=1),
    stored(
        "num.network.threads",
        INT,
        3,
        f"Threads that read requests and write answers, for each listener. {_LOOP}",
        minimum=1,
    ),
)

THREAD_FIXED: tuple[Key, ...] = (
    fixed(
        "client.quota.callback.class",
        CLASS,
        None,
        f"The class that decides about the quotas of clients. {_NO_CALLBACK}",
    ),
    fixed(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        "How long a failed login delays its answer. Here each further failure of an address "
        "doubles it, up to 5 s, until a login succeeds or a minute passes.",
    ),
    fixed(
        "controller.quota.window.num",
        INT,
        11,
        "The seconds' worth of changes of topics that a quota allows at once.",
    ),
    fixed(
        "controller.quota.window.size.seconds",
        INT,
        1,
        "The length of a sample of the quotas on changes of topics.",
    ),
    fixed(
        "delete.records.purgatory.purge.interval.requests",
        INT,
        1,
        f"After how many requests finished DeleteRecords leave the purgatory. {_NO_PURGE}",
    ),
    fixed(
        "early.start.listeners",
        LIST,
        None,
        "Listeners that Kafka opens before the authorizer is ready. Strandline opens its "
        "listener once the broker has joined.",
    ),
    fixed(
        "fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        f"After how many requests finished fetches leave the purgatory. {_NO_PURGE}",
    ),
    fixed(
        "kafka.metrics.polling.interval.secs",
        INT,
        10,
        f"The interval at which Kafka's metrics reporters are polled. {_METRICS}",
    ),
    fixed(
        "kafka.metrics.reporters",
        LIST,
        (),
        f"The classes that report Kafka's own metrics. {_METRICS}",
    ),
    fixed(
        "max.request.partition.size.limit",
        INT,
        2000,
        "The most partitions that one request for the partitions of topics may ask for.",
    ),
    fixed("metrics.num.samples", INT, 2, f"Samples that are kept for each metric. {_METRICS}"),
    fixed(
        "metrics.recording.level",
        STRING,
        "INFO",
        f"The most detailed level of metrics that is recorded. {_METRICS}",
    ),
    fixed(
        "metrics.sample.window.ms",
        LONG,
        30_000,
        f"The time that a sample of a metric covers. {_METRICS}",
    ),
    fixed(
        "producer.purgatory.purge.interval.requests",
        INT,
        1000,
        f"After how many requests finished produce requests leave the purgatory. {_NO_PURGE}",
    ),
    fixed(
        "queued.max.requests",
        INT,
        500,
        f"Requests that may wait for a thread before the broker stops reading. {_LOOP}",
    ),
    fixed("quota.window.num", INT, 11, "Samples of the quotas on clients that are kept."),
    fixed(
        "quota.window.size.seconds",
        INT,
        1,
        "The length of a sample of the quotas on clients.",
    ),
    fixed(
        "request.timeout.ms",
        INT,
        30_000,
        "How long Kafka's brokers wait for each other's answers. Here the timers of "
        "`[replication]` hold.",
    ),
    fixed(
        "share.fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        f"After how many requests finished share fetches leave the purgatory. {_NO_PURGE}",
    ),
    fixed(
        "socket.connection.setup.timeout.max.ms",
        LONG,
        30_000,
        "The longest time that Kafka waits for a connection to another broker.",
    ),
    fixed(
        "socket.connection.setup.timeout.ms",
        LONG,
        10_000,
        "How long Kafka first waits for a connection to another broker.",
    ),
    fixed("socket.listen.backlog.size", INT, 50, "The most connections that wait to be accepted."),
    fixed(
        "socket.receive.buffer.bytes",
        INT,
        102_400,
        f"The receive buffer of a connection. {_KERNEL}",
    ),
    fixed("socket.send.buffer.bytes", INT, 102_400, f"The send buffer of a connection. {_KERNEL}"),
    fixed(
        "telemetry.max.bytes",
        INT,
        1_048_576,
        f"The most bytes of metrics that a client may push at a time. {_METRICS}",
    ),
)
