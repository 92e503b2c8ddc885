"""Labels of brokers, and the round trips between them, from the brokers themselves.

How:    labels and liveness from the controller's leader, if there is one; then round trips from
        every live broker, in parallel. Brokers that do not answer soon are skipped: the other ends
        know their round trips.
Source: decision 0008."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strandline.client.cluster import Client
from strandline.client.errors import refusal
from strandline.client.wire.side_by_side import look_at_each
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_topology import (
    DescribeTopologyRequest,
    DescribeTopologyResponse,
    TopologyLabel,
)


@dataclass(frozen=True, slots=True)
class PlacedBroker:
    """A registered broker."""

    id: BrokerId
    labels: Labels
    is_alive: bool
    configured: Labels | None = None
    """What its configuration said at its start; None: not known."""


@dataclass(frozen=True, slots=True)
class Topology:
    """All brokers, by id. `round_trips_ms`: {(measuring broker, peer): milliseconds}."""

    brokers: tuple[PlacedBroker, ...]
    round_trips_ms: Mapping[tuple[BrokerId, BrokerId], int]


def describe_topology(client: Client) -> Topology:
    """Ask one broker for the labels, and every living one for its round trips."""

    first = _ask(client)
    others = [
        BrokerId(one.broker_id)
        for one in first.brokers
        if one.is_alive and one.broker_id != first.broker_id
    ]
    told = look_at_each(client, others, DescribeTopologyRequest(), DescribeTopologyResponse)
    return Topology(
        brokers=_placed(first),
        round_trips_ms={
            (BrokerId(answer.broker_id), BrokerId(one.broker_id)): one.round_trip_ms
            for answer in (first, *told.values())
            for one in answer.brokers
            if one.round_trip_ms >= 0
        },
    )


def describe_brokers(client: Client, deadline_ms: int | None = None) -> tuple[PlacedBroker, ...]:
    """Labels from one broker, without round trips."""
    return _placed(_ask(client, deadline_ms))


def _ask(client: Client, deadline_ms: int | None = None) -> DescribeTopologyResponse:
    def look(until: int) -> DescribeTopologyResponse:
        answer = client.ask_best_informed(
            DescribeTopologyRequest(), DescribeTopologyResponse, deadline_ms=until
        )
        if answer.error_code:
            raise refusal(answer.error_code, "the brokers' labels")
        return answer

    return client.attempt(look, deadline_ms)


def _placed(answer: DescribeTopologyResponse) -> tuple[PlacedBroker, ...]:
    return tuple(
        PlacedBroker(
            BrokerId(one.broker_id),
            _labels(one.labels),
            one.is_alive,
            None if one.configured is None else _labels(one.configured),
        )
        for one in answer.brokers
    )


def _labels(labels: Sequence[TopologyLabel]) -> Labels:
    return Labels.of({one.name: one.value for one in labels})
