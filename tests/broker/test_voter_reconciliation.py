"""Lost voters leave, and return, under writes.

Source: decision 0020."""

import logging
from collections.abc import Iterator

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_balancing import TOPIC_SCOPE, alter
from tests.broker.test_outages import described
from tests.broker.voters_world import CONFIGS, HOME, append, votes

from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, one topic with voters 3 to 5, a producer that goes on."""
    with moving_world(monkeypatch, HOME, configs=CONFIGS) as made:
        made.until(lambda: len(made.acked) > 0)
        yield made


def test_a_voter_that_is_lost_leaves_and_returns(world: MovingWorld) -> None:
    lost = next(one for one in HOME if one != world.leader_of("moved"))
    left = [one for one in HOME if one != lost]
    world.hosts[lost].kill()
    world.until(lambda: votes(world, *left))
    before = len(world.acked)
    world.until(lambda: len(world.acked) > before)
    world.hosts[lost].start()
    world.until_started(lost)
    world.until(lambda: votes(world, *HOME))
    world.finish(*HOME)
    assert world.known.acting == ()


def test_the_last_of_three_serves_when_the_others_were_lost_one_after_the_other(
    world: MovingWorld,
) -> None:
    """Two are left that vote, and one of them holds all that was acknowledged."""
    leader = world.leader_of("moved")
    first, second = (one for one in HOME if one != leader)
    world.hosts[first].kill()
    world.until(lambda: votes(world, leader, second))
    world.hosts[second].kill()
    world.until(lambda: votes(world, leader))
    before = len(world.acked)
    world.until(lambda: len(world.acked) > before)
    world.hosts[first].start()
    world.hosts[second].start()
    world.until_started(first, second)
    world.until(lambda: votes(world, *HOME))
    world.finish(*HOME)


def test_acks_all_is_refused_where_fewer_vote_than_it_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As Kafka does: before the append, and after it where the others were lost meanwhile."""
    configs = (("voters.shrink.enable", "true"), ("min.insync.replicas", "2"))
    with moving_world(monkeypatch, HOME, configs=configs) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        first, second = (one for one in HOME if one != leader)
        world.hosts[first].kill()
        world.until(lambda: votes(world, leader, second))
        world.hosts[second].kill()
        waiting = append(world, b"waits", acks=-1)
        world.until(lambda: votes(world, leader))
        before = append(world, b"refused", acks=-1)
        assert [one.error_code for one in before] == [Error.NOT_ENOUGH_REPLICAS]
        world.until(lambda: bool(waiting))
        assert waiting[0].error_code in (
            Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            Error.NOT_LEADER_OR_FOLLOWER,
        )
        relaxed = append(world, b"taken", acks=1)
        world.until(lambda: bool(relaxed))
        assert relaxed[0].error_code == 0
        world.hosts[first].start()
        world.until_started(first)
        world.until(lambda: votes(world, leader, first))
        world.hosts[second].start()
        world.until_started(second)
        world.finish(*HOME)


def test_a_voter_leaves_though_nothing_can_be_committed_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All three are the write quorum: two are a majority, and no producer is
    promised what they commit alone meanwhile."""
    configs = (("voters.shrink.enable", "true"), ("min.insync.replicas", "3"))
    with moving_world(monkeypatch, HOME, configs=configs) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        lost = next(one for one in HOME if one != leader)
        left = [one for one in HOME if one != lost]
        world.hosts[lost].kill()
        world.advance(500)
        waiting = append(world, b"waits", acks=-1)
        world.until(lambda: votes(world, *left))
        world.until(lambda: bool(waiting))
        assert waiting[0].error_code == Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        refused = append(world, b"refused", acks=-1)
        assert [one.error_code for one in refused] == [Error.NOT_ENOUGH_REPLICAS]
        relaxed = append(world, b"taken", acks=1)
        world.until(lambda: bool(relaxed))
        assert relaxed[0].error_code == 0
        world.until(lambda: world.any_leader(lambda one: one.configuration.min_insync == 3))
        world.hosts[lost].start()
        world.until_started(lost)
        world.finish(*HOME)


def test_the_controller_tells_of_partitions_that_go_on_with_less_and_when_that_is_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two of three vote, and acks=all asks for three."""
    caplog.set_level(logging.INFO, "strandline.controller")
    configs = (("voters.shrink.enable", "true"), ("min.insync.replicas", "3"))
    with moving_world(monkeypatch, HOME, configs=configs) as world:
        world.until(lambda: len(world.acked) > 0)
        lost = next(one for one in (4, 5) if one != world.leader_of(TOPIC))

        def alarms() -> list[str]:
            classes = ("fewer-voters", "low-quorum")
            return sorted(one for one in caplog.messages if one.startswith(classes))

        world.hosts[lost].kill()
        world.until(lambda: len(alarms()) == 2)
        assert alarms() == [
            "fewer-voters: fewer voters than placement requires: 1 partition, moved-0",
            (
                "low-quorum: acks=all writes are rejected: fewer voters are in sync than "
                "min.insync.replicas requires: 1 partition, moved-0"
            ),
        ]
        shown = described(world).happenings
        assert alarms() == sorted(
            f"{one.kind}: {one.text}" for one in shown if one.kind != "broker"
        )
        assert {one.subject for one in shown if one.kind != "broker"} == {"partitions"}
        world.hosts[lost].start()
        world.until_started(lost)
        caplog.clear()
        world.until(lambda: len(alarms()) == 2)
        assert alarms() == [
            "fewer-voters: all voters are back",
            "low-quorum: acks=all writes are accepted everywhere",
        ]
        world.finish(*HOME)


