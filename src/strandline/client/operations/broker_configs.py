"""Configuration keys of one broker, which needs no controller to answer.

Source: KIP-133, KIP-226."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from strandline.base.errors import StrandlineError
from strandline.client.brokers import Brokers
from strandline.client.errors import refusal
from strandline.config.addresses import parse_seed
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from strandline.protocol.messages.describe_status import (
    DescribeStatusRequest,
    DescribeStatusResponse,
)

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
"""Without a name, it is the cluster."""
SEEDS = "cluster.seeds"
"""Of a broker's file: names the first voters of the controller."""
VOTERS_SHRINK = "voters.shrink.enable"


@dataclass(frozen=True, slots=True)
class ConfigView:
    """A key: its value, and where that comes from (`config.effective.ConfigSource`)."""

    name: str
    value: str
    source: int


def is_on(key: str, configs: Iterable[ConfigView]) -> bool:
    """Whether a boolean key is true."""
    return any(one.name == key and one.value == "true" for one in configs)


def describe_broker_configs(
    client: Brokers, broker: BrokerId, keys: Sequence[str]
) -> list[ConfigView] | None:
    """These keys of one broker, including keys of its file; None if it does not answer."""
    try:
        return read_broker_configs(client, broker, keys, until=client.look_deadline())
    except StrandlineError:
        return None


def controller_voters(client: Brokers, brokers: Iterable[BrokerId]) -> frozenset[BrokerId]:
    """The controller's voters, as the first of these brokers that answers knows them: by its log,
    or by its seeds while it has none. Empty if none answers."""
    return next(filter(None, (_voters(client, broker) for broker in brokers)), frozenset())


def _voters(client: Brokers, broker: BrokerId) -> frozenset[BrokerId]:
    until = client.look_deadline()
    try:
        answer = client.ask(
            broker, DescribeStatusRequest(), DescribeStatusResponse, deadline_ms=until
        )
    except StrandlineError:
        return frozenset()
    known = frozenset(BrokerId(one) for one in answer.controller_voters)
    return known or _seeds(client, broker)


def _seeds(client: Brokers, broker: BrokerId) -> frozenset[BrokerId]:
    rows = describe_broker_configs(client, broker, [SEEDS]) or ()
    text = next((one.value for one in rows if one.name == SEEDS), "")
    return frozenset(parse_seed(one).id for one in text.split(",") if one)


def read_broker_configs(
    client: Brokers, broker: BrokerId, keys: Sequence[str], *, until: int
) -> list[ConfigView]:
    """These keys of one broker; raises StrandlineError if it does not answer by `until`."""
    request = DescribeConfigsRequest(resources=[asked_resource(BROKER_RESOURCE, str(broker), keys)])
    answer = client.ask(broker, request, DescribeConfigsResponse, deadline_ms=until)
    return read_configs(answer)[str(broker)]


def asked_resource(kind: int, name: str, keys: Sequence[str] | None) -> DescribeConfigsResource:
    """A resource of a request: these of its keys, or all."""
    return DescribeConfigsResource(
        resource_type=kind,
        resource_name=name,
        configuration_keys=None if keys is None else list(keys),
    )


def read_configs(answer: DescribeConfigsResponse) -> dict[str, list[ConfigView]]:
    """{resource name: its keys}; raises ApiError if the broker refuses one resource."""
    for one in answer.results:
        if one.error_code:
            subject = subject_of(one.resource_type, one.resource_name)
            raise refusal(one.error_code, subject, one.error_message)
    return {
        result.resource_name: [
            ConfigView(name=one.name, value=one.value or "", source=one.config_source)
            for one in result.configs
        ]
        for result in answer.results
    }


def subject_of(kind: int, name: str) -> str:
    """How an error names a resource."""
    if kind == TOPIC_RESOURCE:
        return f"topic {name}"
    return f"broker {name}" if name else "the cluster"
