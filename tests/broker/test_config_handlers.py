"""What admin tools ask of configuration: AlterConfigs, ListConfigResources, DescribeConfigs.

Source: KIP-133, KIP-226, KIP-714, KIP-1142; decision 0045."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.broker.broker_world import BrokerWorld

from strandline.base.errors import ApiError
from strandline.broker.operations import log_levels
from strandline.broker.operations.log_levels import levels
from strandline.config.keys import ValueType
from strandline.config.security_section import SecuritySection
from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ResourceChanges,
    ResourceResult,
    ResourceResults,
)
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from strandline.protocol.messages.incremental_alter_configs import (
    AlterableConfig as OneChange,
)
from strandline.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as Changed,
)
from strandline.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def rows_of(
    world: BrokerWorld, kind: int, name: str, version: int = 4
) -> dict[str, DescribeConfigsResourceResult]:
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(kind, name, None)],
        include_synonyms=True,
        include_documentation=version >= 3,
    )
    answer = world.ask(request, DescribeConfigsResponse, version)
    assert answer.results[0].error_code == 0, answer.results[0]
    return {row.name: row for row in answer.results[0].configs}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_alter_configs_asks_the_controller_to_replace(world: BrokerWorld, version: int) -> None:
    result = ResourceResult(TOPIC, "t", Error.INVALID_CONFIG, "so")
    world.controller.answers.append(ResourceResults((result,)))
    request = AlterConfigsRequest(
        resources=[AlterConfigsResource(TOPIC, "t", [AlterableConfig("retention.ms", "1")])],
        validate_only=True,
    )
    answer = world.ask(request, AlterConfigsResponse, version)
    change = ConfigChange("retention.ms", ConfigOperation.SET, "1")
    asked = ResourceChanges(TOPIC, "t", (change,), replaces=True)
    assert world.controller.commands == [AlterConfigs((asked,), validate_only=True)]
    (row,) = answer.responses
    assert (row.error_code, row.error_message) == (Error.INVALID_CONFIG, "so")
    assert (row.resource_type, row.resource_name) == (TOPIC, "t")


def test_without_a_controller_each_resource_has_the_error(world: BrokerWorld) -> None:
    request = AlterConfigsRequest(resources=[AlterConfigsResource(TOPIC, "t", [])])
    answer = world.ask(request, AlterConfigsResponse, 2)
    assert [row.error_code for row in answer.responses] == [Error.REQUEST_TIMED_OUT]


def listed(world: BrokerWorld, types: list[int], version: int = 1) -> list[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=types)
    answer = world.ask(request, ListConfigResourcesResponse, version)
    assert answer.error_code == 0
    return [(one.resource_type, one.resource_name) for one in answer.config_resources]


def test_topics_and_brokers_are_listed(world: BrokerWorld) -> None:
    world.add_topic("b")
    world.add_topic("a")
    topics = [(TOPIC, "a"), (TOPIC, "b")]
    brokers = [(BROKER, str(one)) for one in sorted(world.cluster.brokers)]
    assert brokers
    loggers = [(LOGGER, name) for _, name in brokers]
    assert listed(world, []) == topics + brokers + loggers
    assert listed(world, [TOPIC]) == topics
    assert listed(world, [BROKER, GROUP]) == brokers
    assert listed(world, [LOGGER, CLIENT_METRICS]) == loggers
    assert listed(world, [], version=0) == []


def test_a_type_that_kafka_does_not_have_is_refused(world: BrokerWorld) -> None:
    request = ListConfigResourcesRequest(resource_types=[TOPIC, 3])
    answer = world.ask(request, ListConfigResourcesResponse, 1)
    assert (answer.error_code, answer.config_resources) == (Error.UNSUPPORTED_VERSION, [])


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_broker_shows_what_admin_tools_look_for(world: BrokerWorld, version: int) -> None:
    rows = rows_of(world, BROKER, "1", version)
    found = {
        name: rows[name].value
        for name in (
            "node.id",
            "broker.id",
            "process.roles",
            "listeners",
            "advertised.listeners",
            "inter.broker.listener.name",
            "log.dirs",
            "broker.rack",
            "security.inter.broker.protocol",
        )
    }
    config = world.services.config
    at = f"{config.kafka_bind.host}:{config.kafka_bind.port}"
    to = f"{config.kafka_advertised.host}:{config.kafka_advertised.port}"
    assert found == {
        "node.id": "1",
        "broker.id": "1",
        "process.roles": "broker,controller",
        "listeners": f"PLAINTEXT://{at}",
        "advertised.listeners": f"PLAINTEXT://{to}",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": config.broker.data_directory,
        "broker.rack": None,
        "security.inter.broker.protocol": "PLAINTEXT",
    }
    assert all(rows[name].read_only for name in found)
    assert not rows["num.io.threads"].read_only
    if version >= 3:
        assert rows["num.io.threads"].config_type == ValueType.INT.value
        assert all(row.documentation for row in rows.values())


def test_no_secret_is_shown(world: BrokerWorld) -> None:
    rows = rows_of(world, BROKER, "1")
    secrets = [row for row in rows.values() if row.config_type == ValueType.PASSWORD.value]
    assert secrets
    for row in secrets:
        assert row.is_sensitive and row.value is None and not row.synonyms


def test_a_key_that_is_stored_is_given_back_with_its_source(world: BrokerWorld) -> None:
    world.cluster.cluster_configs["num.io.threads"] = "16"
    world.cluster.broker_configs[BrokerId(1)] = {"num.io.threads": "32"}
    row = rows_of(world, BROKER, "1")["num.io.threads"]
    assert (row.value, row.config_source) == ("32", 2)
    assert [(one.value, one.source) for one in row.synonyms] == [("32", 2), ("16", 3), ("8", 5)]
    row = rows_of(world, BROKER, "")["num.io.threads"]
    assert (row.value, row.config_source) == ("16", 3)


def test_a_topic_shows_what_does_nothing_here_too(world: BrokerWorld) -> None:
    world.add_topic("t", **{"file.delete.delay.ms": "5"})
    row = rows_of(world, TOPIC, "t")["file.delete.delay.ms"]
    assert (row.value, row.config_source) == ("5", 1)
    assert "changes nothing" in (row.documentation or "")


def test_a_default_that_nothing_can_change_has_no_synonym(world: BrokerWorld) -> None:
    world.add_topic("t")
    rows = rows_of(world, TOPIC, "t")
    assert (rows["remote.storage.enable"].value, rows["remote.storage.enable"].synonyms) == (
        "false",
        [],
    )
    assert [one.name for one in rows["retention.ms"].synonyms] == ["log.retention.ms"]


@pytest.mark.parametrize(
    ("name", "code"),
    [("a/b", Error.INVALID_TOPIC_EXCEPTION), ("gone", Error.UNKNOWN_TOPIC_OR_PARTITION)],
)
def test_a_topic_that_is_not_there_has_no_configuration(
    world: BrokerWorld, name: str, code: Error
) -> None:
    request = DescribeConfigsRequest([DescribeConfigsResource(TOPIC, name, None)])
    answer = world.ask(request, DescribeConfigsResponse, 4)
    assert [one.error_code for one in answer.results] == [code]


def test_every_group_has_kafkas_defaults(world: BrokerWorld) -> None:
    world.cluster.cluster_configs["group.consumer.assignment.interval.ms"] = "7"
    rows = rows_of(world, GROUP, "orders")
    assert len(rows) == 17
    row = rows["consumer.session.timeout.ms"]
    assert (row.value, row.read_only, row.config_source) == ("45000", True, 5)
    assert [(one.name, one.value, one.source) for one in row.synonyms] == [
        ("group.consumer.session.timeout.ms", "45000", 5)
    ]
    row = rows["consumer.assignment.interval.ms"]
    assert (row.value, row.config_source) == ("7", 3)
    assert [(one.value, one.source) for one in row.synonyms] == [("7", 3), ("1000", 5)]
    assert rows["share.auto.offset.reset"].synonyms[0].name == "share.auto.offset.reset"


def test_a_subscription_to_client_metrics_has_kafkas_defaults(world: BrokerWorld) -> None:
    rows = rows_of(world, CLIENT_METRICS, "some")
    assert {name: (row.value, row.config_type) for name, row in rows.items()} == {
        "interval.ms": ("300000", 3),
        "match": ("", 7),
        "metrics": ("", 7),
    }
    assert not any(row.synonyms for row in rows.values())


@pytest.mark.parametrize("kind", [GROUP, CLIENT_METRICS, 3])
def test_a_resource_without_a_name_or_of_no_type_has_no_configuration(
    world: BrokerWorld, kind: int
) -> None:
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, "", None)])
    (result,) = world.ask(request, DescribeConfigsResponse, 4).results
    assert (result.error_code, result.configs) == (Error.INVALID_REQUEST, [])
    assert result.error_message


@pytest.fixture
def room() -> Iterator[str]:
    """A logger whose level is as before afterwards."""
    logger = logging.getLogger("strandline.broker")
    level = logger.level
    yield logger.name
    logger.setLevel(level)


def change_level(
    world: BrokerWorld, *changes: OneChange, broker: str = "1", validate_only: bool = False
) -> int:
    request = IncrementalAlterConfigsRequest(
        [Changed(LOGGER, broker, list(changes))], validate_only
    )
    answer = world.ask(request, IncrementalAlterConfigsResponse, 1)
    assert world.controller.commands == [], "no other broker needs to know"
    return answer.responses[0].error_code


def test_the_level_of_a_logger_is_changed_while_the_broker_runs(
    world: BrokerWorld, room: str
) -> None:
    rows = rows_of(world, LOGGER, "1")
    assert next(iter(rows)) == "root" and rows[room].config_source == 6
    before = rows[room].value
    debug = OneChange(room, ConfigOperation.SET, "DEBUG")
    assert change_level(world, debug, validate_only=True) == 0
    assert rows_of(world, LOGGER, "1")[room].value == before
    assert change_level(world, debug) == 0
    assert rows_of(world, LOGGER, "1")[room].value == "DEBUG"
    assert logging.getLogger(room).isEnabledFor(logging.DEBUG)
    assert change_level(world, OneChange(room, ConfigOperation.DELETE, None)) == 0
    assert logging.getLogger(room).level == logging.NOTSET, "it has the level of the one above"


@pytest.mark.parametrize(
    ("change", "broker", "code"),
    [
        (("strandline.broker", 0, "LOUD"), "1", Error.INVALID_CONFIG),
        (("strandline.broker", 0, None), "1", Error.INVALID_CONFIG),
        (("no.such.logger", 0, "INFO"), "1", Error.INVALID_CONFIG),
        (("root", 1, None), "1", Error.INVALID_REQUEST),
        (("strandline.broker", 2, "INFO"), "1", Error.INVALID_REQUEST),
        (("strandline.broker", 0, "INFO"), "2", Error.INVALID_REQUEST),
    ],
)
def test_an_unsound_change_of_a_level_is_refused_as_a_whole(
    world: BrokerWorld, room: str, change: tuple[str, int, str | None], broker: str, code: Error
) -> None:
    before = levels()
    good = OneChange("strandline.network", ConfigOperation.SET, "ERROR")
    assert change_level(world, good, OneChange(*change), broker=broker) == code
    assert levels() == before


def test_the_loggers_are_listed_once_for_many_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are hundreds, and a request may name many more."""
    found, calls = levels(), list[int]()

    def counted() -> dict[str, str]:
        calls.append(1)
        return found

    monkeypatch.setattr(log_levels, "levels", counted)
    with pytest.raises(ApiError, match="changed twice"):
        log_levels.change_levels([("root", 0, "INFO")] * 1_000, validate_only=False)
    assert len(calls) == 1


