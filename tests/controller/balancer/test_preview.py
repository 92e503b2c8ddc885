"""What a policy would move is what it moves then.

Source: docs/decisions/0010-the-balancer.md."""

import random
from uuid import UUID

import pytest
from tests.controller.balancer.balancer_world import CLUSTER, BalancerWorld
from tests.controller.balancer.test_random_histories import POLICIES, REGIONS

from strandline.controller.balancer.preview import LOOKS_MAX, Preview, preview
from strandline.controller.balancer.round import Move, Settings
from strandline.controller.records import (
    Assignment,
    BrokerRegistered,
    ConfigsChanged,
    TopicCreated,
)
from strandline.controller.state import ControllerState
from strandline.model.cluster import Roles
from strandline.model.ids import GroupId

FIVE = ("east", "east", "west", "west", "south")
POLICY = "placement.policy"
WEST = '{"rules":[{"where":[{"label":"region","op":"in","values":["west"]}],"count":2}]}'
TOPIC = "flights"
SOFT = (
    '{"rules":[{"where":[{"label":"region","op":"in","values":["west"]}],"level":"soft"}]}',
    '{"survive":[{"region":1}],"leaders":{"prefer":[[{"label":"region","op":"in",'
    '"values":["south"]}]]}}',
    '{"rules":[{"count":1,"where":[{"label":"region","op":"in","values":["east","west"]}]},'
    '{"count":2,"where":[{"label":"region","op":"in","values":["north"]}],"level":"soft"}]}',
)
Moves = list[tuple[str, int, Roles, Roles, str]]


def previewed(world: BalancerWorld, policy: str | None) -> tuple[Preview, ControllerState]:
    """What would follow, and the state then; the world's own stays as it is."""
    state = world.replayed()
    state.replay(ConfigsChanged("topic", TOPIC, {POLICY: policy}))
    settings = Settings.of(state.cluster.cluster_configs)
    return preview(state, world.condition, settings, topic=TOPIC), state


def asked_for(world: BalancerWorld, made: list[Move]) -> Moves:
    """The moves of a round, as a preview tells them."""
    groups = world.state.cluster.groups
    return [
        (
            groups[one.command.group].topic,
            groups[one.command.group].index,
            Roles(one.command.replicas, one.command.observers),
            Roles(one.command.target, one.command.target_observers),
            one.code,
        )
        for one in made
    ]


def moved(world: BalancerWorld) -> Moves:
    """What the balancer moves until it rests, each round done before the next."""
    moves: Moves = []
    world.settle()
    for _ in range(60):
        made = world.round()
        moves += asked_for(world, made)
        world.settle()
        if not made:
            return moves
    raise AssertionError("it moves and moves")


def steps(found: Preview) -> Moves:
    return [(one.topic, one.partition, one.before, one.after, one.code) for one in found.steps]


@pytest.mark.parametrize("seed", range(12))
def test_the_preview_is_what_then_happens(seed: int) -> None:
    rng = random.Random(seed)
    regions = [rng.choice(REGIONS) for _ in range(rng.randint(4, 8))]
    world = BalancerWorld(regions)
    world.alter("", "balancer.moves.max", str(rng.choice((1, 3, 10))), scope=CLUSTER)
    for name in (TOPIC, "other", "plain"):
        replicas = rng.sample(range(1, len(regions) + 1), rng.choice((2, 3)))
        world.topic(name, partitions=6, replicas=replicas)
    world.alter("other", POLICY, rng.choice(POLICIES[:3]))
    if rng.random() < 0.5:
        world.rest()
    if rng.random() < 0.4:
        world.down(rng.randint(1, len(regions)))
        world.wait(60_000)
    for policy in rng.sample(POLICIES[:-1], 3):
        found, state = previewed(world, policy)
        if world.alter(TOPIC, POLICY, policy)[0]:
            continue
        assert found.is_whole and steps(found) == moved(world)
        then = world.state.cluster.topics[TOPIC].partitions
        assert [one.roles for one in state.cluster.topics[TOPIC].partitions] == [
            one.roles for one in then
        ]
        codes = {key[0] for key in found.waits.found}
        assert codes <= set(world.waits())


def as_brokers_tell(state: ControllerState) -> ControllerState:
    """What a client puts together: nobody tells it in which order topics were created."""
    told = ControllerState()
    for broker in state.cluster.brokers.values():
        told.replay(
            BrokerRegistered(
                id=broker.id,
                incarnation="",
                directory_id="",
                rpc=broker.rpc,
                kafka=broker.kafka,
                labels=broker.labels,
            )
        )
    told.replay(ConfigsChanged("cluster", "", dict(state.cluster.cluster_configs)))
    for name, topic in sorted(state.cluster.topics.items()):
        first = told.cluster.next_group
        rows = tuple(
            Assignment(GroupId(first + number), one.replicas, one.observers)
            for number, one in enumerate(topic.partitions)
        )
        told.replay(TopicCreated(name, UUID(int=first), rows, dict(topic.configs)))
    return told


