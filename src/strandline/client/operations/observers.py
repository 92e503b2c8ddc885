"""Asks which replicas are observers: Kafka's Metadata does not report that.

How:    the best-informed broker answers. A broker of a release without observers reports none.
Source: docs/decisions/0017-observers.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strandline.client.cluster import Client
from strandline.client.errors import NotOfferedError, refusal
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_observers import (
    DescribeObserversRequest,
    DescribeObserversResponse,
)


@dataclass(frozen=True, slots=True)
class Observed:
    """The observers of a partition. `wanted`: the final ones while its replicas move, else None.
    `acting`: the current voters, by id, if they differ from the placed ones."""

    present: tuple[BrokerId, ...] = ()
    wanted: tuple[BrokerId, ...] | None = None
    acting: tuple[BrokerId, ...] = ()


AllObserved = Mapping[tuple[str, int], Observed]
"""{(topic, partition): its observers}"""


def describe_observers(client: Client, topics: Sequence[str] | None = None) -> AllObserved:
    """{(topic, partition): its observers}. Only partitions that have observers, will have some, or
    have other voters now than the placed ones."""
    request = DescribeObserversRequest(topics=None if topics is None else list(topics))

    def look(until: int) -> DescribeObserversResponse:
        answer = client.ask_best_informed(request, DescribeObserversResponse, deadline_ms=until)
        if answer.error_code:
            raise refusal(answer.error_code, "the observers")
        return answer

    try:
        found = client.attempt(look).partitions
    except NotOfferedError:
        return {}
    return {
        (one.topic, one.partition): Observed(
            tuple(map(BrokerId, one.observers)),
            tuple(map(BrokerId, one.target_observers)) if one.is_moving else None,
            tuple(map(BrokerId, one.acting)),
        )
        for one in found
    }
