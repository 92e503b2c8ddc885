"""Keys of topics, of brokers and of the whole cluster: asked, and changed.

Source: KIP-133, KIP-339."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from strandline.base.errors import StrandlineError
from strandline.client.cluster import Client
from strandline.client.errors import refusal
from strandline.config.addresses import parse_seed
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from strandline.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
"""Without a name, it is the cluster."""
SET, DELETE = 0, 1
SEEDS = "cluster.seeds"
"""Of a broker's file: names the controller's voters."""

Changes = Mapping[str, str | None]
"""{key: its new value, or None where it is to be no more set}"""


@dataclass(frozen=True, slots=True)
class ConfigView:
    """A key: its value, and where that comes from (`config.effective.ConfigSource`)."""

    name: str
    value: str
    source: int


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
            _asked(TOPIC_RESOURCE if name else BROKER_RESOURCE, name, keys) for name in topics
        ]
    )

    def describe(until: int) -> dict[str, list[ConfigView]]:
        return _views(client.ask_any(request, DescribeConfigsResponse, deadline_ms=until))

    return client.attempt(describe)


def describe_controller_configs(client: Client, keys: Sequence[str]) -> list[ConfigView]:
    """These keys of the broker that leads the controller, those of its file too."""

    return client.attempt_at_controller(
        lambda controller, until: _of_broker(client, controller, keys, until=until)
    )


def describe_broker_configs(
    client: Client, broker: BrokerId, keys: Sequence[str]
) -> list[ConfigView] | None:
    """These keys of one broker, those of its file too; None where it does not say."""
    try:
        return _of_broker(client, broker, keys, until=client.look_deadline())
    except StrandlineError:
        return None


def controller_voters(client: Client, brokers: Iterable[BrokerId]) -> frozenset[BrokerId]:
    """The controller's voters, by the seeds of the first of these brokers that says; nobody where
    none does."""
    return next(filter(None, (_seeds(client, broker) for broker in brokers)), frozenset())


def _seeds(client: Client, broker: BrokerId) -> frozenset[BrokerId]:
    rows = describe_broker_configs(client, broker, [SEEDS]) or ()
    text = next((one.value for one in rows if one.name == SEEDS), "")
    return frozenset(parse_seed(one).id for one in text.split(",") if one)


def _of_broker(
    client: Client, broker: BrokerId, keys: Sequence[str], *, until: int
) -> list[ConfigView]:
    request = DescribeConfigsRequest(resources=[_asked(BROKER_RESOURCE, str(broker), keys)])
    answer = client.ask(broker, request, DescribeConfigsResponse, deadline_ms=until)
    return _views(answer)[str(broker)]


def _asked(kind: int, name: str, keys: Sequence[str] | None) -> DescribeConfigsResource:
    return DescribeConfigsResource(
        resource_type=kind,
        resource_name=name,
        configuration_keys=None if keys is None else list(keys),
    )


def _views(answer: DescribeConfigsResponse) -> dict[str, list[ConfigView]]:
    for one in answer.results:
        if one.error_code:
            subject = _subject(one.resource_type, one.resource_name)
            raise refusal(one.error_code, subject, one.error_message)
    return {
        result.resource_name: [
            ConfigView(name=one.name, value=one.value or "", source=one.config_source)
            for one in result.configs
        ]
        for result in answer.results
    }


# ---- changed ---------------------------------------------------------------------------------


def alter_topic_configs(
    client: Client, topic: str, changes: Changes, *, validate_only: bool = False
) -> None:
    """Set keys of a topic; with `validate_only`, only find out whether that would be refused."""
    _alter(client, [_changed(TOPIC_RESOURCE, topic, changes)], validate_only=validate_only)


def alter_cluster_configs(client: Client, changes: Changes) -> None:
    """Set keys of the whole cluster."""
    _alter(client, [_changed(BROKER_RESOURCE, "", changes)])


def alter_broker_configs(client: Client, brokers: Sequence[BrokerId], changes: Changes) -> None:
    """Set keys of brokers, of all of them or of none.

    Several are tried first: what is refused of one is then done to none."""
    resources = [_changed(BROKER_RESOURCE, str(one), changes) for one in brokers]
    if len(resources) > 1:
        _alter(client, resources, validate_only=True)
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
                subject = _subject(one.resource_type, one.resource_name)
                raise refusal(one.error_code, subject, one.error_message)

    client.attempt_at_controller(alter)


def _subject(kind: int, name: str) -> str:
    """How a refusal names what it is about."""
    if kind == TOPIC_RESOURCE:
        return f"topic {name}"
    return f"broker {name}" if name else "the cluster"
