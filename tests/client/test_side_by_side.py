"""Brokers that are asked for what can be done without are asked at the same time: some that hang
take the time of one.

How:    each handler waits until all are in theirs; asked one after the other, they never are."""

import threading
from collections.abc import Callable

import pytest
from tests.client.fake_cluster import FakeCluster, FakeTransport

from strandline.client.cluster import Client
from strandline.client.operations.leadership import describe_leadership
from strandline.client.operations.survivors import ask_replica_logs
from strandline.client.operations.topology import describe_topology
from strandline.client.operations.writers import describe_writers
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_leadership import (
    DescribeLeadershipResponse,
    LeaderWait,
)
from strandline.protocol.messages.describe_replica_logs import (
    DescribeReplicaLogsResponse,
    PossibleVoters,
)
from strandline.protocol.messages.describe_topology import DescribeTopologyResponse, TopologyBroker
from strandline.protocol.messages.describe_writers import DescribeWritersResponse, WrittenPartition
from strandline.protocol.table import Message

ALL = (1, 2, 3)
HANGS_S = 30.0
"""After which a handler gives up on the others, and its broker does not answer."""


class Meeting:
    """Answers once `count` brokers are asked at the same time, but for the first `alone`
    requests."""

    def __init__(self, count: int, answer: Callable[[int], Message], alone: int = 0) -> None:
        self._barrier = threading.Barrier(count, timeout=HANGS_S)
        self._answer, self._alone = answer, alone

    def __call__(self, fake: FakeCluster, broker: int, request: Message) -> Message | None:
        if self._alone:
            self._alone -= 1
            return self._answer(broker)
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            return None
        return self._answer(broker)


@pytest.fixture
def fake() -> FakeCluster:
    found = FakeCluster(3)
    found.add_topic("t", 3)
    return found


def client_of(fake: FakeCluster) -> Client:
    client = Client(fake.bootstrap, timeout_ms=10_000, transport=FakeTransport(fake))
    client.metadata()
    return client


def test_round_trips_are_asked_of_all_others_at_the_same_time(fake: FakeCluster) -> None:
    def answer(broker: int) -> Message:
        rows = [TopologyBroker(one, True, round_trip_ms=10 * broker + one) for one in ALL]
        return DescribeTopologyResponse(broker_id=broker, brokers=rows)

    fake.extra["DescribeTopology"] = Meeting(2, answer, alone=1)
    found = describe_topology(client_of(fake)).round_trips_ms
    assert found == {(BrokerId(a), BrokerId(b)): 10 * a + b for a in ALL for b in ALL}


def test_all_that_may_hold_a_log_are_asked_at_the_same_time(fake: FakeCluster) -> None:
    def answer(broker: int) -> Message:
        return DescribeReplicaLogsResponse(
            possible=[PossibleVoters(list(ALL))], last_epoch=1, last_index=broker
        )

    fake.extra["DescribeReplicaLogs"] = Meeting(3, answer, alone=1)
    found = ask_replica_logs(client_of(fake), "t", 0)
    assert {one: log.last_index for one, log in found.answers.items()} == {1: 1, 2: 2, 3: 3}


def test_leaders_are_asked_at_the_same_time(fake: FakeCluster) -> None:
    waits = [LeaderWait(topic="t", partition=0, preferred=1)]
    written = [WrittenPartition(partition=one) for one in range(3)]
    fake.extra["DescribeLeadership"] = Meeting(3, lambda _: DescribeLeadershipResponse(waits=waits))
    fake.extra["DescribeWriters"] = Meeting(
        3, lambda _: DescribeWritersResponse(partitions=written)
    )
    client = client_of(fake)
    assert [one.leader for one in describe_leadership(client, map(BrokerId, ALL))] == [1, 2, 3]
    assert describe_writers(client, client.topic("t")) == written
