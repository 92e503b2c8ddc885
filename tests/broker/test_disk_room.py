"""Brokers report how full their disks are: no replica moves to a disk that is too full.

Source: docs/decisions/0010-the-balancer.md; docs/decisions/0011-the-life-of-a-broker.md."""

from collections.abc import Iterator

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_balancing import CLUSTER, alter, findings, is_on, want
from tests.controller.controller_world import changes

from strandline.controller.commands import (
    AlterConfigs,
    CreateTopics,
    NewTopic,
    ResourceResults,
    TopicResults,
)
from strandline.controller.reports import Question
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_balance import (
    DescribeBalanceRequest,
    DescribeBalanceResponse,
)

HIGH = "balancer.disk.high.percent"
LOOKS_MS = 12_000
POLICY_VIOLATION = 44


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, one topic on the first three, a producer that goes on."""
    with moving_world(monkeypatch) as made:
        made.advance(LOOKS_MS)
        yield made


def fill(world: MovingWorld, broker: int, percent: int) -> None:
    disk = world.hosts[broker].disk
    disk.faults.foreign_bytes = disk.capacity_bytes * percent // 100


def test_a_full_broker_is_given_nothing_until_it_has_room(world: MovingWorld) -> None:
    fill(world, 4, 90)
    world.advance(LOOKS_MS)
    at = world.controller_leader()
    reported = world.ask(at, DescribeBalanceRequest(), DescribeBalanceResponse, 0)
    shown = {one.broker_id: (one.disk_used_percent, one.is_disk_full) for one in reported.brokers}
    assert shown == {1: (0, False), 2: (0, False), 3: (0, False), 4: (90, True), 5: (0, False)}
    want(world, 1, 2, 4)
    world.until(lambda: any(code == "disk-full" for code, _ in findings(world).waits.found))
    ((_, text),) = findings(world).waits.found
    assert text.endswith("brokers 4, which could take a replica, are more than 85 % full")
    world.advance(LOOKS_MS)
    assert is_on(world, 1, 2, 3)
    alter(world, CLUSTER, "", HIGH, "96")
    world.until(lambda: is_on(world, 1, 2, 4))


def test_a_broker_is_decommissioned_where_the_others_have_room(world: MovingWorld) -> None:
    def decommission() -> tuple[int, str]:
        row = changes(CLUSTER, "3", ("broker.decommission", 0, "true"))
        answer = world.submit(AlterConfigs((row,)), at=5)
        assert isinstance(answer, ResourceResults)
        (one,) = answer.resources
        return one.error_code, one.message or ""

    reporting = world.broker(5).controller.reporting
    log = world.replicas_of(TOPIC)[3].log
    before = log.size_bytes()
    reported = world.do(5, reporting.ask([BrokerId(3)], Question(sizes=True)))
    (size,) = reported[BrokerId(3)].sizes.values()
    assert 0 < before <= size <= log.size_bytes()  # Somebody writes all the time.
    fill(world, 4, 90)
    fill(world, 5, 90)
    code, message = decommission()
    assert code == POLICY_VIOLATION and "do not fit elsewhere: broker 4 lacks" in message
    fill(world, 5, 10)
    assert decommission() == (0, "")
    world.until(lambda: is_on(world, 1, 2, 5))


def test_new_topics_go_where_there_is_room(world: MovingWorld) -> None:
    fill(world, 2, 90)
    fill(world, 4, 100)
    world.advance(LOOKS_MS)
    world.create_topic("roomy", partitions=4, replicas=3)
    topic = world.broker(1).controller.cluster.topics["roomy"]
    assert {one for each in topic.partitions for one in each.replicas} == {1, 3, 5}
    world.create_topic("wide", replicas=4)
    answer = world.submit(CreateTopics((NewTopic(name="wider", replication_factor=5),)))
    assert isinstance(answer, TopicResults)
    assert "the disk of broker 4 is 99 % full or fuller" in (answer.topics[0].message or "")


def test_who_does_not_answer_is_passed_over(world: MovingWorld) -> None:
    world.hosts[5].pause()
    reporting = world.broker(1).controller.reporting
    reported = world.do(1, reporting.ask(world.broker(1).controller.cluster.brokers, Question()))
    assert sorted(reported) == [1, 2, 3, 4]
    world.hosts[5].resume()
