"""What is left of a partition, as its brokers report it after heavy losses (decision 0026)."""

import pytest
from tests.broker.broker_world import batch_of
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world

from strandline.controller.arbitration.survivors import GroupStatus, SurvivingLog, Survivors, assess
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_replica_logs import (
    DescribeReplicaLogsRequest,
    DescribeReplicaLogsResponse,
)
from strandline.records.batch import read_header

HOME = (3, 4, 5)


def ask(world: MovingWorld, at: int, *, index: int = 0) -> DescribeReplicaLogsResponse:
    request = DescribeReplicaLogsRequest(topic=TOPIC, partition=index)
    return world.ask(at, request, DescribeReplicaLogsResponse, 0)


def judged(world: MovingWorld) -> Survivors:
    """As the command line does, of all running brokers."""
    answers = {at: ask(world, at) for at, host in world.hosts.items() if host.program is not None}
    best = max(answers.values(), key=lambda one: one.cluster_version)
    return assess(
        [tuple(map(BrokerId, one.voters)) for one in best.possible],
        [
            SurvivingLog(
                broker=BrokerId(at),
                is_led=one.is_led,
                last_epoch=one.last_epoch,
                last_index=one.last_index,
                start=one.log_start_offset,
                committed=one.committed_offset,
                end=one.log_end_offset,
                has_lost=one.has_lost,
            )
            for at, one in answers.items()
            if not one.error_code
        ],
    )


def until_judged(world: MovingWorld, standing: GroupStatus) -> Survivors:
    """What is left, once it is so."""
    for _ in range(60):
        found = judged(world)
        if found.standing == standing:
            return found
        world.advance(500)
    raise AssertionError(found)


def test_what_is_acknowledged_without_the_survivor_is_at_risk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with moving_world(monkeypatch, HOME) as world:
        world.until(lambda: len(world.acked) > 0)
        assert judged(world).standing == GroupStatus.LED
        leader = world.leader_of(TOPIC)
        cut, other = (one for one in HOME if one != leader)
        for one in (leader, other):
            world.fabric.cut(BrokerId(cut), BrokerId(one))
            world.fabric.cut(BrokerId(one), BrokerId(cut))
        world.advance(1_000)
        before = len(world.acked)
        world.until(lambda: len(world.acked) > before + 10)
        ended = world.replicas_of(TOPIC)[leader].committed_end
        world.hosts[leader].kill()
        world.hosts[other].kill()
        found = until_judged(world, GroupStatus.SHORT)
        assert found.best == cut
        assert found.missing == tuple(sorted((leader, other))) and found.wanted == 1
        # What was acknowledged and is not here lies where it is said to.
        assert found.committed <= found.end < ended
        values = len(world.acked)
        world.hosts[other].start()
        world.until_started(other)
        for one, another in ((cut, other), (other, cut)):
            world.fabric.heal(BrokerId(one), BrokerId(another))
        until_judged(world, GroupStatus.LED)
        world.until(lambda: len(world.acked) > values)
        world.check()


def test_below_what_survivors_know_to_be_committed_nothing_is_at_risk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A surviving leader has a tail that no other replica got: it reports where that begins."""
    with moving_world(monkeypatch, HOME) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        for one in HOME:
            if one != leader:
                world.hosts[one].kill()
        replica = world.replicas_of(TOPIC)[leader]
        committed = replica.committed_end
        batch = batch_of(b"alone")
        header = read_header(batch)
        assert header is not None
        replica.replicate([batch], [header], acks=1, done=lambda _: None)
        found = until_judged(world, GroupStatus.SHORT)
        assert committed <= found.committed < found.end
        assert found.end == replica.log_end_offset


def test_who_has_no_replica_knows_who_may_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    with moving_world(monkeypatch, HOME) as world:
        answer = ask(world, 1)
        assert answer.error_code == Error.NOT_LEADER_OR_FOLLOWER
        assert [one.voters for one in answer.possible] == [list(HOME)]
        assert ask(world, 1, index=7).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
