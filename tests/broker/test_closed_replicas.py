"""Brokers that are heard and of no use: a replica that cannot be opened, a broker that hears no
peer.

Source: decision 0020; reliability reference 1b."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.broker.moving_world import TOPIC, moving_world
from tests.broker.test_damaged_logs import IN_RECORDS, rot
from tests.broker.voters_world import CONFIGS, votes

from strandline.base.network import Lane
from strandline.broker.groups.hosting import Hosting
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId, first_epoch
from strandline.network.calls import CallError, Calls
from strandline.replication.host.inbound import Inbound

MARK_MS = 6_000
"""What is durable is noted every 5 s."""


def test_of_two_voters_the_other_goes_on_where_one_finds_its_log_damaged_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No voter is elected without it, and it waits for a leader to copy from."""
    with moving_world(monkeypatch, (4, 5), configs=CONFIGS) as world:
        world.until(lambda: len(world.acked) > 0)
        damaged = 9 - world.leader_of(TOPIC)
        world.advance(MARK_MS)
        replica = world.replicas_of(TOPIC)[damaged]
        for broker in (4, 5):
            world.hosts[broker].kill()
        rot(world, damaged, replica, at=IN_RECORDS)
        for broker in (4, 5):
            world.hosts[broker].start()
        world.until_started(4, 5)
        assert damaged not in world.replicas_of(TOPIC)
        before = len(world.acked)
        world.until(lambda: len(world.acked) > before)
        world.until(lambda: votes(world, 4, 5))
        world.finish(4, 5)


@pytest.mark.parametrize("mute", [3, 5])
def test_who_is_heard_and_hears_nothing_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch, mute: int
) -> None:
    """What is sent to it is dropped, as by a rule of a firewall, and what it sends arrives: an
    observer, or one of the voters."""
    with moving_world(monkeypatch, (4, 5), configs=CONFIGS) as world:
        world.balance((4, 5), (3,))
        world.finish(4, 5, observers=(3,))
        receive, call = Inbound.on_message, Calls.call

        def drop(self: Inbound, peer: BrokerId, lane: Lane, message: memoryview) -> None:
            if self._self_id != mute:
                receive(self, peer, lane, message)

        async def ask(self: Calls, peer: BrokerId, *rest: Any, **others: Any) -> bytes:
            if peer == mute:
                raise CallError("no answer in time")
            return await call(self, peer, *rest, **others)

        for broker in (4, 5):
            world.hosts[broker].kill()
        monkeypatch.setattr(Inbound, "on_message", drop)
        monkeypatch.setattr(Calls, "call", ask)
        for broker in {4, mute}:
            if not world.hosts[broker].is_running:
                world.hosts[broker].start()
        before = len(world.acked)
        world.until(lambda: len(world.acked) > before)
        assert world.leader_of(TOPIC) == 4


@pytest.mark.parametrize("grant", [1, 2])
def test_what_was_fenced_for_a_later_grant_than_is_known_is_not_removed(grant: int) -> None:
    """A broker that replays a removal late may have got the replica back, and fenced, since: the
    fence would go with the replica."""
    group, others = GroupId(7), tuple(map(BrokerId, (1, 2, 3)))
    forgotten: list[GroupId] = []
    partition = Partition(TOPIC, 0, group, others, grant=1)
    hosting: Any = SimpleNamespace(
        _controller=SimpleNamespace(cluster=SimpleNamespace(groups={group: partition})),
        _self_id=BrokerId(4),
        _look_at=lambda group: None,
        _replication=SimpleNamespace(
            removal=SimpleNamespace(remove=lambda group, *_: forgotten.append(group))
        ),
    )
    replica: Any = SimpleNamespace(
        group=group,
        name="moved-0",
        epoch=first_epoch(grant),
        configuration=SimpleNamespace(version=0),
        log=SimpleNamespace(directory="logs/moved-0.7"),
    )
    is_let_go = Hosting._close_absent(hosting, replica)
    assert is_let_go == (grant == 1) == bool(forgotten)
