"""Voters that are lost leave, and return, while others write. Source: decision 0020."""

from collections.abc import Iterator

import pytest
from tests.broker.broker_world import batch_of
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world

from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.records.batch import read_header
from strandline.replication.appender import AppendResult

CONFIGS = (("voters.shrink.enable", "true"), ("min.insync.replicas", "1"))
HOME = (3, 4, 5)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, one topic with voters 3 to 5, a producer that goes on."""
    with moving_world(monkeypatch, HOME, configs=CONFIGS) as made:
        made.until(lambda: len(made.acked) > 0)
        yield made


def votes(world: MovingWorld, *brokers: int) -> bool:
    """Whether these vote, and the controller knows it."""
    known = world.known
    return (
        set(known.voters) == set(brokers)
        and not known.pending
        and world.any_leader(lambda one: set(one.configuration.voters) == set(brokers))
    )


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


def test_what_the_controller_does_not_hear_and_what_serves_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of two voters is heard, and follows the other."""
    with moving_world(monkeypatch, (4, 5), configs=CONFIGS) as world:
        controller = BrokerId(world.controller_leader())
        for one, other in ((controller, BrokerId(4)), (BrokerId(4), controller)):
            world.fabric.cut(one, other)
        world.advance(10_000)
        assert world.controller_leader() == controller
        before = len(world.acked)
        world.until(lambda: len(world.acked) > before)
        assert (world.known.grant, world.known.voters) == (0, (4, 5))


def append(world: MovingWorld, value: bytes, *, acks: int, **options: int) -> list[AppendResult]:
    """What the leader says to a batch, in the end."""
    replica = world.replicas_of(TOPIC)[world.leader_of(TOPIC)]
    batch = batch_of(value, **options)
    answers: list[AppendResult] = []
    header = read_header(batch)
    assert header is not None
    replica.replicate([batch], [header], acks=acks, done=answers.append)
    return answers


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
    """All three are the write quorum: two are a majority, and what they commit alone meanwhile is
    promised to nobody."""
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