def moved_one_by_one(world: BalancerWorld, rng: random.Random) -> Moves:
    """What the balancer moves until it rests, whichever copies are done first."""
    moves: Moves = []
    for _ in range(1_000):
        made = world.round()
        moves += asked_for(world, made)
        moving = sorted(world.state.cluster.moving)
        if not made and not moving:
            return moves
        for group in rng.sample(moving, rng.randint(min(1, len(moving)), len(moving))):
            world.finish(group)
    raise AssertionError("it moves and moves")


@pytest.mark.parametrize("seed", range(100))
def test_the_order_in_which_copies_are_done_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    regions = [rng.choice(REGIONS) for _ in range(rng.randint(4, 8))]
    world = BalancerWorld(regions)
    world.alter("", "balancer.moves.max", str(rng.choice((1, 2, 4))), scope=CLUSTER)
    for name in rng.sample((TOPIC, "a", "z"), 3):
        replicas = rng.sample(range(1, len(regions) + 1), rng.choice((2, 3)))
        world.topic(name, partitions=rng.choice((2, 6, 9)), replicas=replicas)
    world.alter("a", POLICY, rng.choice(POLICIES[:3]))
    world.alter("", "balancer.best.effort.enable", rng.choice(("true", "false")), scope=CLUSTER)
    world.rest()
    match rng.randrange(4):
        case 0:
            world.down(rng.randint(1, len(regions)))
            world.wait(60_000)
        case 1:
            world.lose(rng.randint(1, len(regions)))
    for policy in rng.sample((*POLICIES[:-1], *SOFT), 3):
        if world.alter(TOPIC, POLICY, policy)[0]:
            continue
        state = as_brokers_tell(world.state)
        settings = Settings.of(state.cluster.cluster_configs)
        found = preview(state, world.condition, settings, topic=TOPIC)
        happened = moved_one_by_one(world, rng)
        assert (
            found.is_whole
            and found.is_by_turns
            and sorted(steps(found), key=str) == sorted(happened, key=str)
        )
        then = world.state.cluster.topics[TOPIC].partitions
        assert [one.replicas for one in state.cluster.topics[TOPIC].partitions] == [
            one.replicas for one in then
        ]


def test_copies_are_told_by_who_gets_them_and_nothing_changes() -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=4, replicas=(1, 3, 5))
    version = world.state.cluster.version
    found, _ = previewed(world, WEST)
    assert [(one.coming, one.code) for one in found.steps] == [((4,), "policy-broken")] * 4
    assert not found.waits.found
    assert world.state.cluster.version == version and world.look().moves == []


def test_an_order_that_changes_copies_nothing() -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=2, replicas=(1, 2, 3, 4, 5))
    prefer = '{"leaders":{"prefer":[[{"label":"region","op":"in","values":["south"]}]]}}'
    found, _ = previewed(world, prefer)
    led = [(one.after.voters[0], one.coming, one.code) for one in found.steps]
    assert led == [(5, (), "leaders")] * 2


def test_what_would_wait_says_for_whom() -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=3, replicas=(1, 2, 3))
    world.down(5)
    world.wait(60_000)
    found, _ = previewed(world, "survive: region")
    (((code, text), one),) = found.waits.found.items()
    assert not found.steps and (code, one.count) == ("cannot-be-met", 3)
    assert "down" in text


def test_what_moves_already_arrives_first() -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=2, replicas=(1, 2))
    world.alter(TOPIC, POLICY, WEST)
    world.round()
    world.grant()
    found, state = previewed(world, WEST)
    assert not found.steps and found.arriving == 2
    assert {one.replicas for one in state.cluster.topics[TOPIC].partitions} == {(3, 4), (4, 3)}


def test_a_preview_that_is_cut_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=4, replicas=(1, 2, 3))
    world.topic("other", partitions=20, replicas=(1, 2, 3))
    world.lose(1)
    world.alter("", "balancer.moves.max", "2", scope=CLUSTER)
    assert LOOKS_MAX > 1_000
    monkeypatch.setattr("strandline.controller.balancer.preview.LOOKS_MAX", 24 * 4)
    found, _ = previewed(world, WEST)
    assert not found.is_whole and found.is_by_turns and len(found.steps) == 8


def test_many_partitions_are_told_to_the_end_in_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=200, replicas=(1, 2))
    world.alter("", "balancer.moves.max", "1", scope=CLUSTER)
    monkeypatch.setattr("strandline.controller.balancer.preview.LOOKS_MAX", 200 * 50)
    found, _ = previewed(world, WEST)
    moved = {one.partition for one in found.steps}
    assert found.is_whole and not found.is_by_turns and len(moved) == 200
    monkeypatch.undo()
    assert previewed(world, WEST)[0].is_by_turns
