"""The topic keys of Kafka's that change nothing here: checked, stored and given back.

Why:    tools that manage a topic's configuration set whatever Kafka has, and compare what they
        read with what they set.
Owns:   nothing.
Source: Kafka 4.3's topic configuration; decision 0045."""

from strandline.config.keys import Key, Value, ValueType

_NOT_TIERED = "Strandline has no tiered storage: the value is stored and changes nothing."
_FROM_RETENTION = -2


def _check_untiered(value: Value) -> str | None:
    return "must be false: this cluster has no tiered storage" if value else None


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
        name="local.retention.bytes",
        type=ValueType.LONG,
        default=_FROM_RETENTION,
        doc=f"With tiered storage: how many bytes stay on the broker's disk. {_NOT_TIERED}",
        unit="bytes",
        minimum=_FROM_RETENTION,
        cluster_name="log.local.retention.bytes",
        reloadable=True,
    ),
    Key(
        name="local.retention.ms",
        type=ValueType.LONG,
        default=_FROM_RETENTION,
        doc=f"With tiered storage: how long segments stay on the broker's disk. {_NOT_TIERED}",
        unit="ms",
        minimum=_FROM_RETENTION,
        cluster_name="log.local.retention.ms",
        reloadable=True,
    ),
    Key(
        name="remote.log.copy.disable",
        type=ValueType.BOOLEAN,
        default=False,
        doc=f"With tiered storage: whether no further segments are copied to it. {_NOT_TIERED}",
        reloadable=True,
    ),
    Key(
        name="remote.log.delete.on.disable",
        type=ValueType.BOOLEAN,
        default=False,
        doc="With tiered storage: whether a topic that leaves it loses what is stored there. "
        f"{_NOT_TIERED}",
        reloadable=True,
    ),
    Key(
        name="remote.storage.enable",
        type=ValueType.BOOLEAN,
        default=False,
        doc="Whether old segments of the topic go to tiered storage. Strandline has none: the "
        "value can only be false.",
        check=_check_untiered,
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
