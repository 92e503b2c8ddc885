"""The controller raises alarms for partitions without a leader, and for no others.

Source: design section 8; docs/operating/outages.md."""

import errno
import logging
from collections.abc import Collection

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_outages import REGIONS, described

from strandline.broker.partitions import known_leader
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.raft.core import Raft
from strandline.replication.host.group_spec import GroupSpec
from strandline.replication.host.opening import Opening
from strandline.simulation.network.network import _Outgoing as SimulatedOutgoing
from strandline.simulation.world.scheduler import US_PER_MS

HOME = (3, 4, 5)
BEGUN = "no-leader: no reachable leader: 1 partition, moved-0"


class LoggedAlarms:
    """What the controller's log says of it."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "strandline.controller")
        self._log = caplog

    @property
    def lines(self) -> list[str]:
        return [one for one in self._log.messages if one.startswith("no-leader")]


@pytest.fixture
def alarms(caplog: pytest.LogCaptureFixture) -> LoggedAlarms:
    return LoggedAlarms(caplog)


def leaders_named(world: MovingWorld, *brokers: int) -> set[int]:
    """The leaders that these brokers name."""
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    answers = [world.ask(at, asked, MetadataResponse, 12) for at in brokers]
    return {one.topics[0].partitions[0].leader_id for one in answers}


def bring_back(world: MovingWorld, brokers: Collection[int], home: tuple[int, ...]) -> None:
    """These start again, and all is as it was."""
    for one in brokers:
        world.hosts[one].start()
    world.until_started(*brokers)
    world.finish(*home)


def test_of_three_voters_the_last_one_lives_and_leads_nobody(
    monkeypatch: pytest.MonkeyPatch, alarms: LoggedAlarms
) -> None:
    with moving_world(monkeypatch, HOME) as world:
        world.until(lambda: len(world.acked) > 0)
        for lost in (4, 5):
            world.hosts[lost].kill()
        world.until(lambda: alarms.lines != [])
        assert alarms.lines == [BEGUN]
        shown = [one for one in described(world).happenings if one.kind == "no-leader"]
        assert [f"{one.kind}: {one.text}" for one in shown] == [BEGUN]
        for lost in (4, 5):
            world.hosts[lost].start()
            world.until_started(lost)
        world.until(lambda: len(alarms.lines) > 1)
        assert alarms.lines[1:] == ["no-leader: all have a leader"]
        world.finish(*HOME)


def test_who_has_given_up_is_named_as_the_leader_by_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither by itself nor by a broker without a replica: clients sent there would retry for
    ever."""
    home = (2, *HOME)
    with moving_world(monkeypatch, home) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        lost = [one for one in home if one != leader][-2:]
        for one in lost:
            world.hosts[one].kill()
        left = sorted(set(home) - set(lost))
        assert leader in left
        world.advance(15_000)
        assert leaders_named(world, 1, *left) == {NO_BROKER}
        world.hosts[1].kill()
        world.hosts[1].start()
        world.until_started(1)
        world.advance(5_000)
        assert leaders_named(world, 1) == {NO_BROKER}
        for one in lost:
            world.hosts[one].start()
            world.until_started(one)
        world.finish(*home)


@pytest.mark.parametrize("home", [HOME, (3, 4)])
def test_a_leader_that_is_back_alone_leads_no_more_for_anybody(
    monkeypatch: pytest.MonkeyPatch, home: tuple[int, ...]
) -> None:
    """It starts anew, and knows nothing of what the others take it to lead, nor, at first, of
    brokers that are no seeds."""
    with moving_world(monkeypatch, home) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        for one in home:
            world.hosts[one].kill()
        world.advance(1_000)
        world.hosts[leader].start()
        world.until_started(leader)
        world.advance(10_000)
        others = {1, 2, 3, 4, 5} - set(home)
        assert leaders_named(world, leader, *others) == {NO_BROKER}
        bring_back(world, set(home) - {leader}, home)


