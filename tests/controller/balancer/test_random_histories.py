"""Whatever happens, in whatever order: persons' moves are left alone, and in the end all is right.

Source: docs/decisions/0010-the-balancer.md (invariants)."""

import random

import pytest
from tests.controller.balancer.balancer_world import CLUSTER, LOST_AFTER_MS, BalancerWorld, ids

from strandline.controller.commands import AlterReassignments, ReportVoters, WantedReplicas
from strandline.model.cluster import Partition

REGIONS = ("east", "west", "south", "north")
POLICIES = (
    "survive: region",
    "survive: [region, 2 brokers]",
    "survive: 2 brokers",
    '{"rules":[{"count":2,"where":[{"label":"region","op":"in","values":["east","west"]}]}]}',
    '{"rules":[{"count":1,"where":[{"label":"region","op":"in","values":["south"]}]},{"count":2}]}',
    '{"leaders":{"prefer":[[{"label":"region","op":"in","values":["north"]}]]}}',
    '{"residency":{"deny":[{"label":"region","op":"in","values":["north"]}]}}',
    None,
)
TOPICS = ("one", "two", "plain")
EVENTS = 120


class History:
    """A random history of a cluster."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        regions = [self.rng.choice(REGIONS) for _ in range(self.rng.randint(4, 8))]
        self.world = BalancerWorld(regions)
        for name in TOPICS:
            count = self.rng.choice((2, 3))
            replicas = self.rng.sample(range(1, len(regions) + 1), count)
            self.world.topic(name, partitions=4, replicas=replicas)
        self.count = len(regions)

    def event(self) -> None:
        """Something happens."""
        world, rng = self.world, self.rng
        broker = rng.randint(1, self.count)
        match rng.randrange(13):
            case 0 | 1:
                world.down(broker)
            case 2 | 3 | 4:
                world.up(broker)
            case 5:
                world.alter(rng.choice(TOPICS[:2]), "placement.policy", rng.choice(POLICIES))
            case 6:
                world.relabel(broker, rng.choice((*REGIONS, "")))
            case 7:
                self.by_hand()
            case 8 if self.count < 10:
                self.count += 1
                world.add_broker(self.count, rng.choice(REGIONS))
            case 9:
                on = rng.choice(("true", "true", "false"))
                world.alter("", "balancer.enable", on, scope=CLUSTER)
            case 10:
                on = rng.choice(("true", "false"))
                world.alter("", "balancer.best.effort.enable", on, scope=CLUSTER)
            case _:
                world.wait(rng.choice((1_000, 30_000, LOST_AFTER_MS)))
        self.leaders()

    def by_hand(self) -> None:
        """A person moves something, or stops it."""
        replicas = ids(*self.rng.sample(range(1, self.count + 1), self.rng.randint(1, 4)))
        wanted = WantedReplicas(
            topic=self.rng.choice(TOPICS),
            index=self.rng.randrange(4),
            replicas=self.rng.choice((None, replicas)),
        )
        self.world.run(AlterReassignments((wanted,)))

    def leaders(self) -> None:
        """Some of the groups that move go on."""
        world = self.world
        if self.rng.random() < 0.4:
            world.grant()
        for group in list(world.state.cluster.moving):
            one = world.state.cluster.groups[group]
            if one.pending and self.rng.random() < 0.5:
                world.run(ReportVoters(group, one.version + 1, one.pending))

    def round(self) -> None:
        """A round of the balancer, which leaves alone what persons move and what was granted."""
        groups = self.world.state.cluster.groups

        def fixed() -> dict[int, Partition]:
            return {
                group: one
                for group, one in groups.items()
                if one.pending or (one.is_moving and not one.by_balancer)
            }

        before = fixed()
        self.world.round()
        assert {group: groups[group] for group in before} == before


@pytest.mark.parametrize("seed", range(40))
def test_in_the_end_everything_is_where_it_should_be(seed: int) -> None:
    history = History(seed)
    world = history.world
    for _ in range(EVENTS):
        history.event()
        history.round()
    world.alter("", "balancer.enable", "true", scope=CLUSTER)
    world.up(*range(1, history.count + 1))
    world.wait(LOST_AFTER_MS)
    world.rest(rounds=100)
    waits = world.waits()
    assert set(waits) <= {"cannot-be-met", "no-label"}, waits
    assert not world.state.cluster.moving
    for name in TOPICS:
        for one in world.state.cluster.topics[name].partitions:
            assert len(set(one.replicas)) == len(one.replicas) > 0