def test_who_follows_a_lost_leader_can_commit_though_all_three_would_have_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two elect, and cannot commit even the epoch's first entry with three as the write quorum."""
    configs = (("voters.shrink.enable", "true"), ("min.insync.replicas", "3"))
    with moving_world(monkeypatch, HOME, configs=configs) as world:
        world.until(lambda: len(world.acked) > 0)
        lost = world.leader_of(TOPIC)
        left = [one for one in HOME if one != lost]
        world.hosts[lost].kill()
        world.until(lambda: votes(world, *left))
        refused = append(world, b"refused", acks=-1)
        assert [one.error_code for one in refused] == [Error.NOT_ENOUGH_REPLICAS]
        relaxed = append(world, b"taken", acks=1)
        world.until(lambda: bool(relaxed))
        assert relaxed[0].error_code == 0
        world.hosts[lost].start()
        world.until_started(lost)
        world.finish(*HOME)


def test_what_comes_again_waits_for_a_write_quorum_that_was_raised_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was committed by two, and has to be held by all three before it is acknowledged again."""
    configs = (("voters.shrink.enable", "true"), ("min.insync.replicas", "2"))
    once = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    with moving_world(monkeypatch, HOME, configs=configs) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        behind = next(one for one in HOME if one != leader)
        ways = [(BrokerId(one), BrokerId(behind)) for one in HOME if one != behind]
        ways += [(there, here) for here, there in ways]
        for way in ways:
            world.fabric.cut(*way)
        first = append(world, b"once", acks=-1, **once)
        world.until(lambda: bool(first))
        replica = world.replicas_of(TOPIC)[leader]
        present = replica.configuration
        assert first[0].error_code == 0 and len(present.voters) == 3
        replica.change_configuration(
            voters=present.voters,
            observers=present.observers,
            min_insync=3,
            version=present.version,
        )
        assert replica.configuration.min_insync == 3
        again = append(world, b"once", acks=-1, **once)
        world.advance(5)  # Less than until the topic's own write quorum is asked for again.
        assert again == []
        for way in ways:
            world.fabric.heal(*way)
        world.until(lambda: bool(again))
        assert again[0] == first[0]
        world.finish(*HOME)


def test_acks_all_is_refused_by_a_lowered_write_quorum_though_voters_may_leave_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The key was switched off as its leader came to do with a majority, and no voter had left."""
    configs = (("voters.shrink.enable", "true"), ("min.insync.replicas", "3"))
    with moving_world(monkeypatch, HOME, configs=configs) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        replica = world.replicas_of(TOPIC)[leader]
        alter(world, TOPIC_SCOPE, TOPIC, "voters.shrink.enable", "false")
        world.advance(1_000)
        before = replica.configuration
        replica.change_configuration(
            voters=before.voters,
            observers=before.observers,
            min_insync=1,
            version=before.version,
        )
        assert replica.configuration.min_insync == 1
        refused = append(world, b"too few", acks=-1)
        world.advance(5)  # Less than until the topic's own write quorum is asked for again.
        assert [one.error_code for one in refused] == [Error.NOT_ENOUGH_REPLICAS]
        world.finish(*HOME)


def test_a_majority_that_is_what_the_topic_asks_for_is_refused_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Raised from one to two of three: two always had to have it."""
    configs = (("min.insync.replicas", "1"),)
    with moving_world(monkeypatch, HOME, configs=configs) as world:
        world.until(lambda: len(world.acked) > 0)
        alter(world, TOPIC_SCOPE, TOPIC, "min.insync.replicas", "2")
        answers = []
        for _ in range(300):
            answers.append(append(world, b"goes on", acks=-1))
            world.advance(1)
        world.until(lambda: all(answers))
        assert {one.error_code for some in answers for one in some} == {0}


def test_fewer_replicas_that_are_wanted_are_refused_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of three: not while the group has gone there, and the controller has not heard of it."""
    with moving_world(monkeypatch, HOME) as world:
        world.until(lambda: len(world.acked) > 0)
        assert world.move(world.leader_of(TOPIC)) == 0
        answers = []
        for _ in range(1_000):
            answers.append(append(world, b"goes on", acks=-1))
            world.advance(1)
        world.until(lambda: all(answers))
        assert len(world.known.replicas) == 1
        assert {one.error_code for some in answers for one in some} == {0}
