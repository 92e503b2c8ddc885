"""Topics and brokers have every configuration key of Kafka 4.3: its type, default and bounds.

How:    kafka_4_3_keys.tsv lists scope, name, type, default, minimum and maximum, as Kafka 4.3.1's
        own tables have them; keys that Kafka calls internal are left out.
Source: decision 0045."""

from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.config.broker import BROKER_KEYS
from strandline.config.broker_life import LIFE_KEYS, LIFE_KEYS_BY_NAME, validate_life_config
from strandline.config.cluster import CLUSTER_KEYS, CLUSTER_KEYS_BY_NAME, validate_cluster_config
from strandline.config.effective import broker_values, topic_values
from strandline.config.kafka.from_file import FILE_KEYS
from strandline.config.kafka.other_resources import CLIENT_METRICS_KEYS, GROUP_KEYS
from strandline.config.kafka.table import FIXED_KEYS, STORED_KEYS
from strandline.config.keys import Key, Value, format_value
from strandline.config.load import load_broker_config
from strandline.config.topic import TOPIC_KEYS_BY_NAME, TopicConfig, validate_topic_config

_ROWS = [
    tuple(line.split("\t"))
    for line in (Path(__file__).parent / "kafka_4_3_keys.tsv").read_text().splitlines()
]
TOPIC_ROWS = [row[1:] for row in _ROWS if row[0] == "topic"]
BROKER_ROWS = [row[1:] for row in _ROWS if row[0] == "broker"]

OTHER_DEFAULTS = {
    "flush.ms": "100",  # Records that no acknowledgement waits for are flushed soon all the same.
    "log.flush.interval.ms": "100",
    "log.retention.ms": "604800000",  # In Kafka these three come from the keys in hours.
    "log.roll.ms": "604800000",
    "log.roll.jitter.ms": "0",
    "default.replication.factor": "3",  # A log that spans regions is there to survive.
}
"""Defaults that are not Kafka's."""
OTHER_TYPES = {"offsets.topic.replication.factor"}
"""An integer here, and a short one in Kafka."""

TIGHTER = {
    "default.replication.factor": (1, 32_767),  # Kafka refuses the others when it uses them.
    "group.initial.rebalance.delay.ms": (0, 1_800_000),  # No member waits longer than this.
    "group.max.session.timeout.ms": (1, None),
    "group.min.session.timeout.ms": (1, None),
    "leader.imbalance.check.interval.seconds": (1, 86_400),
    "log.flush.interval.ms": (0, None),  # Kafka's topic keys of these four have these bounds.
    "log.retention.ms": (-1, None),
    "log.roll.jitter.ms": (0, None),
    "log.roll.ms": (1, None),
    "num.partitions": (1, 10_000),
    "offset.metadata.max.bytes": (0, None),
    "offsets.topic.num.partitions": (1, 10_000),
    "offsets.topic.replication.factor": (1, 32_767),  # A short integer in Kafka.
    "replica.lag.time.max.ms": (1, None),
}
"""Bounds, minimum and maximum, within those of Kafka."""

CONFIG = load_broker_config(
    '[broker]\nid = 7\ndata_directory = "/d"\n[broker.labels]\nregion = "east"\n'
    '[listener]\nkafka_host = "0.0.0.0"\nadvertised_host = "b7.example"\n'
    "[security]\ninsecure = true\n"
    '[cluster]\nseeds = ["1@10.0.0.1:33145"]\n',
    file="f",
)


def default_of(row: Key) -> str:
    return "<null>" if row.default is None else format_value(row.default)


