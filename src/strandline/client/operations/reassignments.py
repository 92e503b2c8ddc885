"""Starts, cancels and shows moves of replicas.

How:    a tiny fetch from the broker of an added replica returns the high watermark that it knows,
        which is the progress of the move.
Source: KIP-455; docs/decisions/0009-moving-replicas.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strandline.base.errors import StrandlineError
from strandline.client.admin import EARLIEST, LATEST, list_offsets
from strandline.client.cluster import Client
from strandline.client.errors import refusal
from strandline.model.ids import BrokerId
from strandline.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
)


@dataclass(frozen=True, slots=True)
class MoveView:
    """A partition whose replicas move. `reached`: {added broker: end of its copy, or None if
    unknown}; `end`: the leader's end."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    reached: Mapping[int, int | None]
    end: int | None


def move_replicas(
    client: Client, topic: str, partition: int, replicas: Sequence[int] | None
) -> None:
    """Have a partition's replicas moved to these brokers, the preferred leader first; None: stop
    what moves. Returns when that is taken down."""
    wanted = ReassignablePartition(partition, None if replicas is None else list(replicas))

    def ask(controller: BrokerId, until: int) -> None:
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=client.left_ms(until), topics=[ReassignableTopic(topic, [wanted])]
        )
        answer = client.ask(
            controller, request, AlterPartitionReassignmentsResponse, deadline_ms=until
        )
        name = f"partition {topic}-{partition}"
        if answer.error_code:
            raise refusal(answer.error_code, name, answer.error_message)
        (one,) = answer.responses[0].partitions
        if one.error_code:
            raise refusal(one.error_code, name, one.error_message)

    client.attempt_at_controller(ask)


def list_moves(client: Client) -> list[MoveView]:
    """Every partition with moving replicas, and the progress of the added ones."""
    moves = []
    for (topic, partition), one in moving_partitions(client).items():
        start, end = _span(client, topic, partition)
        moves.append(
            MoveView(
                topic=topic,
                partition=partition,
                replicas=tuple(one.replicas),
                adding=tuple(one.adding_replicas),
                removing=tuple(one.removing_replicas),
                reached={
                    broker: _reached(client, broker, topic, partition, start)
                    for broker in one.adding_replicas
                },
                end=end,
            )
        )
    return moves


def moving_partitions(client: Client) -> dict[tuple[str, int], OngoingPartitionReassignment]:
    """{(topic, partition): added and removed replicas}, of every partition with moving replicas."""

    def look(until: int) -> ListPartitionReassignmentsResponse:
        request = ListPartitionReassignmentsRequest(timeout_ms=client.left_ms(until), topics=None)
        answer = client.ask_best_informed(
            request, ListPartitionReassignmentsResponse, deadline_ms=until
        )
        if answer.error_code:
            raise refusal(answer.error_code, "the moves", answer.error_message)
        return answer

    return {
        (topic.name, one.partition_index): one
        for topic in client.attempt(look).topics
        for one in topic.partitions
    }


def _span(client: Client, topic: str, partition: int) -> tuple[int | None, int | None]:
    """Where the partition begins and ends at its leader; None where that cannot be known now."""
    until = client.look_deadline()
    try:
        start, end = (
            list_offsets(client, topic, when, partitions=[partition], deadline_ms=until)
            for when in (EARLIEST, LATEST)
        )
    except StrandlineError:
        return None, None
    return start[partition], end[partition]


def _reached(
    client: Client, broker: int, topic: str, partition: int, start: int | None
) -> int | None:
    """The high watermark that a broker knows; None where it does not say."""
    if start is None:
        return None
    asked = FetchPartition(partition=partition, fetch_offset=start, partition_max_bytes=1)
    request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic=topic, partitions=[asked])])
    until = client.look_deadline()
    try:
        answer = client.ask(BrokerId(broker), request, FetchResponse, deadline_ms=until)
        one = answer.responses[0].partitions[0]
    except (StrandlineError, IndexError):
        return None
    return None if answer.error_code or one.error_code else one.high_watermark
