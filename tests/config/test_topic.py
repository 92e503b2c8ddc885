"""Topic and cluster keys: Kafka's names and defaults, and which value is in force."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.config.cluster import (
    CLUSTER_KEYS,
    ClusterConfig,
    validate_cluster_config,
)
from strandline.config.effective import (
    ConfigSource,
    broker_values,
    cluster_values,
    topic_values,
)
from strandline.config.kafka.table import STORED_KEYS
from strandline.config.keys import format_value, keys_of
from strandline.config.load import load_broker_config
from strandline.config.topic import (
    TOPIC_KEYS,
    TOPIC_KEYS_BY_NAME,
    TopicConfig,
    validate_topic_config,
)


def test_defaults_are_kafkas() -> None:
    """But for `flush.ms`: what nobody waits for is flushed soon all the same."""
    defaults = {
        row.name: format_value(row.default) for row in TOPIC_KEYS if row.default is not None
    }
    assert defaults == {
        "cleanup.policy": "delete",
        "compression.gzip.level": "-1",
        "compressed.validation.enable": "true",
        "compression.lz4.level": "9",
        "compression.type": "producer",
        "compression.zstd.level": "3",
        "confluent.placement.constraints": "",
        "delete.retention.ms": "86400000",
        "fetch.from.nearest.enable": "true",
        "file.delete.delay.ms": "60000",
        "flush.messages": "9223372036854775807",
        "flush.ms": "100",
        "follower.replication.throttled.replicas": "",
        "index.interval.bytes": "4096",
        "leader.replication.throttled.replicas": "",
        "local.retention.bytes": "-2",
        "local.retention.ms": "-2",
        "max.compaction.lag.ms": "9223372036854775807",
        "max.message.bytes": "1048588",
        "message.timestamp.after.max.ms": "3600000",
        "message.timestamp.before.max.ms": "9223372036854775807",
        "message.timestamp.type": "CreateTime",
        "min.cleanable.dirty.ratio": "0.5",
        "min.compaction.lag.ms": "0",
        "min.insync.replicas": "1",
        "observer.demotion.delay.ms": "10000",
        "observer.promotion.lag.max.ms": "2000",
        "observer.promotion.lag.max.records": "10000",
        "observer.promotion.ready.ms": "500",
        "placement.policy": "",
        "preallocate": "false",
        "redpanda.leaders.preference": "",
        "read.replica.max.staleness.ms": "-1",
        "read.replica.of": "",
        "read.replica.source.id": "",
        "remote.copies.min": "0",
        "remote.copy.lag.bytes": "0",
        "remote.copy.lag.max.action": "keep",
        "remote.copy.lag.max.bytes": "-1",
        "remote.copy.lag.max.ms": "900000",
        "remote.copy.lag.ms": "0",
        "remote.log.copy.disable": "false",
        "remote.log.delete.on.disable": "false",
        "remote.storage.enable": "false",
        "replica.lag.time.max.ms": "30000",
        "retention.bytes": "-1",
        "retention.ms": "604800000",
        "segment.bytes": "1073741824",
        "segment.index.bytes": "10485760",
        "segment.jitter.ms": "0",
        "segment.ms": "604800000",
        "strandline.retention.records": "-1",
        "unclean.leader.election.enable": "false",
        "voters.shrink.enable": "false",
        "write.caching": "false",
    }


def test_a_value_set_on_the_topic_wins_over_the_cluster_and_the_default() -> None:
    cluster = {"log.retention.ms": "5", "log.segment.bytes": "2000000"}
    config = TopicConfig.from_overrides(cluster, {"retention.ms": "7", "cleanup.policy": "compact"})
    assert (config.retention_ms, config.segment_bytes, config.segment_ms) == (
        7,
        2_000_000,
        604_800_000,
    )
    assert config.is_compacted and not config.is_deleted


def test_both_policies_at_once() -> None:
    config = TopicConfig.from_overrides({}, {"cleanup.policy": "compact,delete"})
    assert config.is_compacted and config.is_deleted


def test_a_policy_may_be_named_twice_or_not_at_all() -> None:
    """As in Kafka (KIP-1161)."""
    for text, is_compacted, is_deleted in (
        ("compact,compact", True, False),
        ("delete,delete,compact", True, True),
        ("", False, False),
    ):
        assert validate_topic_config("cleanup.policy", text) is None
        config = TopicConfig.from_overrides({}, {"cleanup.policy": text})
        assert (config.is_compacted, config.is_deleted) == (is_compacted, is_deleted)
    assert validate_topic_config("retention.bytes", "-5") is None


def test_a_value_that_cannot_be_read_is_passed_over_on_replay() -> None:
    config = TopicConfig.from_overrides({"log.retention.ms": "9"}, {"retention.ms": "soon"})
    assert config.retention_ms == 9
    assert ClusterConfig.from_values({"num.partitions": "many"}).num_partitions == 1


def test_refusals_are_one_line_with_name_and_reason() -> None:
    assert validate_topic_config("retention.ms", "1000") is None
    assert validate_topic_config("retention.msx", "1") == (
        "unknown key 'retention.msx' (did you mean retention.ms?)"
    )
    assert validate_topic_config("retention.ms", "-2") == "retention.ms must be at least -1, not -2"
    assert validate_topic_config("retention.ms", "1s") == (
        "retention.ms must be a whole number, not '1s'"
    )
    assert validate_topic_config("cleanup.policy", "remove") == (
        "cleanup.policy must be delete or compact, not 'remove'"
    )
    assert validate_topic_config("max.message.bytes", str(2**31)) is not None
    assert validate_cluster_config("num.partitions", "0") == (
        "num.partitions must be 1 to 10000, not 0"
    )
    assert validate_cluster_config("num.partition", "1") is not None
    assert validate_cluster_config("log.retention.ms", "1") is None


@given(
    st.sampled_from([row.name for row in keys_of(TopicConfig, dotted=True)]),
    st.text(max_size=40) | st.integers().map(str) | st.floats().map(str),
)
def test_what_validates_is_what_takes_effect(name: str, value: str) -> None:
    config, row = TopicConfig.from_overrides({}, {name: value}), TOPIC_KEYS_BY_NAME[name]
    if validate_topic_config(name, value) is None:
        assert getattr(config, row.field) == row.parse(value)
    elif getattr(config, row.field) in (row.minimum, row.maximum):
        assert row.is_number
    else:
        assert config == TopicConfig()


def test_every_topic_default_can_be_set_cluster_wide() -> None:
    names = {row.name for row in CLUSTER_KEYS}
    own = {"remote.storage.enable", "remote.log.copy.disable", "remote.log.delete.on.disable"}
    own |= {"read.replica.of", "read.replica.source.id", "read.replica.max.staleness.ms"}
    assert {row.name for row in TOPIC_KEYS if not row.cluster_name} == own
    assert {row.cluster_name for row in TOPIC_KEYS if row.cluster_name} <= names
    assert len(names) == len(CLUSTER_KEYS)


def test_effective_values_tell_their_source_the_winner_first() -> None:
    values = {
        value.key.name: value
        for value in topic_values({"log.retention.ms": "5"}, {"retention.ms": "7"})
    }
    retention = values["retention.ms"]
    assert (retention.value, retention.source) == ("7", ConfigSource.TOPIC)
    assert [(s.name, s.value, s.source) for s in retention.synonyms] == [
        ("retention.ms", "7", ConfigSource.TOPIC),
        ("log.retention.ms", "5", ConfigSource.CLUSTER),
        ("log.retention.ms", "604800000", ConfigSource.DEFAULT),
    ]
    assert values["segment.bytes"].source is ConfigSource.DEFAULT


def test_a_broker_shows_its_file_read_only_and_the_clusters_keys() -> None:
    config = load_broker_config(
        '[broker]\nid = 1\ndata_directory = "/d"\n[cluster]\nseeds = ["1@127.0.0.1:33145"]\n',
        file="f",
    )
    values = {value.key.name: value for value in broker_values(config, {"num.partitions": "3"}, {})}
    assert values["broker.id"].value == "1" and values["broker.id"].read_only
    assert values["broker.id"].source is ConfigSource.FILE
    assert values["rpc.port"].source is ConfigSource.DEFAULT
    assert values["num.partitions"].value == "3" and not values["num.partitions"].read_only
    assert len(cluster_values({})) == len(CLUSTER_KEYS) + len(STORED_KEYS)


def test_a_broker_without_a_rate_of_its_own_has_the_clusters() -> None:
    config = load_broker_config(
        '[broker]\nid = 1\ndata_directory = "/d"\n[cluster]\nseeds = ["1@127.0.0.1:33145"]\n',
        file="f",
    )
    rate = "leader.replication.throttled.rate"
    for own, value, source in (
        ({}, "5", ConfigSource.CLUSTER),
        ({rate: "7"}, "7", ConfigSource.BROKER),
    ):
        found = [one for one in broker_values(config, {rate: "5"}, own) if one.key.name == rate]
        assert [(one.value, one.source) for one in found] == [(value, source)]


@pytest.mark.parametrize("value", ["", "*", "0:4", "0:4,12:101"])
def test_what_kafkas_tools_list_as_throttled_is_taken(value: str) -> None:
    assert validate_topic_config("leader.replication.throttled.replicas", value) is None


@pytest.mark.parametrize("value", ["4", "0:4,*", "a:b", "0:4:5", "0:"])
def test_what_is_no_such_list_is_refused(value: str) -> None:
    reason = validate_topic_config("leader.replication.throttled.replicas", value)
    assert reason is not None and "partition:broker" in reason
