"""Whatever happens, in whatever order: persons' moves are left alone, and in the end all is right.

Source: docs/decisions/0010-the-balancer.md (invariants)."""

import random

import pytest
from tests.controller.balancer.balancer_world import CLUSTER, LOST_AFTER_MS, BalancerWorld, ids
from tests.controller.balancer.disk_world import DISK_BYTES, GB, DiskWorld

from strandline.controller.balancer.disks import Disks
from strandline.controller.balancer.fullness import LASTING_MS, Fullness
from strandline.controller.commands import AlterReassignments, ReportVoters, WantedReplicas
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId

REGIONS = ("east", "west", "south", "north")
POLICIES = (
    "survive: region",
    "survive: [region, 2 brokers]",
    "survive: 2 brokers",
    '{"rules":[{"count":2,"where":[{"label":"region","op":"in","values":["east","west"]}]}]}',
    '{"rules":[{"count":1,"where":[{"label":"region","op":"in","values":["south"]}]},{"count":2}]}',
    '{"leaders":{"prefer":[[{"label":"region","op":"in","values":["north"]}]]}}',
    '{"residency":{"deny":[{"label":"region","op":"in","values":["north"]}]}}',
    '{"survive":[{"broker":1}],"rules":[{"role":"observer","count":1}]}',
    '{"rules":[{"count":2,"where":[{"label":"region","op":"in","values":["east","west"]}]},'
    '{"role":"observer","count":2,"where":[{"label":"region","op":"notIn","values":["east"]}]}]}',
    None,
)
TOPICS = ("one", "two", "plain")
EVENTS = 120
OPTIONAL = ("disk-high", "policy-dearer", "uneven")


class History:
    """A random history of a cluster."""

    def __init__(self, seed: int, world: type[BalancerWorld] = BalancerWorld) -> None:
        self.rng = random.Random(seed)
        regions = [self.rng.choice(REGIONS) for _ in range(self.rng.randint(4, 8))]
        self.world = world(regions)
        for name in TOPICS:
            count = self.rng.choice((2, 3))
            replicas = self.rng.sample(range(1, len(regions) + 1), count)
            self.world.topic(name, partitions=4, replicas=replicas)
        self.count = len(regions)

    def run(self, events: int = EVENTS) -> None:
        """So much happens, with a round of the balancer after each."""
        for _ in range(events):
            self.event()
            self.round()

    def rest(self) -> None:
        """Nothing happens any more: everybody is up, and the balancer moves what it wants."""
        world = self.world
        world.alter("", "balancer.enable", "true", scope=CLUSTER)
        world.up(*range(1, self.count + 1))
        world.wait(LOST_AFTER_MS)
        world.rest(rounds=100)

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
                world.disks.note_change(group, world.now_ms)

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
    history.run()
    history.rest()
    waits = world.waits()
    assert set(waits) <= {"cannot-be-met", "no-label"}, waits
    assert not world.state.cluster.moving
    for name in TOPICS:
        for one in world.state.cluster.topics[name].partitions:
            assert len(set(one.replicas)) == len(one.replicas) > 0


class DiskHistory(History):
    """The same, where logs have sizes and disks an end."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, DiskWorld)
        assert isinstance(self.world, DiskWorld)
        self.disks = self.world
        self.relieved_count = 0
        for group in self.world.state.cluster.groups:
            self.disks.log_bytes[group] = self.rng.choice((0, 1, 5, 10, 25)) * GB
        self.disks.wait(1_000)

    def event(self) -> None:
        """Something happens, or somebody else takes room on a disk, or logs grow."""
        disks, rng = self.disks, self.rng
        chance = rng.random()
        if chance < 0.15:
            broker = BrokerId(rng.randint(1, self.count))
            disks.foreign_bytes[broker] = rng.choice((0, 20, 50, 70, 84)) * GB
            disks.wait(rng.choice((1_000, LASTING_MS)))
        elif chance < 0.25:
            group = rng.choice(list(disks.log_bytes))
            disks.log_bytes[group] = rng.choice((0, 2, 8, 20)) * GB
            disks.wait(1_000)
        elif chance < 0.35:
            disks.copied = rng.random()
            disks.wait(1_000)
        else:
            super().event()
        if rng.random() < 0.02:  # Another controller knows only what it hears itself.
            disks.disks, disks.fullness, disks.reasons = Disks(), Fullness(), {}

    def round(self) -> None:
        """Nothing that could stay where it is puts a disk above the low mark, whatever moves."""
        groups = self.world.state.cluster.groups
        before = dict(groups)
        known = self.disks.disks.room(self.world.now_ms, low_percent=80)
        super().round()
        for group, one in groups.items():
            is_begun = one.target and one.target != before[group].target and one.by_balancer
            if not is_begun or self.world.reasons[group] not in OPTIONAL:
                continue
            self.relieved_count += self.world.reasons[group] == "disk-high"
            for broker in set(one.adding).difference(before[group].hosts):
                if known.knows(broker):
                    assert self.in_the_end(broker) <= DISK_BYTES * 80 // 100

    def in_the_end(self, broker: BrokerId) -> int:
        """What is on the disk when every copy has come and nothing has gone. Nobody copies a log
        of which nobody who is up has all."""
        held = 0
        for group, one in self.world.state.cluster.groups.items():
            is_whole = not self.world.alive.isdisjoint(one.roles.all)
            if broker in one.hosts:
                known = self.disks.log_bytes[group] if is_whole else 0
                held += max(known, self.disks.held(broker)[group])
        return held + self.disks.foreign_bytes.get(broker, 0)


@pytest.mark.parametrize("seed", range(40))
def test_no_disk_is_filled_by_what_relieves_another_and_in_the_end_nothing_moves(seed: int) -> None:
    history = DiskHistory(seed)
    world = history.disks
    history.run()
    history.rest()
    world.wait(LASTING_MS)
    world.rest(rounds=100)
    assert set(world.waits()) <= {"cannot-be-met", "no-label", "disk-high", "disk-full"}
    for broker in world.condition.overfull:
        assert any(f"disk of broker {broker} is" in text for _, text in world.look().waits.found)


def test_disks_were_relieved_in_these_histories() -> None:
    history = DiskHistory(1)
    history.run(10 * EVENTS)
    assert history.relieved_count > 10
