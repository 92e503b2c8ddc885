"""Every option of the source: the one table that the parser, its errors and the docs' tests read.

Why:    a query for Spark's Kafka connector runs after its format's name is changed, so each of its
        options is listed, also those without effect here.
Source: Spark's guide to its Kafka connector; decisions/0049."""

from dataclasses import dataclass
from enum import Enum


class Use(Enum):
    """What an option is for."""

    READ = "batches and streams"
    BATCH = "batches"
    STREAM = "streams"
    WRITE = "writing"
    NO_EFFECT = "accepted without effect"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `default` is what holds without it; `note` says in words what it does, or why it
    has no effect or is refused."""

    name: str
    use: Use
    default: str
    note: str


_READ, _BATCH, _STREAM = Use.READ, Use.BATCH, Use.STREAM
_IGNORED, _REFUSED = Use.NO_EFFECT, Use.REFUSED
_NO_GROUP = "this source joins no group"
_OWN_PACE = "the source sizes its own requests"
_BYTES_ONLY = "keys and values are bytes: decode them in the query"
_NO_PASSWORDS = "PEM files have no password: remove it"


def access_options(use: Use) -> tuple[Option, ...]:
    """How brokers are reached, by source and sink alike."""
    return (
        Option("clientConfig", use, "", "a file with a client's configuration, on each machine"),
        Option("kafka.security.protocol", use, "PLAINTEXT", "or SSL, SASL_PLAINTEXT and SASL_SSL"),
        Option("kafka.sasl.mechanism", use, "", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
        Option("kafka.sasl.jaas.config", use, "", "user and password, as Java's clients have them"),
        Option(
            "kafka.ssl.truststore.location", use, "the system's", "trusted authorities: a PEM file"
        ),
        Option("kafka.ssl.truststore.type", use, "", "only PEM"),
        Option("kafka.ssl.keystore.location", use, "", "certificate and key: a PEM file"),
        Option("kafka.ssl.keystore.type", use, "", "only PEM"),
        Option(
            "kafka.ssl.endpoint.identification.algorithm",
            use,
            "https",
            "empty: brokers' names are not compared with their certificates",
        ),
        Option("kafka.ssl.truststore.password", Use.REFUSED, "", _NO_PASSWORDS),
        Option("kafka.ssl.keystore.password", Use.REFUSED, "", _NO_PASSWORDS),
        Option("kafka.ssl.key.password", Use.REFUSED, "", _NO_PASSWORDS),
    )


OPTIONS: tuple[Option, ...] = (
    Option("kafka.bootstrap.servers", _READ, "", "brokers to contact first"),
    Option("subscribe", _READ, "", "topics, with commas"),
    Option("subscribePattern", _READ, "", "a regular expression for whole topic names"),
    Option("assign", _READ, "", "partitions, as JSON"),
    Option("startingOffsets", _READ, "earliest for batches, latest for streams", "where to begin"),
    Option("startingTimestamp", _READ, "", "begin at this time, in ms"),
    Option("startingOffsetsByTimestamp", _READ, "", "begin at these times, as JSON"),
    Option(
        "startingOffsetsByTimestampStrategy",
        _READ,
        "error",
        "error or latest: where no record is so young",
    ),
    Option("endingOffsets", _BATCH, "latest", "where to end"),
    Option("endingTimestamp", _BATCH, "", "end before this time, in ms"),
    Option("endingOffsetsByTimestamp", _BATCH, "", "end before these times, as JSON"),
    Option("failOnDataLoss", _READ, "true", "fail if records are gone before they were read"),
    Option("includeHeaders", _READ, "false", "the column headers"),
    Option("includeLeaderEpoch", _READ, "false", "the column leaderEpoch"),
    Option("includeKey", _READ, "true", "the column key"),
    Option("includeValue", _READ, "true", "the column value"),
    Option("columns", _READ, "", "exactly these columns, with commas"),
    Option("minPartitions", _READ, "", "at least so many tasks, if there are so many offsets"),
    Option("maxRecordsPerPartition", _READ, "500000", "at most so many offsets for each task"),
    Option("maxOffsetsPerTrigger", _STREAM, "", "at most so many offsets in a micro-batch"),
    Option("minOffsetsPerTrigger", _STREAM, "", "wait for so many offsets"),
    Option("maxTriggerDelay", _STREAM, "15m", "the longest wait for minOffsetsPerTrigger"),
    Option("kafkaConsumer.pollTimeoutMs", _READ, "120000", "fail after so long without progress"),
    Option("kafka.isolation.level", _READ, "read_uncommitted", "or read_committed"),
    Option(
        "kafka.client.rack",
        _READ,
        "STRANDLINE_CLIENT_RACK of each executor",
        "the region or rack to read from",
    ),
    Option("readFrom", _READ, "auto with buckets, else broker", "broker, bucket or auto"),
    Option("buckets", _READ, "", "region=URL of each bucket that executors may read, with commas"),
    Option("bucketCredentialsFile", _READ, "", "a path on each executor; default: its environment"),
    Option("kafka.client.id", _READ, "strandline-spark", "the name in requests"),
    Option("kafka.max.partition.fetch.bytes", _READ, "4194304", "bytes of one request"),
    Option("kafka.fetch.max.wait.ms", _READ, "500", "how long a broker waits for new records"),
    Option("kafka.request.timeout.ms", _READ, "30000", "how long to wait for one answer"),
    Option(
        "kafka.default.api.timeout.ms", _READ, "60000", "how long to look for topics and offsets"
    ),
    *access_options(_READ),
    Option("groupIdPrefix", _IGNORED, "", _NO_GROUP),
    Option("kafka.group.id", _IGNORED, "", _NO_GROUP),
    Option("kafka.group.instance.id", _IGNORED, "", _NO_GROUP),
    Option("kafka.session.timeout.ms", _IGNORED, "", _NO_GROUP),
    Option("kafka.heartbeat.interval.ms", _IGNORED, "", _NO_GROUP),
    Option("kafka.max.poll.interval.ms", _IGNORED, "", _NO_GROUP),
    Option("kafka.partition.assignment.strategy", _IGNORED, "", _NO_GROUP),
    Option("fetchOffset.numRetries", _IGNORED, "", "kafka.default.api.timeout.ms bounds retries"),
    Option("fetchOffset.retryIntervalMs", _IGNORED, "", "pauses grow from 20 to 500 ms"),
    Option("kafka.retry.backoff.ms", _IGNORED, "", "pauses grow from 20 to 500 ms"),
    Option("kafka.reconnect.backoff.ms", _IGNORED, "", "pauses grow from 20 to 500 ms"),
    Option("kafka.reconnect.backoff.max.ms", _IGNORED, "", "pauses grow from 20 to 500 ms"),
    Option("kafka.max.poll.records", _IGNORED, "", _OWN_PACE),
    Option("kafka.fetch.max.bytes", _IGNORED, "", "kafka.max.partition.fetch.bytes bounds it"),
    Option("kafka.fetch.min.bytes", _IGNORED, "", _OWN_PACE),
    Option("kafka.receive.buffer.bytes", _IGNORED, "", "the system sizes buffers"),
    Option("kafka.send.buffer.bytes", _IGNORED, "", "the system sizes buffers"),
    Option("kafka.check.crcs", _IGNORED, "", "checksums are always checked"),
    Option("kafka.metadata.max.age.ms", _IGNORED, "", "metadata is looked up when it is needed"),
    Option("kafka.connections.max.idle.ms", _IGNORED, "", "a task ends its connections"),
    Option("kafka.client.dns.lookup", _IGNORED, "", "the system resolves names"),
    Option("kafka.auto.offset.reset", _REFUSED, "", "give startingOffsets"),
    Option("kafka.enable.auto.commit", _REFUSED, "", "Spark's checkpoint has the progress"),
    Option("kafka.interceptor.classes", _REFUSED, "", "no classes are loaded"),
    Option("kafka.key.deserializer", _REFUSED, "", _BYTES_ONLY),
    Option("kafka.value.deserializer", _REFUSED, "", _BYTES_ONLY),
    Option(
        "provider",
        _REFUSED,
        "",
        "Spark 4.2 reads a table of its catalog without its options: CREATE TEMPORARY VIEW instead",
    ),
    Option("path", _REFUSED, "", "load() takes no path: name topics by subscribe"),
)
