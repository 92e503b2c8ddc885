"""Topics and brokers have every configuration key of Kafka 4.3, with its type and its default.

How:    kafka_4_3_keys.tsv lists scope, name, type and default, as Kafka 4.3.1's own tables have
        them; keys that Kafka calls internal are left out.
Source: decision 0045."""

from pathlib import Path

import pytest

from strandline.config.broker import BROKER_KEYS
from strandline.config.broker_life import LIFE_KEYS, LIFE_KEYS_BY_NAME, validate_life_config
from strandline.config.cluster import CLUSTER_KEYS, CLUSTER_KEYS_BY_NAME, validate_cluster_config
from strandline.config.effective import broker_values, topic_values
from strandline.config.kafka.from_file import FILE_KEYS
from strandline.config.kafka.table import FIXED_KEYS, STORED_KEYS
from strandline.config.keys import Key, Value, format_value
from strandline.config.load import load_broker_config
from strandline.config.topic import TOPIC_KEYS_BY_NAME, validate_topic_config

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

CONFIG = load_broker_config(
    '[broker]\nid = 7\ndata_directory = "/d"\n[broker.labels]\nregion = "east"\n'
    '[listener]\nkafka_host = "0.0.0.0"\nadvertised_host = "b7.example"\n'
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
    for name, type_, default in TOPIC_ROWS:
        assert name in shown
        compare(TOPIC_KEYS_BY_NAME[name], name, type_, default)


def test_a_broker_has_every_key() -> None:
    shown = {value.key.name: value.key for value in broker_values(CONFIG, {}, {})}
    assert len(BROKER_ROWS) == 340
    for name, type_, default in BROKER_ROWS:
        if name == "broker.id":  # Of the file, where it must be given.
            continue
        compare(shown[name], name, type_, default)


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


def test_tiered_storage_cannot_be_asked_for() -> None:
    assert validate_topic_config("remote.storage.enable", "false") is None
    assert validate_topic_config("remote.storage.enable", "true") == (
        "remote.storage.enable must be false: this cluster has no tiered storage"
    )
    assert validate_topic_config("unclean.leader.election.enable", "true") is None
    for value, is_legal in (("0.3", True), ("1", True), ("1.1", False), ("-0.1", False)):
        assert (validate_topic_config("min.cleanable.dirty.ratio", value) is None) == is_legal
    for value in ("nan", "inf", "1_0", "", "half"):
        assert validate_topic_config("min.cleanable.dirty.ratio", value) is not None
    for value, is_legal in (("-1", True), ("9", True), ("0", False), ("10", False)):
        assert (validate_topic_config("compression.gzip.level", value) is None) == is_legal
