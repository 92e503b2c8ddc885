"""Why partitions are not led by whom they should be, asked of the brokers that lead them.

How:    every living broker is asked; one that does not answer soon is passed over.
Source: decision 0012."""

from collections.abc import Iterable
from dataclasses import dataclass

from strandline.client.cluster import Client
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_leadership import (
    DescribeLeadershipRequest,
    DescribeLeadershipResponse,
)


@dataclass(frozen=True, slots=True)
class LeaderWaiting:
    """A partition, who leads it and who should, and why it does not yet."""

    topic: str
    partition: int
    leader: BrokerId
    preferred: BrokerId
    code: str
    text: str


def describe_leadership(client: Client, brokers: Iterable[BrokerId]) -> list[LeaderWaiting]:
    """What these brokers say of what they lead."""
    found = []
    for broker in brokers:
        answer = client.look(broker, DescribeLeadershipRequest(), DescribeLeadershipResponse)
        if answer is None:
            continue
        found += [
            LeaderWaiting(
                one.topic, one.partition, broker, BrokerId(one.preferred), one.code, one.text
            )
            for one in answer.waits
        ]
    return sorted(found, key=lambda one: (one.topic, one.partition))