def plain(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text.replace("<none>", "<null>")


def compare(row: Key, name: str, type_: str, default: str) -> None:
    if name not in OTHER_TYPES:
        assert row.type.name == type_, name
    assert plain(default_of(row)) == plain(OTHER_DEFAULTS.get(name, default)), name
    assert row.doc.endswith((".", ".)")), name


def test_a_topic_has_every_key() -> None:
    shown = {value.key.name for value in topic_values({}, {})}
    assert len(TOPIC_ROWS) == 33
    for name, type_, default, *_ in TOPIC_ROWS:
        assert name in shown
        compare(TOPIC_KEYS_BY_NAME[name], name, type_, default)


def test_a_broker_has_every_key() -> None:
    shown = {value.key.name: value.key for value in broker_values(CONFIG, {}, {})}
    assert len(BROKER_ROWS) == 340
    for name, type_, default, *_ in BROKER_ROWS:
        if name == "broker.id":  # Of the file, where it must be given.
            continue
        compare(shown[name], name, type_, default)


@pytest.mark.parametrize(
    ("scope", "keys"), [("group", GROUP_KEYS), ("client_metrics", CLIENT_METRICS_KEYS)]
)
def test_other_resources_have_every_key(scope: str, keys: tuple[Key, ...]) -> None:
    expected = [row[1:] for row in _ROWS if row[0] == scope]
    assert [row.name for row in keys] == [name for name, *_ in expected]
    for row, (name, type_, default, *bounds) in zip(keys, expected, strict=True):
        compare(row, name, type_, default)
        assert bounds_of(row) == tuple(float(text) if text else None for text in bounds), name


def bounds_of(row: Key) -> tuple[float | None, float | None]:
    return row.minimum, row.maximum


@pytest.mark.parametrize("scope", ["topic", "cluster", "broker"])
def test_every_key_that_can_be_set_has_kafkas_bounds(scope: str) -> None:
    keys = {
        "topic": TOPIC_KEYS_BY_NAME,
        "cluster": CLUSTER_KEYS_BY_NAME,
        "broker": LIFE_KEYS_BY_NAME,
    }[scope]
    compared = 0
    for name, _, _, *bounds in TOPIC_ROWS if scope == "topic" else BROKER_ROWS:
        row = keys.get(name)
        if row is None or not row.is_number or row.check is not None:
            continue
        minimum, maximum = (float(text) if text else None for text in bounds)
        assert bounds_of(row) == TIGHTER.get(name, (minimum, maximum)), name
        assert minimum is None or (row.minimum is not None and row.minimum >= minimum), name
        assert maximum is None or (row.maximum is not None and row.maximum <= maximum), name
        compared += 1
    assert compared >= {"topic": 19, "cluster": 60, "broker": 25}[scope]


@pytest.mark.parametrize(
    ("validate", "name"),
    [(validate_topic_config, "segment.bytes"), (validate_cluster_config, "log.segment.bytes")],
)
def test_a_segment_has_kafkas_least_size(
    validate: Callable[[str, str], str | None], name: str
) -> None:
    assert validate(name, "1048575") == f"{name} must be at least 1048576, not 1048575"
    assert validate(name, "1048576") is None


def test_a_test_may_have_small_segments() -> None:
    """By Kafka's own internal key, which is described where it is set."""
    name = "internal.segment.bytes"
    assert validate_topic_config(name, "1000") is None
    assert TopicConfig.from_overrides({}, {name: "1000"}).segment_bytes_max == 1000
    assert TopicConfig.from_overrides({}, {}).segment_bytes_max == 1 << 30
    assert name not in {value.key.name for value in topic_values({}, {})}
    (shown,) = (one for one in topic_values({}, {name: "1000"}) if one.key.name == name)
    assert shown.value == "1000"
    assert "unknown key" in (validate_cluster_config(name, "1000") or "")


def test_a_number_that_an_older_broker_took_counts_as_the_nearest_legal_one() -> None:
    """Its topic keeps the smallest segments that there may be, not those of the default."""
    config = TopicConfig.from_overrides(
        {"log.roll.jitter.ms": "-5"},
        {"segment.bytes": "16384", "min.cleanable.dirty.ratio": "1.5", "retention.ms": "soon"},
    )
    assert (config.segment_bytes, config.segment_jitter_ms) == (1 << 20, 0)
    assert (config.min_cleanable_dirty_ratio, config.retention_ms) == (1.0, 604_800_000)


def test_no_key_is_in_two_tables() -> None:
    cluster = [row.name for row in CLUSTER_KEYS]
    life = [row.name for row in LIFE_KEYS]
    ours = {*cluster, *life, *(row.name for row in BROKER_KEYS)} - {"broker.id"}
    theirs = [row.name for row in (*STORED_KEYS, *FIXED_KEYS)]
    assert len(set(theirs)) == len(theirs)
    assert not ours & set(theirs)
    shown = [value.key.name for value in broker_values(CONFIG, {}, {})]
    assert len(set(shown)) == len(shown)


def test_what_comes_from_the_file_is_what_the_file_says() -> None:
    values = {value.key.name: value for value in broker_values(CONFIG, {}, {})}
    expected = {
        "advertised.listeners": "PLAINTEXT://b7.example:9092",
        "listeners": "PLAINTEXT://0.0.0.0:9092",
        "node.id": "7",
        "process.roles": "broker",
        "controller.quorum.voters": "1@10.0.0.1:33145",
        "broker.rack": "east",
        "log.dir": "/d",
        "log.dirs": "/d",
        "max.connections": str(CONFIG.limits.connection_count_max),
        "max.connections.per.ip": str(CONFIG.limits.connection_count_per_address_max),
        "socket.request.max.bytes": str(CONFIG.limits.request_bytes_max),
    }
    assert {name: values[name].value for name in expected} == expected
    for one in FILE_KEYS:
        assert values[one.key.name].read_only
        assert "`[" in one.key.doc, f"{one.key.name} names its setting"


@pytest.mark.parametrize("row", STORED_KEYS, ids=lambda row: row.name)
def test_a_stored_key_takes_its_default_and_nothing_of_another_type(row: Key) -> None:
    default: Value = "" if row.default is None else row.default
    for validate in (validate_cluster_config, validate_life_config):
        assert validate(row.name, format_value(default)) is None
        if row.type.title in ("integer", "number", "boolean"):
            assert row.name in (validate(row.name, "some") or "")
        if row.minimum is not None:
            assert row.name in (validate(row.name, str(int(row.minimum) - 1)) or "")


def test_every_key_of_security_is_refused() -> None:
    for name in ("ssl.client.auth", "sasl.jaas.config", "authorizer.class.name", "listeners"):
        for validate in (validate_cluster_config, validate_life_config):
            assert "cannot be changed at run time" in (validate(name, "x") or "")
    settable = {*CLUSTER_KEYS_BY_NAME, *LIFE_KEYS_BY_NAME}
    assert not [name for name in settable if name.startswith(("ssl.", "sasl.", "security."))]


def test_a_name_that_kafka_does_not_have_is_refused_with_the_nearest_one() -> None:
    reason = validate_cluster_config("num.io.thread", "1")
    assert reason == "unknown key 'num.io.thread' (did you mean num.io.threads?)"
    assert "did you mean" in (validate_life_config("num.io.thread", "1") or "")


def test_bounds_of_numbers_and_choices_are_kafkas() -> None:
    assert validate_topic_config("unclean.leader.election.enable", "true") is None
    for value, is_legal in (("0.3", True), ("1", True), ("1.1", False), ("-0.1", False)):
        assert (validate_topic_config("min.cleanable.dirty.ratio", value) is None) == is_legal
    for value in ("nan", "inf", "1_0", "", "half"):
        assert validate_topic_config("min.cleanable.dirty.ratio", value) is not None
    for value, is_legal in (("-1", True), ("9", True), ("0", False), ("10", False)):
        assert (validate_topic_config("compression.gzip.level", value) is None) == is_legal
