"""Voters that are lost leave, and return, while others write. Source: decision 0020."""

import logging
from collections.abc import Callable, Iterator

import pytest
from tests.broker.broker_world import batch_of
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_balancing import TOPIC_SCOPE, alter
from tests.broker.test_lost_disk import lose_disk
from tests.broker.test_outages import described
from tests.storage.storage_world import ManualClock

from strandline.broker.groups import arbitration
from strandline.broker.groups.hosting import Hosting
from strandline.broker.groups.moving import ATTENDANCE_INTERVAL_MS
from strandline.broker.groups.voter_reconciliation import (
    CALM_MS,
    FREE_RETURNS,
    GRANTS_CALM_MS,
    RETURN_DOUBLINGS_MAX,
    RETURN_MS,
    SILENT_MS,
    Health,
    Lag,
    StandIns,
    VoterReconciliation,
)
from strandline.controller.arbitration import grant_progress
from strandline.controller.arbitration.promotion import HANDOVER_RETRY_MS, Bounds, Code
from strandline.controller.commands import BeginGrant, CreateTopics, NewTopic, TopicResults
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId, first_epoch
from strandline.protocol.errors import Error
from strandline.records.batch import read_header
from strandline.replication.leader.appender import AppendResult
from strandline.replication.liveness.fencing import Fencing

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


