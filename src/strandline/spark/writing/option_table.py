"""Every option of the sink: the one table that the parser, its errors and the docs' test read.

Why:    a query for Spark's Kafka connector runs after its format's name is changed, so options that
        have no effect here are listed, too.
Source: Spark's guide to its Kafka connector; Kafka's producer configuration."""

from strandline.spark.reading.option_table import Option, Use, access_options

_USED, _IGNORED, _REFUSED = Use.WRITE, Use.NO_EFFECT, Use.REFUSED
_OWN_PACE = "a task sends a batch when it is full, and the rest at its end"
_BYTES_ONLY = "keys and values are strings or bytes: encode them in the query"
_RETRIES = "kafka.delivery.timeout.ms bounds retries"

OPTIONS: tuple[Option, ...] = (
    Option("kafka.bootstrap.servers", _USED, "", "brokers to contact first"),
    Option("topic", _USED, "", "the topic of all rows; the column topic is passed over"),
    Option("kafka.compression.type", _USED, "none", "none, gzip, snappy, lz4 or zstd"),
    Option("kafka.batch.size", _USED, "524288", "bytes of one batch before compression"),
    Option("kafka.delivery.timeout.ms", _USED, "120000", "fail if a batch is not stored by then"),
    Option("kafka.client.id", _USED, "strandline-spark", "the name in requests"),
    Option("kafka.acks", _USED, "all", "only all: a row is written once a quorum has it"),
    Option("kafka.enable.idempotence", _USED, "true", "only true: a retry adds no record twice"),
    *access_options(_USED),
    Option("checkpointLocation", _IGNORED, "", "Spark's own: where a stream's progress is"),
    Option("includeHeaders", _IGNORED, "", "the column headers is written if there is one"),
    Option("kafka.linger.ms", _IGNORED, "", _OWN_PACE),
    Option("kafka.buffer.memory", _IGNORED, "", _OWN_PACE),
    Option("kafka.max.block.ms", _IGNORED, "", _OWN_PACE),
    Option("kafka.max.in.flight.requests.per.connection", _IGNORED, "", _OWN_PACE),
    Option("kafka.max.request.size", _IGNORED, "", "kafka.batch.size bounds requests"),
    Option("kafka.retries", _IGNORED, "", _RETRIES),
    Option("kafka.retry.backoff.ms", _IGNORED, "", _RETRIES),
    Option("kafka.request.timeout.ms", _IGNORED, "", _RETRIES),
    Option("kafka.metadata.max.age.ms", _IGNORED, "", "metadata is looked up when it is needed"),
    Option("kafka.transactional.id", _REFUSED, "", "the sink writes at least once: remove it"),
    Option(
        "kafka.partitioner.class", _REFUSED, "", "no classes are loaded: give a column partition"
    ),
    Option("kafka.interceptor.classes", _REFUSED, "", "no classes are loaded"),
    Option("kafka.key.serializer", _REFUSED, "", _BYTES_ONLY),
    Option("kafka.value.serializer", _REFUSED, "", _BYTES_ONLY),
    Option("path", _REFUSED, "", "save() takes no path: name a topic by the option topic"),
)
