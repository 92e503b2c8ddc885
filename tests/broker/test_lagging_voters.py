"""Voters that are heard and acknowledge nothing: alarms, refused acks=all, and removal after
`replica.lag.time.max.ms`.

Source: decision 0020; Kafka's `replica.lag.time.max.ms`."""

from collections.abc import Callable

import pytest
from tests.admin.scrapes import Monitor
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_balancing import TOPIC_SCOPE, alter
from tests.broker.test_promotion import WEST, constraints, kill, voting, watched_world, writes
from tests.broker.voters_world import HOME, append, votes

from strandline.base.errors import RejectedError
from strandline.broker.groups import arbitration
from strandline.model.ids import BrokerId, GroupId
from strandline.protocol.errors import Error
from strandline.raft.group.configuration import Configuration
from strandline.replication.leader.replica_status import standings
from strandline.replication.liveness.fencing import FencedGroup, Fencing

LAG_MS = 5_000


def configs(
    min_insync: int, *, shrink: bool = True, lag_ms: int = LAG_MS
) -> tuple[tuple[str, str], ...]:
    return (
        ("voters.shrink.enable", str(shrink).lower()),
        ("min.insync.replicas", str(min_insync)),
        ("replica.lag.time.max.ms", str(lag_ms)),
    )


def hang(world: MovingWorld, broker: int) -> None:
    """Its disk flushes nothing of the topic any more."""
    replica = world.replicas_of(TOPIC)[broker]
    world.until(lambda: not replica.flushes.is_under_way)
    replica.flushes.is_under_way = True


def recover(world: MovingWorld, broker: int) -> None:
    """It flushes again."""
    replica = world.replicas_of(TOPIC)[broker]
    replica.flushes.is_under_way = False
    replica.flush()


def hang_one(world: MovingWorld) -> int:
    """A voter that does not lead."""
    world.until(lambda: len(world.acked) > 0)
    slow = next(one for one in reversed(HOME) if one != world.leader_of(TOPIC))
    hang(world, slow)
    return slow


def partition_metric(world: MovingWorld, metric: str) -> float:
    scrape = Monitor(world).scrape(world.leader_of(TOPIC))
    return scrape.value(f"strandline_partition_{metric}", topic=TOPIC, partition="0")


@pytest.mark.parametrize("min_insync", [2, 3])
def test_a_voter_that_flushes_nothing_leaves_though_it_is_asked_again_and_again(
    monkeypatch: pytest.MonkeyPatch, min_insync: int
) -> None:
    """With 3, nothing is committed without it either, so it is never behind a commit."""
    lag_ms = 6 * LAG_MS
    with moving_world(monkeypatch, HOME, configs=configs(min_insync, lag_ms=lag_ms)) as world:
        slow = hang_one(world)
        left = [one for one in HOME if one != slow]
        since_ms = world.scheduler.now_us // 1_000
        world.until(lambda: votes(world, *left))
        assert lag_ms <= world.scheduler.now_us // 1_000 - since_ms < lag_ms + 10_000
        before = len(world.acked)
        if min_insync == 2:
            world.until(lambda: len(world.acked) > before)
        else:
            answers = append(world, b"refused", acks=-1)
            world.until(lambda: len(answers) == 1)
            assert answers[0].error_code == Error.NOT_ENOUGH_REPLICAS
            assert partition_metric(world, "under_min_isr") == 1


def test_what_nobody_waits_for_may_be_flushed_late_and_nobody_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All is well, and `flush.ms` longer than `replica.lag.time.max.ms`."""
    some = (*configs(1), ("flush.ms", str(4 * LAG_MS)))
    with moving_world(monkeypatch, (4, 5), configs=some) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        monkeypatch.setattr(world, "_produce", lambda: None)
        for number in range(6 * LAG_MS // 100):
            append(world, b"%d" % number, acks=1)
            world.advance(100)
            assert partition_metric(world, "in_sync_replicas") == 2
        assert (world.known.grant, world.leader_of(TOPIC)) == (0, leader)


def test_where_none_leaves_it_is_not_in_sync_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """So acks=all is refused rather than held for ever, and the figures say so; not before."""
    with moving_world(monkeypatch, HOME, configs=configs(3, shrink=False)) as world:
        slow = hang_one(world)
        world.advance(LAG_MS - 1_000)
        assert partition_metric(world, "in_sync_replicas") == 3
        world.advance(2_000)
        leader = world.replicas_of(TOPIC)[world.leader_of(TOPIC)]
        for _ in range(40):  # It is asked how far it is meanwhile, and answers.
            world.advance(250)
            found = {one.broker: one for one in standings(leader)}
            assert not found[BrokerId(slow)].is_in_isr
            assert not found[BrokerId(slow)].is_caught_up
        assert [partition_metric(world, one) for one in ("in_sync_replicas", "not_caught_up")] == [
            2,
            1,
        ]
        assert (
            partition_metric(world, "under_min_isr")
            == partition_metric(world, "under_replicated")
            == 1
        )
        assert world.known.voters == HOME


def test_a_write_quorum_that_was_lowered_leaves_no_partition_at_its_minimum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The controller is away, so the one that is lost stays a voter."""
    with moving_world(monkeypatch, HOME, configs=configs(3)) as world:
        world.until(lambda: len(world.acked) > 0)
        kill(world, 1, 2)
        lost = next(one for one in (5, 4) if one != world.leader_of(TOPIC))
        kill(world, lost)
        lowered = Configuration(tuple(map(BrokerId, HOME)), min_insync=1)
        world.until(lambda: world.any_leader(lambda one: one.configuration == lowered))
        assert partition_metric(world, "in_sync_replicas") == 2
        assert partition_metric(world, "under_min_isr") == 1


