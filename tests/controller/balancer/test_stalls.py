"""Moves that have begun and stand still say why.

Source: docs/decisions/0011-the-life-of-a-broker.md ("Why it takes long")."""

import pytest
from tests.controller.balancer.balancer_world import CLUSTER, BalancerWorld, ids
from tests.controller.balancer.test_decommission import decommission

from strandline.controller.balancer.stalls import stalls
from strandline.controller.decision import leaving_of
from strandline.model.ids import NO_BROKER, BrokerId

REGIONS = ("east", "east", "west", "west")
HALTED = "copies-halted"
SENT, TAKEN = "leader.replication.throttled.rate", "follower.replication.throttled.rate"


class World(BalancerWorld):
    """Broker 1 leaves; its three partitions move from it to broker 2, and broker 3 leads them."""

    def __init__(self) -> None:
        super().__init__(REGIONS)
        self.topic(partitions=3, replicas=(1, 3, 4))
        assert decommission(self, 1) == (0, "")
        targets = [set(move.command.target) for move in self.round()]
        assert targets == [set(ids(2, 3, 4))] * 3

    def told(self, leader: int = 3) -> list[tuple[str, str, int, dict[BrokerId, int]]]:
        """(code, words, partitions, {who leaves: how many of them it holds})"""
        found = stalls(
            self.state.cluster,
            up=self.condition.up,
            leader_of=lambda _: BrokerId(leader),
            leaving=leaving_of(self.state.cluster),
        )
        return [(*key, one.count, dict(one.leaving)) for key, one in found.found.items()]


def test_what_goes_on_is_no_stall() -> None:
    world = World()
    assert world.told() == []
    world.alter("", "moves.bytes.per.s", "1000", scope=CLUSTER)
    assert world.told() == []


@pytest.mark.parametrize(
    ("scope", "key", "leader", "said"),
    [
        ("", "moves.bytes.per.s", 3, "moves.bytes.per.s=0"),
        ("", "moves.cross.region.bytes.per.s", 3, "moves.cross.region.bytes.per.s=0"),
        ("", "moves.cross.region.bytes.per.s", 1, ""),
        ("3", SENT, 3, f"{SENT}=0 of broker 3"),
        ("4", SENT, 3, ""),
        ("", SENT, 3, f"{SENT}=0 of broker 3"),
        ("2", TAKEN, 3, f"{TAKEN}=0 of broker 2"),
        ("4", TAKEN, 3, ""),
    ],
)
def test_copies_that_a_key_halts_are_told_with_it(
    scope: str, key: str, leader: int, said: str
) -> None:
    world = World()
    assert world.alter(scope, key, "0", scope=CLUSTER) == (0, "")
    text = f"copies are halted ({said})"
    assert world.told(leader) == ([(HALTED, text, 3, {BrokerId(1): 3})] if said else [])


def test_who_is_granted_its_vote_has_copied_all() -> None:
    world = World()
    world.alter("", "moves.bytes.per.s", "0", scope=CLUSTER)
    world.grant()
    assert world.told() == []


def test_a_new_broker_or_a_leader_that_is_down_is_named() -> None:
    world = World()
    world.alter("", "moves.bytes.per.s", "0", scope=CLUSTER)
    world.down(3)
    on_it = {BrokerId(1): 3}
    assert world.told() == [("leader-down", "broker 3, which led, is down", 3, on_it)]
    assert world.told(NO_BROKER) == [("leader-down", "no leader", 3, on_it)]
    world.down(2)
    assert world.told() == [
        ("new-replica-down", "broker 2, which gets a replica, is down", 3, on_it)
    ]
    world.grant()
    assert [code for code, *_ in world.told()] == ["new-replica-down"]
