"""What is wanted of single brokers: set, tried, and how far it has come.

How:    the keys of a broker's resource, by IncrementalAlterConfigs; what is left to do is what the
        balancer says of itself.
Source: docs/decisions/0011-the-life-of-a-broker.md."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strandline.client.admin import BROKER_RESOURCE, DELETE, SET
from strandline.client.balance import describe_balance
from strandline.client.cluster import Client
from strandline.client.errors import refusal
from strandline.model.ids import BrokerId
from strandline.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@dataclass(frozen=True, slots=True)
class Stuck:
    """Why some of a broker's replicas do not move now: a reason code, words, and how many."""

    code: str
    text: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Leaving:
    """A broker that is being decommissioned. `replicas`: what it holds still; `moving` of those are
    on their way; `condition`: up, settling, down, lost."""

    broker: BrokerId
    condition: str
    replicas: int
    moving: int
    stuck: tuple[Stuck, ...]
    is_paused: bool

    @property
    def is_empty(self) -> bool:
        """Whether it may be stopped."""
        return self.replicas == 0


@dataclass(frozen=True, slots=True)
class Maintained:
    """A broker in maintenance, until so many milliseconds after 1970, or without an end (-1).
    `leads`: how many partitions it still leads."""

    broker: BrokerId
    condition: str
    until_ms: int
    leads: int


def alter_lives(
    client: Client, brokers: Sequence[BrokerId], changes: Mapping[str, str | None]
) -> None:
    """Set keys of brokers, of all of them or of none; those that are None are no more set.

    Several are tried first: what is refused of one is then done to none."""
    rows = [
        AlterableConfig(key, DELETE if value is None else SET, value)
        for key, value in changes.items()
    ]
    resources = [AlterConfigsResource(BROKER_RESOURCE, str(one), rows) for one in brokers]

    def alter(until: int, validate_only: bool) -> None:
        controller = client.find_controller(deadline_ms=until)
        request = IncrementalAlterConfigsRequest(resources, validate_only)
        answer = client.ask(controller, request, IncrementalAlterConfigsResponse, deadline_ms=until)
        for one in answer.responses:
            if one.error_code:
                raise refusal(one.error_code, f"broker {one.resource_name}", one.error_message)

    if len(brokers) > 1:
        client.attempt(lambda until: alter(until, True))
    client.attempt(lambda until: alter(until, False))


def leaving_brokers(client: Client) -> list[Leaving]:
    """Who is being decommissioned, and how far that is."""
    found = describe_balance(client)
    return [
        Leaving(
            broker=BrokerId(one.broker_id),
            condition=one.condition,
            replicas=one.replica_count,
            moving=one.moving_count,
            stuck=tuple(
                Stuck(wait.code, wait.text, left.count)
                for wait in found.waits
                for left in wait.leaving
                if left.broker_id == one.broker_id
            ),
            is_paused=not found.is_enabled,
        )
        for one in found.brokers
        if one.is_leaving
    ]


def maintained_brokers(client: Client) -> list[Maintained]:
    """Who is in maintenance, and what it leads."""
    found = describe_balance(client)
    topics = client.metadata(None).topics.values()
    led = Counter(one.leader for topic in topics for one in topic.partitions)
    return [
        Maintained(
            broker=BrokerId(one.broker_id),
            condition=one.condition,
            until_ms=one.maintenance_until_ms,
            leads=led[BrokerId(one.broker_id)],
        )
        for one in found.brokers
        if one.maintenance_until_ms
    ]
