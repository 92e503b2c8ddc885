"""The controller grants a group without a quorum a leader. Source: decisions 0016 and 0020."""

import pytest
from tests.broker.moving_world import TOPIC, moving_world
from tests.broker.test_balancing import TOPIC_SCOPE, alter
from tests.broker.test_lost_disk import lose_disk
from tests.broker.voters_world import CONFIGS, HOME, votes

from strandline.broker.groups import arbitration
from strandline.broker.groups.hosting import Hosting
from strandline.broker.groups.moving import WATCH_INTERVAL_MS
from strandline.broker.groups.voter_reconciliation import (
    SILENT_MS,
)
from strandline.controller.arbitration import grant_progress
from strandline.controller.commands import BeginGrant, CreateTopics, NewTopic, TopicResults
from strandline.model.ids import BrokerId, first_epoch
from strandline.replication.liveness.fencing import Fencing


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
    """No replica serves meanwhile: one that answers the fence is appointed, and notified, at
    once."""
    monkeypatch.setattr(arbitration, "LOOK_INTERVAL_MS", 5_000)
    with moving_world(monkeypatch, (4, 5), configs=CONFIGS) as world:
        world.until(lambda: len(world.acked) > 0)
        world.hosts[4].kill()
        world.until(lambda: world.known.grant == 1)
        world.advance(2_000)
        assert world.leader_of(TOPIC) == 5
        assert world.any_leader(lambda one: one.epoch >= first_epoch(1))


def test_of_two_voters_the_other_goes_on_where_the_leader_comes_back_without_its_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is heard, and cannot vote: no election succeeds, and the remaining voter has
    everything."""
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
    """No survey asks again, so the report would count for ever."""
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
    """A fenced member stands for no election, and a leader may change nothing."""
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
    monkeypatch.setattr(grant_progress, "APPOINTMENT_MS", 200)
    tell = Fencing.appoint
    with moving_world(monkeypatch, (4, 5), configs=CONFIGS) as world:
        world.until(lambda: len(world.acked) > 0)

        def lose_leader() -> BrokerId:
            leader = BrokerId(world.leader_of(TOPIC))
            monkeypatch.setattr(Fencing, "appoint", _nothing)
            world.hosts[leader].kill()
            return leader

        leader = lose_leader()
        world.advance(60_000)
        grants = world.known.grant
        assert 4 < grants < 10
        monkeypatch.setattr(Fencing, "appoint", tell)
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


def test_groups_that_nobody_can_be_appointed_for_keep_no_others_waiting(
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
            monkeypatch.setattr(world.broker(one)._maintenance, "_adjust", lambda: None)
        world.hosts[world.leader_of(TOPIC)].kill()
        world.until(lambda: world.any_replica(lambda one: one.is_leader))
        world.advance(SILENT_MS + 2 * WATCH_INTERVAL_MS)
        assert world.any_leader(lambda one: one.is_serving)
