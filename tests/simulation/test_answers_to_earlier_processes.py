"""An answer to a broker's earlier process is none to the question of its next one.

The outage seed 623920 found it. One course of some hundred thousand leads there, and it goes stale
with whatever changes when messages come; so it is brought about here."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.simulation.plain_scenario import plain_scenario

from strandline.model.ids import CONTROLLER_GROUP, BrokerId
from strandline.network.calls import Calls
from strandline.replication.replica.replica import Replica
from strandline.simulation.world.bootstrap import bootstrap_cluster
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.world import World

LIMIT_MS = 5_000
SLOW = 5_000
"""A flush takes a second at least."""


def number_calls_as_an_earlier_process_did(patch: pytest.MonkeyPatch) -> None:
    """A broker takes an answer to its earlier process for one to its own question."""
    init = Calls.__init__

    def numbered(self: Calls, send: Any, *, first_number: int) -> None:
        init(self, send, first_number=1)

    patch.setattr(Calls, "__init__", numbered)


class Cluster:
    """Three brokers: the controller, one that starts anew, and a third."""

    def __init__(self, seed: int) -> None:
        self._world = world = World(replace(plain_scenario(seed=seed), has_brokers=True))
        world.cluster.start_brokers()
        bootstrap_cluster(world.cluster)
        brokers = world.scenario.brokers
        (self._controller,) = (one for one in brokers if self._log(one).is_leader)
        self._broker, self._third = (one for one in brokers if one != self._controller)
        for host in world.hosts.values():
            host.on_down = None

    def is_registered_after_all(self) -> bool:
        """Whether the broker is there in the end.

        It asks to be registered, dies before that is committed, starts again, and asks once more.
        What its first process asked for is committed and answered then, with the third's disk; its
        second question does not arrive, and the controller dies."""
        world, broker, controller = self._world, self._broker, self._controller
        host, disk = world.hosts[broker], world.hosts[self._third].disk
        host.kill()
        disk.faults.slow_factor = SLOW
        end = self._log(controller).log_end_offset
        host.start()
        self._run_until(lambda: self._log(controller).log_end_offset > end)
        host.kill()
        host.start()
        self._run_until(self._follows)
        world.fabric.cut(broker, controller)
        self._run_until(self._asks)
        assert self._log(controller).high_watermark == end
        self._run_until(lambda: self._log(controller).high_watermark > end)
        world.cluster.advance(50)
        world.hosts[controller].kill()
        disk.faults.slow_factor = 1
        world.cluster.advance(20_000)
        assert world.checker.violation is None
        is_there = self._member(broker).is_serving
        for one in world.hosts.values():
            one.kill()
        return is_there

    def _member(self, broker: BrokerId) -> BrokerMember:
        member = self._world.hosts[broker].program
        assert isinstance(member, BrokerMember)
        return member

    def _log(self, broker: BrokerId) -> Replica:
        return self._member(broker).replication.replicas[CONTROLLER_GROUP]

    def _follows(self) -> bool:
        log = self._member(self._broker).replication.replicas.get(CONTROLLER_GROUP)
        return log is not None and log.leader_id == self._controller

    def _asks(self) -> bool:
        waiting = self._member(self._broker).replication.calls._waiting
        return any(peer == self._controller for peer, _ in waiting.values())

    def _run_until(self, condition: Callable[[], bool]) -> None:
        limit_us = self._world.scheduler.now_us + LIMIT_MS * 1_000
        assert self._world.scheduler.run_until_true(condition, limit_us=limit_us)


SEEDS = range(1, 6)


@pytest.mark.simulation
@pytest.mark.parametrize("seed", SEEDS)
def test_a_broker_is_registered_though_its_earlier_process_is_answered(seed: int) -> None:
    assert Cluster(seed).is_registered_after_all()


@pytest.mark.simulation
@pytest.mark.parametrize("seed", SEEDS)
def test_one_that_takes_that_for_its_own_answer_waits_for_ever(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    number_calls_as_an_earlier_process_did(monkeypatch)
    assert not Cluster(seed).is_registered_after_all()
