"""The topic keys of Kafka's that change nothing here: checked, stored and given back.

Why:    tools that manage a topic's configuration set whatever Kafka has, and compare what they
        read with what they set.
Owns:   nothing.
Source: Kafka 4.3's topic configuration; decision 0045."""

from strandline.config.keys import Key, ValueType

STORED_TOPIC_KEYS: tuple[Key, ...] = (
    Key(
        name="file.delete.delay.ms",
        type=ValueType.LONG,
        default=60_000,
        doc="How long Kafka keeps the file of a deleted segment. Strandline deletes it once the "
        "last reader has closed it: the value is stored and changes nothing.",
        unit="ms",
        minimum=0,
        cluster_name="log.segment.delete.delay.ms",
        reloadable=True,
    ),
    Key(
        name="segment.index.bytes",
        type=ValueType.INT,
        default=10 * 1024 * 1024,
        doc="The size that Kafka allocates for a segment's offset index. Strandline's index grows "
        "with its segment: the value is stored and changes nothing.",
        unit="bytes",
        minimum=4,
        cluster_name="log.index.size.max.bytes",
        reloadable=True,
    ),
)