def test_who_has_given_up_in_a_cut_tells_so_in_whichever_direction_heals_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each broker connects to the other, and one of the two may be later by some tries."""
    established = SimulatedOutgoing._on_established
    is_late = False

    def late(self: SimulatedOutgoing, pipe: object) -> None:
        if is_late and self._network.self_id == 3:
            self._process.after(300 * US_PER_MS, lambda: established(self, pipe))
        else:
            established(self, pipe)

    monkeypatch.setattr(SimulatedOutgoing, "_on_established", late)
    with moving_world(monkeypatch, (3, 4)) as world:
        world.until(lambda: len(world.acked) > 0)
        if world.leader_of(TOPIC) != 3:
            world.replicas_of(TOPIC)[4].transfer_leadership(BrokerId(3))
            world.until(lambda: world.leader_of(TOPIC) == 3)
        world.hosts[4].kill()
        cut = [(BrokerId(3), BrokerId(one)) for one in (1, 2, 5)]
        cut += [(there, here) for here, there in cut]
        for one, other in cut:
            world.fabric.cut(one, other)
        world.advance(12_000)
        is_late = True
        for one, other in cut:
            world.fabric.heal(one, other)
        world.advance(10_000)
        assert leaders_named(world, 1, 2, 3, 5) == {NO_BROKER}
        bring_back(world, [4], (3, 4))


def test_a_leader_that_made_way_for_one_that_died_is_named_by_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with moving_world(monkeypatch, HOME) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        others = [one for one in HOME if one != leader]
        replica = world.replicas_of(TOPIC)[leader]
        replica.transfer_leadership(BrokerId(others[0]))
        world.until(lambda: not replica.is_leader, every_ms=1)
        for one in others:
            world.hosts[one].kill()
        world.advance(15_000)
        assert leaders_named(world, 1, 2, leader) == {NO_BROKER}
        bring_back(world, others, HOME)


def test_a_leader_that_was_announced_and_not_met_yet_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its first message to this replica is still on its way: it has voted, and no more."""
    with moving_world(monkeypatch, HOME) as world:
        world.until(lambda: len(world.acked) > 0)
        leader = world.leader_of(TOPIC)
        at = next(one for one in HOME if one != leader)
        services, replica = world.broker(at).services, world.replicas_of(TOPIC)[at]
        with monkeypatch.context() as not_met:
            not_met.setattr(Raft, "leader", NO_BROKER)
            assert known_leader(services, world.known) == (leader, replica.epoch)
        replica.on_election_timeout()
        assert known_leader(services, world.known) == (NO_BROKER, replica.epoch)
        world.until(lambda: known_leader(services, world.known)[0] != NO_BROKER)
        world.finish(*HOME)


def test_a_leader_that_only_the_controller_does_not_hear_leads(
    monkeypatch: pytest.MonkeyPatch, alarms: LoggedAlarms
) -> None:
    with moving_world(monkeypatch, (4, 5), REGIONS) as world:
        world.advance(20_000)
        controller = BrokerId(world.controller_leader())
        for one in map(BrokerId, (4, 5)):
            world.fabric.cut(one, controller)
            world.fabric.cut(controller, one)
        world.advance(15_000)
        before = len(world.acked)
        world.advance(20_000)
        assert world.controller_leader() == controller
        assert len(world.acked) > before
        assert [one.kind for one in described(world).happenings] == ["network-cut"]
        assert alarms.lines == []
        for one in map(BrokerId, (4, 5)):
            world.fabric.heal(one, controller)
            world.fabric.heal(controller, one)
        world.finish(4, 5)


def test_a_log_that_cannot_be_opened_has_no_leader(
    monkeypatch: pytest.MonkeyPatch, alarms: LoggedAlarms
) -> None:
    def unreadable(opening: Opening, spec: GroupSpec) -> None:
        raise OSError(errno.EIO, "unreadable")

    with moving_world(monkeypatch, (4,)) as world:
        world.until(lambda: len(world.acked) > 0)
        world.hosts[4].fail_power()
        world.advance(3_000)
        with monkeypatch.context() as patch:
            for name in ("open_one", "add"):
                honest = getattr(Opening, name)
                patch.setattr(
                    Opening,
                    name,
                    lambda self, spec, honest=honest: (
                        unreadable(self, spec)
                        if spec.name.startswith(TOPIC)
                        else honest(self, spec)
                    ),
                )
            world.hosts[4].start()
            world.until_started(4)
            world.until(lambda: alarms.lines != [])
        assert alarms.lines == [BEGUN]
        assert not any(one.kind == "broker" for one in described(world).happenings)
        world.hosts[4].kill()  # It is opened only by a process that is started anew.
        world.hosts[4].start()
        world.until_started(4)
        world.until(lambda: len(alarms.lines) > 1)
        world.finish(4)
