"""DescribeConfigs and the two ways to alter configuration."""

from differential.cases.registry import case, create
from differential.peer import Peer
from strandline.config.broker import BROKER_KEYS
from strandline.config.broker_life import LIFE_KEYS
from strandline.config.cluster import CLUSTER_KEYS
from strandline.protocol.messages import alter_configs, incremental_alter_configs
from strandline.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from strandline.protocol.messages.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
_OWN_KEYS = {row.name for row in BROKER_KEYS} - {"broker.id"} | {
    row.name for row in (*CLUSTER_KEYS, *LIFE_KEYS) if row.own
}
SET, DELETE, APPEND, SUBTRACT = range(4)


def _describe(kind: int, name: str, keys: list[str] | None = None) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(kind, name, keys)
    return DescribeConfigsRequest([resource], include_synonyms=True, include_documentation=True)


@case
def of_a_topic(peer: Peer) -> None:
    """All keys with values, types, sources, synonyms."""
    create(peer, "configs", configs={"retention.ms": "1000", "cleanup.policy": "compact"})
    for version in range(1, 5):
        peer.ask(f"v{version}", _describe(TOPIC, "configs"), version)
    peer.ask("two keys", _describe(TOPIC, "configs", ["retention.ms", "no.such.key"]), 4)
    peer.ask("missing", _describe(TOPIC, "configs-missing"), 4)
    peer.ask("illegal name", _describe(TOPIC, "a/b"), 4)
    peer.ask("no such type", _describe(77, "configs"), 4)


@case
def of_a_broker(peer: Peer) -> None:
    """The names of the keys but for Strandline's own; their values are each broker's."""
    answer = peer.ask_silently(_describe(BROKER, "1"), 4)
    assert isinstance(answer, DescribeConfigsResponse)
    (result,) = answer.results
    for config in result.configs:
        if config.name in _OWN_KEYS:
            continue
        kind = (config.config_type, config.read_only, config.is_sensitive)
        peer.note(f"key {config.name}", kind)
    peer.ask("another one", _describe(BROKER, "99"), 4)
    peer.ask("not a number", _describe(BROKER, "one"), 4)


@case
def of_groups_and_client_metrics(peer: Peer) -> None:
    """Every name has the defaults; nothing is listed before a key is altered."""
    for label, kind, key in (
        ("group", GROUP, "consumer.session.timeout.ms"),
        ("client metrics", CLIENT_METRICS, "interval.ms"),
    ):
        peer.ask(label, _describe(kind, "some"), 4)
        peer.ask(f"{label}: one key", _describe(kind, "some", [key, "no.such.key"]), 4)
        peer.ask(f"{label}: no name", _describe(kind, ""), 4)
        peer.ask(f"{label}: listed", ListConfigResourcesRequest([kind]), 1)
        for operation in ("unknown key", "set"):
            name = key if operation == "set" else "no.such.key"
            config = incremental_alter_configs.AlterableConfig(name, SET, "46000")
            resource = incremental_alter_configs.AlterConfigsResource(kind, "some", [config])
            request = incremental_alter_configs.IncrementalAlterConfigsRequest([resource])
            peer.ask(f"{label}: {operation}", request, 1)


@case
def altered_by_key(peer: Peer) -> None:
    """IncrementalAlterConfigs: set, delete, append, subtract; what is not legal."""
    create(peer, "incremental")
    for label, name, key, operation, value in (
        ("set", "incremental", "retention.ms", SET, "5000"),
        ("delete", "incremental", "retention.ms", DELETE, None),
        ("append to a list", "incremental", "cleanup.policy", APPEND, "compact"),
        ("subtract from a list", "incremental", "cleanup.policy", SUBTRACT, "delete"),
        ("append to a number", "incremental", "retention.ms", APPEND, "5"),
        ("null", "incremental", "retention.ms", SET, None),
        ("unknown key", "incremental", "no.such.key", SET, "5"),
        ("illegal value", "incremental", "retention.ms", SET, "soon"),
        ("no such operation", "incremental", "retention.ms", 9, "5"),
        ("missing topic", "incremental-missing", "retention.ms", SET, "5"),
    ):
        config = incremental_alter_configs.AlterableConfig(key, operation, value)
        resource = incremental_alter_configs.AlterConfigsResource(TOPIC, name, [config])
        request = incremental_alter_configs.IncrementalAlterConfigsRequest([resource])
        peer.ask(label, request, 1)
    peer.ask("afterwards", _describe(TOPIC, "incremental", ["retention.ms", "cleanup.policy"]), 4)


@case
def altered_as_a_whole(peer: Peer) -> None:
    """AlterConfigs replaces what was set."""
    create(peer, "whole", configs={"retention.ms": "1000"})
    for version in range(3):
        for label, name, key, value in (
            ("set", "whole", "segment.bytes", "2000000"),
            ("unknown key", "whole", "no.such.key", "5"),
            ("illegal value", "whole", "retention.ms", "soon"),
            ("missing topic", "whole-missing", "retention.ms", "5"),
        ):
            config = alter_configs.AlterableConfig(key, value)
            resource = alter_configs.AlterConfigsResource(TOPIC, name, [config])
            request = alter_configs.AlterConfigsRequest([resource])
            peer.ask(f"v{version} {label}", request, version)
    peer.ask("afterwards", _describe(TOPIC, "whole", ["retention.ms", "segment.bytes"]), 4)


@case
def altered_of_brokers(peer: Peer) -> None:
    """Keys of the broker default and of one broker."""
    for name in ("", "1"):
        for label, key, operation, value in (
            ("set", "num.io.threads", SET, "9"),
            ("illegal value", "num.io.threads", SET, "0"),
            ("not a number", "num.io.threads", SET, "many"),
            ("only at the start", "socket.request.max.bytes", SET, "9000000"),
            ("delete", "num.io.threads", DELETE, None),
            ("delete once more", "num.io.threads", DELETE, None),
        ):
            config = incremental_alter_configs.AlterableConfig(key, operation, value)
            resource = incremental_alter_configs.AlterConfigsResource(BROKER, name, [config])
            request = incremental_alter_configs.IncrementalAlterConfigsRequest([resource])
            peer.ask(f"{name or 'default'}: {label}", request, 1)


@case
def policies(peer: Peer) -> None:
    """What a new topic may have as its policy and lags."""
    for number, configs in enumerate(
        (
            {"cleanup.policy": ""},
            {"cleanup.policy": "delete,delete"},
            {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"},
            {"remote.storage.enable": "true"},
            {"unclean.leader.election.enable": "true"},
            {"compression.gzip.level": "0"},
            {"min.cleanable.dirty.ratio": "1.5"},
            {"message.format.version": "3.0"},
        )
    ):
        topic = CreatableTopic(
            name=f"policies-{number}",
            num_partitions=1,
            replication_factor=1,
            configs=[CreatableTopicConfig(key, value) for key, value in configs.items()],
        )
        peer.ask(f"{configs}", CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 4)
