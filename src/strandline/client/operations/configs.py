"""Reads and changes keys of topics, brokers and the whole cluster.

Source: KIP-133, KIP-339."""

from collections.abc import Mapping, Sequence

from strandline.client.cluster import Client
from strandline.client.errors import refusal
from strandline.client.operations.broker_configs import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ConfigView,
    asked_resource,
    read_broker_configs,
    read_configs,
    subject_of,
)
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from strandline.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

SET, DELETE = 0, 1

Changes = Mapping[str, str | None]
"""{key: its new value, or None to reset it}"""


# ---- asked -----------------------------------------------------------------------------------


def describe_topic_configs(client: Client, name: str) -> list[ConfigView]:
    """Every key of a topic."""
    return describe_configs(client, [name])[name]


def describe_configs(
    client: Client, topics: Sequence[str], keys: Sequence[str] | None = None
) -> dict[str, list[ConfigView]]:
    """{topic: these of its keys, or all}. What has no name is the cluster, with its own keys."""
    request = DescribeConfigsRequest(
        resources=[
            asked_resource(TOPIC_RESOURCE if name else BROKER_RESOURCE, name, keys)
            for name in topics
        ]
    )

    def describe(until: int) -> dict[str, list[ConfigView]]:
        return read_configs(client.ask_any(request, DescribeConfigsResponse, deadline_ms=until))

    return client.attempt(describe)


def describe_controller_configs(client: Client, keys: Sequence[str]) -> list[ConfigView]:
    """These keys of the broker that leads the controller, those of its file too."""

    return client.attempt_at_controller(
        lambda controller, until: read_broker_configs(client, controller, keys, until=until)
    )


# ---- changed ---------------------------------------------------------------------------------


def alter_topic_configs(
    client: Client, topic: str, changes: Changes, *, validate_only: bool = False
) -> None:
    """Set keys of a topic; with `validate_only`, only find out whether that would be refused."""
    _alter(client, [_changed(TOPIC_RESOURCE, topic, changes)], validate_only=validate_only)


def alter_cluster_configs(client: Client, changes: Changes) -> None:
    """Set keys of the whole cluster."""
    _alter(client, [_changed(BROKER_RESOURCE, "", changes)])


def alter_broker_configs(
    client: Client,
    brokers: Sequence[BrokerId],
    changes: Changes,
    *,
    validate_only: bool = False,
) -> None:
    """Set keys of all these brokers or of none; `validate_only`: of none, but refuse it alike.

    For several brokers it validates the change for each first."""
    resources = [_changed(BROKER_RESOURCE, str(one), changes) for one in brokers]
    if len(resources) > 1 or validate_only:
        _alter(client, resources, validate_only=True)
    if not validate_only:
        _alter(client, resources)


def _changed(kind: int, name: str, changes: Changes) -> AlterConfigsResource:
    rows = [
        AlterableConfig(key, DELETE if value is None else SET, value)
        for key, value in changes.items()
    ]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)


def _alter(
    client: Client, resources: list[AlterConfigsResource], *, validate_only: bool = False
) -> None:
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)

    def alter(controller: BrokerId, until: int) -> None:
        answer = client.ask(controller, request, IncrementalAlterConfigsResponse, deadline_ms=until)
        for one in answer.responses:
            if one.error_code:
                subject = subject_of(one.resource_type, one.resource_name)
                raise refusal(one.error_code, subject, one.error_message)

    client.attempt_at_controller(alter)