def test_a_grant_that_has_begun_waits_for_no_further_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody serves meanwhile: who answers the fence is seated, and told, at once."""
    monkeypatch.setattr(arbitration, "LOOK_INTERVAL_MS", 5_000)
    with moving_world(monkeypatch, (4, 5), configs=CONFIGS) as world:
        world.until(lambda: len(world.acked) > 0)
        world.hosts[4].kill()
        world.until(lambda: world.known.grant == 1)
        world.advance(2_000)
        assert world.leader_of(TOPIC) == 5
        assert world.any_leader(lambda one: one.epoch >= first_epoch(1))


def append(
    world: MovingWorld, value: bytes, *, acks: int, at: int = 0, **options: int
) -> list[AppendResult]:
    """What the leader says to a batch, in the end; or `at`, where clients do not take it for the
    leader."""
    replica = world.replicas_of(TOPIC)[at or world.leader_of(TOPIC)]
    batch = batch_of(value, **options)
    answers: list[AppendResult] = []
    header = read_header(batch)
    assert header is not None
    replica.replicate([batch], [header], acks=acks, done=answers.append)
    return answers


def health(keeps_up: Callable[[BrokerId], bool]) -> Health:
    """All are heard; who does not keep up leaves at once."""
    return Health(keeps_up, lambda broker: True, lambda broker: 0, lag_ms=0)


def test_an_observer_that_leads_hands_over_until_it_has() -> None:
    """Who asks what should be done, and does something else, has handed over nothing."""
    clock = ManualClock()
    acting = VoterReconciliation(clock)
    group, own = GroupId(7), (BrokerId(1), BrokerId(2))
    observer = BrokerId(4)
    partition = Partition("t", 0, group, own, observers=(observer,), acting=(*own, observer))
    stand_ins = StandIns(
        policy="under-replicated",
        min_insync=1,
        bounds=Bounds(demote_ms=0),
        lag=lambda broker: Lag(0, 0),
        levels=lambda one, other: 0,
        regions={},
        regions_down=frozenset(),
    )

    def code() -> Code | None:
        clock.advance(RETURN_MS)
        found = acting.choose(
            partition,
            observer,
            health(lambda broker: True),
            min_insync=1,
            is_ready=lambda broker: True,
            stand_ins=stand_ins,
        )
        return None if found.verdict is None else found.verdict.code

    assert [code(), code()] == [Code.HAND_OVER, Code.HAND_OVER]
    acting.note_handed_over(group)
    assert [code(), code()] == [Code.HEALING, Code.HEALING]
    clock.advance(HANDOVER_RETRY_MS)
    assert code() is Code.HAND_OVER


class Short:
    """A group of three of which broker 3 does not vote."""

    own = (BrokerId(1), BrokerId(2), BrokerId(3))

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.acting = VoterReconciliation(self.clock)
        self.is_there, self.is_ready, self.grant = False, True, 0

    def returns(self, min_insync: int) -> bool:
        """Whether it should vote."""
        partition = Partition("t", 0, GroupId(7), self.own, acting=self.own[:2], grant=self.grant)
        choice = self.acting.choose(
            partition,
            self.own[0],
            health(lambda broker: broker != self.own[2] or self.is_there),
            min_insync=min_insync,
            is_ready=lambda broker: self.is_ready,
        )
        return choice.voters == self.own

    def come_after(self, ms: int) -> None:
        """It is away for so long, and then keeps up."""
        self.is_there = False
        assert not self.returns(3)
        self.clock.advance(ms)
        self.is_there = True


@pytest.mark.parametrize(("min_insync", "is_short"), [(2, False), (3, True), (9, True)])
def test_who_comes_back_votes_at_once_where_acks_all_is_refused_without_it(
    min_insync: int, *, is_short: bool
) -> None:
    """Where enough vote, it has to keep up for a while first: it may be gone again."""
    group = Short()
    group.come_after(RETURN_MS)
    assert group.returns(min_insync) == is_short
    group.clock.advance(RETURN_MS)
    assert group.returns(min_insync)


def test_who_lacks_what_was_written_meanwhile_does_not() -> None:
    group = Short()
    group.come_after(RETURN_MS)
    group.is_ready = False
    assert not group.returns(3)
    group.is_ready = True
    assert group.returns(3)


def test_who_costs_a_grant_each_time_comes_back_later_and_later() -> None:
    """A partition has 2,047 of them for ever; who stays well for an hour begins anew."""

    def waits_ms() -> int:
        group.come_after(1_000)
        waited = 0
        while not group.returns(2):
            group.clock.advance(1_000)
            waited += 1_000
        group.grant += 1
        return waited

    group = Short()
    usual = [RETURN_MS] * (FREE_RETURNS + 1)
    doubled = [RETURN_MS << count for count in range(1, RETURN_DOUBLINGS_MAX + 1)]
    assert [waits_ms() for _ in range(12)] == [*usual, *doubled, doubled[-1]]
    group.clock.advance(GRANTS_CALM_MS)
    assert waits_ms() == RETURN_MS


def test_who_leaves_without_a_grant_comes_back_as_soon_as_ever() -> None:
    group = Short()
    for _ in range(12):
        group.come_after(1_000)
        assert not group.returns(2)
        group.clock.advance(RETURN_MS)
        assert group.returns(2)


def test_nor_who_comes_and_goes() -> None:
    """Where it takes what is left with it each time, each time costs one of the grants."""
    group = Short()
    group.come_after(RETURN_MS)
    assert group.returns(3) and group.returns(3)
    for _ in range(3):
        group.acting.forget(GroupId(7))
        group.come_after(RETURN_MS)
        assert not group.returns(3)
        group.clock.advance(RETURN_MS)
        assert group.returns(3)
    group.come_after(CALM_MS)
    assert group.returns(3)


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


def test_the_controller_tells_of_partitions_that_go_on_with_less_and_when_that_is_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two of three vote, and acks=all asks for three."""
    caplog.set_level(logging.INFO, "strandline.controller")
    configs = (("voters.shrink.enable", "true"), ("min.insync.replicas", "3"))
    with moving_world(monkeypatch, HOME, configs=configs) as world:
        world.until(lambda: len(world.acked) > 0)
        lost = next(one for one in (4, 5) if one != world.leader_of(TOPIC))

        def told() -> list[str]:
            classes = ("fewer-voters", "low-quorum")
            return sorted(one for one in caplog.messages if one.startswith(classes))

        world.hosts[lost].kill()
        world.until(lambda: len(told()) == 2)
        assert told() == [
            "fewer-voters: fewer voters than placement asks for: 1 partition, moved-0",
            "low-quorum: acks=all is refused, for fewer voters are left than min.insync.replicas "
            "asks for: 1 partition, moved-0",
        ]
        shown = described(world).happenings
        assert told() == sorted(f"{one.kind}: {one.text}" for one in shown if one.kind != "broker")
        assert {one.subject for one in shown if one.kind != "broker"} == {"partitions"}
        world.hosts[lost].start()
        world.until_started(lost)
        caplog.clear()
        world.until(lambda: len(told()) == 2)
        assert told() == [
            "fewer-voters: all voters are back",
            "low-quorum: acks=all is refused nowhere",
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


def test_of_two_voters_the_other_goes_on_where_the_leader_comes_back_without_its_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is heard, and cannot vote: nobody is elected, and the one that is left has everything."""
    with moving_world(monkeypatch, (4, 5), configs=CONFIGS) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        lose_disk(world, leader)
        world.hosts[leader].start()
        world.until_started(leader)
        before = len(world.acked)
        world.until(lambda: len(world.acked) > before)
        world.until(lambda: votes(world, 4, 5))
        world.finish(4, 5)


def test_who_cannot_vote_is_forgotten_where_no_topic_asks_for_it_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody asks again, and it would count for ever."""
    with moving_world(monkeypatch, HOME, configs=CONFIGS) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        lost = [one for one in HOME if one != leader]
        world.hosts[leader].kill()
        for one in lost:
            lose_disk(world, one)
            world.hosts[one].start()
        world.until_started(*lost)
        deciding = world.broker(world.controller_leader())._arbitrating
        world.until(lambda: deciding.reports.unable == {world.known.group: set(lost)})
        alter(world, TOPIC_SCOPE, TOPIC, "voters.shrink.enable", "false")
        world.until(lambda: not deciding.reports.unable)


def test_a_grant_that_has_begun_is_carried_through_where_the_key_is_switched_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who was fenced stands for no election, and whoever leads may change nothing."""
    with moving_world(monkeypatch, (4, 5), configs=CONFIGS) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        (other,) = {4, 5} - {leader}
        world.hosts[leader].kill()
        world.until(lambda: world.known.is_fenced)
        world.hosts[BrokerId(other)].kill()
        alter(world, TOPIC_SCOPE, TOPIC, "voters.shrink.enable", "false")
        world.hosts[leader].start()
        world.hosts[BrokerId(other)].start()
        world.until_started(leader, other)
        before = len(world.acked)
        world.until(lambda: len(world.acked) > before)
        world.until(lambda: not world.known.is_fenced and votes(world, 4, 5))
        world.finish(4, 5)


def test_a_leader_that_cannot_begin_is_waited_for_longer_each_time_and_the_next_loss_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A group has so many grants for ever, and a full disk lasts for days."""
    monkeypatch.setattr(grant_progress, "SEAT_MS", 200)
    tell = Fencing.seat
    with moving_world(monkeypatch, (4, 5), configs=CONFIGS) as world:
        world.until(lambda: len(world.acked) > 0)

        def lose_leader() -> BrokerId:
            leader = BrokerId(world.leader_of(TOPIC))
            monkeypatch.setattr(Fencing, "seat", _nothing)
            world.hosts[leader].kill()
            return leader

        leader = lose_leader()
        world.advance(60_000)
        grants = world.known.grant
        assert 4 < grants < 10
        monkeypatch.setattr(Fencing, "seat", tell)
        world.until(lambda: votes(world, *({4, 5} - {leader})))
        world.hosts[leader].start()
        world.until_started(leader)
        world.until(lambda: votes(world, 4, 5))
        grants = world.known.grant
        lose_leader()
        world.advance(10_000)
        assert world.known.grant > grants + 2


async def _nothing(*_: object, **__: object) -> None:
    """It does not get through."""


def test_groups_that_nobody_can_be_seated_for_keep_no_others_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many they are: a call has room for so many."""
    monkeypatch.setattr(arbitration, "GROUPS_PER_CALL_MAX", 1)
    with moving_world(monkeypatch, HOME, configs=CONFIGS) as world:
        placed = ((0, (BrokerId(3), BrokerId(4))),)
        answer = world.submit(
            CreateTopics((NewTopic(name="other", assignments=placed, configs=CONFIGS),))
        )
        assert isinstance(answer, TopicResults) and not answer.topics[0].error_code
        world.until(lambda: world.leader_of("other") != 0)
        for one in (4, 5):
            world.hosts[one].kill()
        world.submit(BeginGrant(world.known.group, world.known.grant))
        world.until(lambda: world.known.is_fenced)
        topics = world.broker(3).controller.cluster.topics
        world.until(lambda: topics["other"].partitions[0].voters == (3,))
        assert world.known.is_fenced


def test_who_is_elected_and_can_commit_nothing_does_not_wait_for_the_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All three had to acknowledge, and the leader is gone: a majority is enough for the next one
    once the lost one has been silent for long enough, though nothing else makes it look again."""
    configs = (("voters.shrink.enable", "true"), ("min.insync.replicas", "3"))
    with moving_world(monkeypatch, HOME, configs=configs) as world:
        monkeypatch.setattr(Hosting, "adjust_led_groups", lambda self: None)
        for one in world.hosts:
            monkeypatch.setattr(world.broker(one)._upkeep, "_adjust", lambda: None)
        world.hosts[world.leader_of(TOPIC)].kill()
        world.until(lambda: world.any_replica(lambda one: one.is_leader))
        world.advance(SILENT_MS + 2 * ATTENDANCE_INTERVAL_MS)
        assert world.any_leader(lambda one: one.is_serving)
