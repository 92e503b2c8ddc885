"""Asks leaders why their partitions are not led by the preferred leaders.

How:    one request to every live broker, in parallel; brokers that do not answer soon are skipped.
Source: decision 0012."""

from collections.abc import Iterable
from dataclasses import dataclass

from strandline.client.cluster import Client
from strandline.client.wire.side_by_side import look_at_each
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_leadership import (
    DescribeLeadershipRequest,
    DescribeLeadershipResponse,
)


@dataclass(frozen=True, slots=True)
class LeaderWaiting:
    """A partition that its preferred leader does not lead yet, and the reason: `code` for programs,
    `text` for people."""

    topic: str
    partition: int
    leader: BrokerId
    preferred: BrokerId
    code: str
    text: str


def describe_leadership(client: Client, brokers: Iterable[BrokerId]) -> list[LeaderWaiting]:
    """The partitions that these brokers lead in place of the preferred leaders, sorted."""
    told = look_at_each(client, brokers, DescribeLeadershipRequest(), DescribeLeadershipResponse)
    found = [one for broker, answer in told.items() for one in _waits(broker, answer)]
    return sorted(found, key=lambda one: (one.topic, one.partition))


def leader_waits(client: Client, broker: BrokerId) -> list[LeaderWaiting] | None:
    """The partitions that `broker` leads in place of the preferred leader; None if it does not
    answer soon."""
    answer = client.look(broker, DescribeLeadershipRequest(), DescribeLeadershipResponse)
    return None if answer is None else _waits(broker, answer)


def _waits(broker: BrokerId, answer: DescribeLeadershipResponse) -> list[LeaderWaiting]:
    return [
        LeaderWaiting(one.topic, one.partition, broker, BrokerId(one.preferred), one.code, one.text)
        for one in answer.waits
    ]
