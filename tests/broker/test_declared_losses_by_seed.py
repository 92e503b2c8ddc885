"""Three of five voters are declared lost and return at random times, while the survivors lose
power, too (decision 0027). A failing seed can be replayed."""

import random

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_broker_in_a_cluster import fetch
from tests.broker.test_declared_losses import CONFIGS, ask, cut, heal, until_more_is_acked

from strandline.model.ids import grant_of

HOME = (1, 2, 3, 4, 5)
LEFT, LOST = (1, 2), (3, 4, 5)
STEP_MS = 250
STEPS = 120
SEEDS = range(4)


class LossScenario:
    """What happens to one cluster. Of the controller's voters 1 and 2 are left."""

    def __init__(self, world: MovingWorld, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.leaders: dict[int, set[int]] = {}
        self.before: set[bytes] = set()
        self.down: dict[int, int] = {}

    def run(self) -> None:
        self.lose()
        returns = {one: self.rng.randrange(4, STEPS) for one in LOST}
        faults = {self.rng.randrange(4, STEPS): self.rng.choice(LEFT) for _ in range(3)}
        for step in range(STEPS):
            self.world.advance(self.rng.randrange(1, 2 * STEP_MS))
            self.watch()
            if self.needs_declaration():
                self.declare(set(LOST) - {one for one, at in returns.items() if at <= step})
            for one, at in returns.items():
                if at == step:
                    self.world.hosts[one].start()
            if step in faults and self.are_well():
                self.world.hosts[faults[step]].fail_power()
                self.down[faults[step]] = step + self.rng.randrange(2, 12)
            self.lift(step)
        self.lift(STEPS)
        self.end()

    def lose(self) -> None:
        """Some of those who are left are cut off while the others write."""
        world, rng = self.world, self.rng
        alone = rng.choice((LEFT, LEFT, LEFT[:1], LEFT[1:]))
        others = tuple(one for one in HOME if one not in alone)
        if rng.random() < 0.8:
            cut(world, alone, others)
            world.until(lambda: world.leader_of(TOPIC) in others)
        before = len(world.acked)
        count = rng.randrange(1, 20)
        world.until(lambda: len(world.acked) > before + count)
        for one in LOST:
            world.hosts[one].fail_power()
        world.advance(100)
        heal(world, alone, others)

    def are_well(self) -> bool:
        """Whether all who are left run, and know the topic."""
        started = all(self.world.starts[one].done() for one in LEFT)
        return not self.down and started and set(LEFT) <= self.world.states.keys()

    def needs_declaration(self) -> bool:
        if not self.are_well():
            return False
        known = self.world.known
        is_waiting = not known.losses or (known.is_declared and known.is_fenced)
        return is_waiting and not self.world.leader_of(TOPIC)

    def declare(self, lost: set[int]) -> None:
        """Say so, if it is taken; it is refused while somebody is there who would do."""
        if len(lost) < 3 and not self.world.known.losses:
            return
        if not lost or self.world._controller_known_at() == 0:
            return
        found = ask(self.world, broker_ids=sorted(lost), validate_only=True)
        if found.error_code == 0:
            ask(self.world, broker_ids=sorted(lost), logs=found.logs)
            self.before = set(self.world.acked)

    def watch(self) -> None:
        """One leader in each epoch."""
        for one, replica in self.world.replicas_of(TOPIC).items():
            if replica.is_leader:
                self.leaders.setdefault(replica.epoch, set()).add(one)

    def lift(self, step: int) -> None:
        for one, until in list(self.down.items()):
            if until <= step or step == STEPS:
                self.world.hosts[one].start()
                del self.down[one]

    def end(self) -> None:
        world = self.world
        for one in HOME:
            if world.hosts[one].program is None:
                world.hosts[one].start()
        world.until_started(*HOME)
        world.until(lambda: world.is_settled(*HOME) and not world.known.acting)
        until_more_is_acked(world)
        world.until(lambda: world.is_settled(*HOME))
        assert world.violations == []
        world.until(lambda: world.leader_of(TOPIC) != 0)
        assert all(len(each) == 1 for each in self.leaders.values()), self.leaders
        values = fetch(world, TOPIC, at=world.leader_of(TOPIC))
        assert len(values) == len(set(values))
        gone = set(world.acked) - set(values)
        losses = world.known.losses
        assert gone <= self.before
        if gone:
            assert min(world.offsets[one] for one in gone) >= min(one.committed for one in losses)
        for one in HOME:
            world.until(lambda one=one: world.replicas_of(TOPIC)[one].high_watermark >= len(values))
            assert fetch(world, TOPIC, at=one)[: len(values)] == values


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_else_is_lost_whatever_happens(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with moving_world(monkeypatch, HOME, configs=CONFIGS) as world:
        world.until(lambda: len(world.acked) > 0)
        story = LossScenario(world, seed)
        story.run()
        assert world.known.losses
        assert {grant_of(one.epoch) for one in world.replicas_of(TOPIC).values()} == {
            world.known.grant
        }
