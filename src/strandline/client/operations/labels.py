"""Changes labels of running brokers, and reports the policies' objections.

Source: docs/decisions/0015-labels-at-run-time.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strandline.client.cluster import Client
from strandline.model.ids import BrokerId
from strandline.protocol.messages.alter_broker_labels import (
    AlterBrokerLabelsRequest,
    AlterBrokerLabelsResponse,
    LabelChange,
)


@dataclass(frozen=True, slots=True)
class Moving:
    """Partitions of a topic that other labels make move: how many, and the first of them."""

    topic: str
    count: int
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Altered:
    """What a change came to. `labels`: {broker: its labels, as they are after that};
    `objections`: what it was forced against."""

    labels: Mapping[BrokerId, Mapping[str, str]]
    moves: tuple[Moving, ...]
    objections: tuple[str, ...]


def alter_labels(
    client: Client,
    brokers: Sequence[BrokerId],
    changes: Mapping[str, str | None],
    *,
    is_forced: bool = False,
    validate_only: bool = False,
) -> Altered:
    """Change labels of all the brokers, or of none; None takes a label off. `validate_only`: say
    only what it would come to. Raises ApiError with what stands against it."""
    request = AlterBrokerLabelsRequest(
        broker_ids=list(brokers),
        changes=[LabelChange(name, value) for name, value in changes.items()],
        is_forced=is_forced,
        validate_only=validate_only,
    )
    what = f"broker {brokers[0]}" if len(brokers) == 1 else "the labels"
    answer = client.ask_controller(request, AlterBrokerLabelsResponse, what)
    return Altered(
        labels={
            BrokerId(one.broker_id): {label.name: label.value for label in one.labels}
            for one in answer.brokers
        },
        moves=tuple(
            Moving(one.topic, one.partition_count, tuple(one.partitions)) for one in answer.moves
        ),
        objections=tuple(answer.objections),
    )
