"""The value of a key in force and its source, as Kafka's DescribeConfigs reports them.

How:    topic: set on the topic > cluster-wide > default. Broker: the keys of its file, then the
        keys set on the broker at run time, then every cluster-wide key, then Kafka's other broker
        keys. `synonyms` lists the sources in that order, the one in force first.
Source: Kafka's DescribeConfigs; STYLE, "Configuration"."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum

from strandline.config.broker import ENTRIES, SECTIONS, BrokerConfig, section_field
from strandline.config.broker_life import LIFE_KEYS_BY_NAME
from strandline.config.cluster import CLUSTER_KEYS_BY_NAME
from strandline.config.kafka.from_file import FILE_VALUES
from strandline.config.kafka.other_resources import CLIENT_METRICS_KEYS, GROUP_KEYS
from strandline.config.kafka.table import FIXED_KEYS
from strandline.config.keys import Key, format_value, keys_of
from strandline.config.topic import NOTHING, TOPIC_KEYS_BY_NAME


class ConfigSource(IntEnum):
    """Where a value comes from; the numbers are Kafka's."""

    TOPIC = 1
    BROKER = 2
    CLUSTER = 3
    FILE = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True)
class Synonym:
    """One place that gives a value: under which name, which value, and which kind of place. A
    default without a name of its own cannot be changed; without a value, the key has none."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class EffectiveValue:
    """A key's value in force. `synonyms[0]` is the place it comes from."""

    key: Key
    synonyms: tuple[Synonym, ...]
    read_only: bool = False

    @property
    def value(self) -> str | None:
        """The value as text; None without one."""
        return self.synonyms[0].value

    @property
    def source(self) -> ConfigSource:
        """Where it comes from."""
        return self.synonyms[0].source


def topic_values(
    cluster_defaults: Mapping[str, str],
    overrides: Mapping[str, str],
    derived: Mapping[str, str] = NOTHING,
) -> list[EffectiveValue]:
    """Every topic key for a topic with `overrides` in a cluster with `cluster_defaults`; `derived`:
    defaults that come from other keys of the topic. An internal key appears where it is set."""
    values = []
    for row in TOPIC_KEYS_BY_NAME.values():
        if row.internal and row.name not in overrides:
            continue
        places = []
        if row.name in overrides:
            places.append(Synonym(row.name, overrides[row.name], ConfigSource.TOPIC))
        places += _cluster_places(row, row.cluster_name, cluster_defaults)
        if row.name in derived:
            places[-1] = Synonym(row.cluster_name, derived[row.name], ConfigSource.DEFAULT)
        values.append(EffectiveValue(row, tuple(places)))
    return values


def group_values(cluster_configs: Mapping[str, str]) -> list[EffectiveValue]:
    """Every key of a group, in a cluster with `cluster_configs`; none can be altered."""
    return [
        EffectiveValue(
            row, tuple(_cluster_places(row, row.cluster_name, cluster_configs)), read_only=True
        )
        for row in GROUP_KEYS
    ]


def client_metrics_values() -> list[EffectiveValue]:
    """Every key of a subscription to clients' metrics; none can be altered."""
    return [
        EffectiveValue(row, tuple(_cluster_places(row, "", {})), read_only=True)
        for row in CLIENT_METRICS_KEYS
    ]


def cluster_values(cluster_configs: Mapping[str, str]) -> list[EffectiveValue]:
    """Every key that can be set for the whole cluster."""
    return [
        EffectiveValue(row, tuple(_cluster_places(row, row.name, cluster_configs)))
        for row in CLUSTER_KEYS_BY_NAME.values()
    ]


def broker_values(
    config: BrokerConfig, cluster_configs: Mapping[str, str], wanted: Mapping[str, str]
) -> list[EffectiveValue]:
    """Every key of one broker: its file's, which cannot be altered over the wire, what is wanted of
    it, then the cluster's."""
    values = []
    for section, body in SECTIONS.items():
        if section in ENTRIES and config.listener_entries:
            continue  # `listeners` and its like have them.
        table = getattr(config, section_field(section))
        for row in keys_of(body, prefix=f"{section}."):
            text = format_value(getattr(table, row.name.rpartition(".")[2]))
            default = None if row.default is None else format_value(row.default)
            source = ConfigSource.DEFAULT if text == default else ConfigSource.FILE
            values.append(EffectiveValue(row, (Synonym(row.name, text, source),), read_only=True))
    for row in LIFE_KEYS_BY_NAME.values():
        places = _cluster_places(row, row.name, cluster_configs)
        if row.name in wanted:
            places.insert(0, Synonym(row.name, wanted[row.name], ConfigSource.BROKER))
        values.append(EffectiveValue(row, tuple(places)))
    others = cluster_values(cluster_configs)
    values += [one for one in others if one.key.name not in LIFE_KEYS_BY_NAME]
    return values + _fixed_values(config, {one.key.name for one in values})


def _fixed_values(config: BrokerConfig, named: Collection[str]) -> list[EffectiveValue]:
    """The keys of Kafka's that cannot be altered over the wire and are not `named`."""
    values = []
    for row in FIXED_KEYS:
        if row.name in named:
            continue
        default = None if row.default is None else format_value(row.default)
        read = FILE_VALUES.get(row.name)
        text = default if read is None else read(config)
        source = ConfigSource.DEFAULT if text == default else ConfigSource.FILE
        values.append(EffectiveValue(row, (Synonym(row.name, text, source),), read_only=True))
    return values


def _cluster_places(row: Key, name: str, cluster_configs: Mapping[str, str]) -> list[Synonym]:
    default = None if row.default is None else format_value(row.default)
    places = [Synonym(name, default, ConfigSource.DEFAULT)]
    if name in cluster_configs:
        places.insert(0, Synonym(name, cluster_configs[name], ConfigSource.CLUSTER))
    return places