def set_webhook(world: BrokerWorld, url: str) -> tuple[int, str | None]:
    """The error of an attempt to set it."""
    change = OneChange("alarm.webhook.url", ConfigOperation.SET, url)
    answer = world.ask(
        IncrementalAlterConfigsRequest(resources=[Changed(BROKER, "", [change])]),
        IncrementalAlterConfigsResponse,
        1,
    )
    (row,) = answer.responses
    return row.error_code, row.error_message


def test_a_webhook_of_a_host_that_the_file_does_not_list_is_refused(world: BrokerWorld) -> None:
    code, message = set_webhook(world, "https://alarms.example/s3cret")
    assert code == Error.INVALID_CONFIG and world.controller.commands == []
    assert message == (
        "alarm.webhook.url names the host alarms.example:443, which [security] webhook_hosts of "
        "the brokers' files does not list: add it on every broker, and restart them"
    )


def test_a_listed_webhook_is_set_and_taken_away(world: BrokerWorld) -> None:
    security = SecuritySection(webhook_hosts=("alarms.example",))
    world.services.config = replace(world.services.config, security=security)
    for url in ("https://alarms.example/s3cret", ""):
        world.controller.answers.append(ResourceResults((ResourceResult(BROKER, ""),)))
        assert set_webhook(world, url) == (0, None)
    assert len(world.controller.commands) == 2


def test_no_request_shows_a_webhook(world: BrokerWorld) -> None:
    world.cluster.cluster_configs["alarm.webhook.url"] = "https://alarms.example/s3cret"
    for name in ("", "1"):
        row = rows_of(world, BROKER, name)["alarm.webhook.url"]
        assert (row.value, row.is_sensitive, row.synonyms) == (None, True, [])
        assert row.config_type == ValueType.PASSWORD.value