def close_log(world: MovingWorld, broker: int) -> None:
    """As for damage."""
    world.replicas_of(TOPIC)[broker].fail(RejectedError(Error.KAFKA_STORAGE_ERROR, "damaged"))


def fail_one_of_two(world: MovingWorld, fail_disk: Callable[[MovingWorld, int], None]) -> int:
    """The leader continues alone, by a grant, and serves writes; returns the other voter."""
    world.until(lambda: len(world.acked) > 0)
    leader = world.leader_of(TOPIC)
    (failed,) = (one for one in (4, 5) if one != leader)
    fail_disk(world, failed)
    world.until(lambda: votes(world, leader))
    writes(world)
    assert world.known.grant == 1
    return failed


def test_of_two_voters_one_goes_on_where_the_log_of_the_other_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with moving_world(monkeypatch, (4, 5), configs=configs(1)) as world:
        fail_one_of_two(world, close_log)


def test_of_two_voters_one_goes_on_where_the_other_flushes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No majority keeps up, and a leader lives: the controller has it go on alone, until the other
    one is well again."""
    with moving_world(monkeypatch, (4, 5), configs=configs(1)) as world:
        slow = fail_one_of_two(world, hang)
        recover(world, slow)
        world.until(lambda: votes(world, 4, 5))
        world.finish(4, 5)
        assert world.known.grant == 1


def test_of_two_voters_the_other_goes_on_where_the_leader_itself_flushes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is heard, and hears: the other one stands for no election, and would not win it."""
    with moving_world(monkeypatch, (4, 5), configs=configs(1)) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        hang(world, leader)
        world.until(lambda: world.leader_of(TOPIC) not in (0, leader))
        writes(world)
        assert world.known.grant == 1
        recover(world, leader)
        world.until(lambda: votes(world, 4, 5))
        world.finish(4, 5)


def test_where_all_have_to_acknowledge_a_leader_that_flushes_nothing_lets_another_one_lead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next leader can remove it; until then nothing is committed, acks=1 included."""
    with moving_world(monkeypatch, HOME, configs=configs(3)) as world:
        world.until(lambda: len(world.acked) > 0)
        slow = world.leader_of(TOPIC)
        hang(world, slow)
        world.until(lambda: world.leader_of(TOPIC) not in (0, slow))
        world.until(lambda: votes(world, *(one for one in HOME if one != slow)))
        append(world, b"seen", acks=1)
        leader = world.replicas_of(TOPIC)[world.leader_of(TOPIC)]
        world.until(lambda: leader.high_watermark == leader.log.end_offset)
        recover(world, slow)
        world.until(lambda: votes(world, *HOME))
        writes(world)


def test_what_a_leader_waited_for_counts_no_more_once_the_next_one_has_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise each returning voter is fenced again, because of a report that no broker
    repeats. Brokers are
    asked each second; here not at all, as while one of them does not answer."""
    with moving_world(monkeypatch, (4, 5), configs=configs(1)) as world:
        slow = fail_one_of_two(world, hang)
        monkeypatch.setattr(arbitration, "SURVEY_INTERVAL_MS", 120_000)
        recover(world, slow)
        world.until(lambda: votes(world, 4, 5))
        world.advance(10_000)
        assert votes(world, 4, 5)
        assert world.known.grant == 1


def test_who_took_nothing_is_appointed_where_the_leader_that_waited_for_it_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The leader died before it was fenced, and no broker can report that the other one is well."""
    with moving_world(monkeypatch, (4, 5), configs=configs(1)) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        (slow,) = (one for one in (4, 5) if one != leader)
        fence = Fencing.fence

        async def answered(
            fencing: Fencing, broker: BrokerId, groups: list[tuple[GroupId, int]]
        ) -> tuple[FencedGroup, ...]:
            return () if broker == leader else await fence(fencing, broker, groups)

        monkeypatch.setattr(Fencing, "fence", answered)
        hang(world, slow)
        world.until(lambda: world.known.is_fenced)
        kill(world, leader)
        recover(world, slow)
        world.until(lambda: votes(world, slow))
        answers = append(world, b"more", acks=-1)
        world.until(lambda: [one.error_code for one in answers] == [0])


def test_an_observer_stands_in_for_one_of_two_voters_that_flushes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = constraints({"west": 2}, {"east": 2})
    with watched_world(monkeypatch, policy=policy) as world:
        alter(world, TOPIC_SCOPE, TOPIC, "replica.lag.time.max.ms", str(LAG_MS))
        leader = world.leader_of(TOPIC)
        (slow,) = (one for one in WEST if one != leader)
        hang(world, slow)
        world.until(lambda: voting(world, own=(leader,), observers=1))
        writes(world)
        assert partition_metric(world, "under_min_isr") == 0
