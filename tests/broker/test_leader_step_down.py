"""Leaders that need the controller and cannot reach it hand over to a voter that can.

Source: decision 0025; found by `make chaos SEED=90`."""

from collections.abc import Callable

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_disk_room import fill
from tests.broker.test_maintenance import KEY, alter
from tests.broker.test_promotion import constraints, kill, start, watched_world, writes
from tests.broker.voters_world import votes

from strandline.broker.groups.leader_step_down import LeaderStepDown
from strandline.controller.commands import CreateTopics, NewTopic, TopicResults
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.replication.replica.replica import Replica

REGIONS = {1: "west", 2: "east", 3: "east", 4: "east", 5: "east"}
VOTERS, OBSERVERS = (3, 4, 5), (2,)


def both_ways(one: int, other: int) -> tuple[tuple[BrokerId, BrokerId], ...]:
    return (BrokerId(one), BrokerId(other)), (BrokerId(other), BrokerId(one))


def lead(world: MovingWorld, broker: int) -> None:
    """Let this broker lead."""
    while world.leader_of(TOPIC) != broker:
        world.until(lambda: world.leader_of(TOPIC) != 0)
        leader = world.replicas_of(TOPIC)[world.leader_of(TOPIC)]
        leader.transfer_leadership(BrokerId(broker))
        world.advance(500)


def test_a_leader_that_lacks_a_voter_and_cannot_reach_the_controller_lets_another_lead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All three have to acknowledge, one is lost, and an observer may stand in for it."""
    policy = constraints({"east": 3}, {"east": 1})
    with watched_world(
        monkeypatch, VOTERS, OBSERVERS, policy=policy, min_insync=3, regions=REGIONS
    ) as world:
        lead(world, 4)
        ways = both_ways(4, world.controller_leader())
        for way in ways:
            world.fabric.cut(*way)
        kill(world, 5)
        world.until(lambda: votes(world, 2, 3, 4))
        writes(world)
        assert world.leader_of(TOPIC) == 3
        for way in ways:
            world.fabric.heal(*way)
        start(world, 5)
        world.finish(*VOTERS, observers=OBSERVERS)


def make_controller(world: MovingWorld, broker: int) -> None:
    """Let this broker lead the controller's group."""
    while world.controller_leader() != broker:
        world.until(lambda: world.controller_leader() != 0)
        world.controller(world.controller_leader()).transfer_leadership(BrokerId(broker))
        world.advance(500)


def miss_an_answer(world: MovingWorld, leader: int) -> None:
    """A command of the topic's leader was not answered."""
    broker = world.broker(leader)
    group = world.known.group

    async def work() -> None:
        LeaderStepDown(broker.replication, broker.controller).on_unanswered(group)

    world.do(leader, work())


def handed_over(monkeypatch: pytest.MonkeyPatch) -> list[BrokerId]:
    """The brokers that leaders hand over to, from now on."""
    targets: list[BrokerId] = []
    honest: Callable[..., BrokerId] = Replica.hand_over

    def hand_over(self: Replica, avoid: set[BrokerId]) -> BrokerId:
        targets.append(honest(self, avoid))
        return targets[-1]

    monkeypatch.setattr(Replica, "hand_over", hand_over)
    return targets


def test_where_the_controller_is_only_slow_nobody_gives_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with moving_world(monkeypatch, VOTERS) as world:
        lead(world, 4)
        targets = handed_over(monkeypatch)
        miss_an_answer(world, 4)
        world.advance(5_000)
        assert targets == [] and world.leader_of(TOPIC) == 4


def test_who_hears_no_controller_either_is_not_handed_the_leadership(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The topic's voters and the controller's hear only each other."""
    with moving_world(monkeypatch, (4, 5)) as world:
        lead(world, 4)
        for one in VOTERS[1:]:
            for other in (1, 2, 3):
                for way in both_ways(one, other):
                    world.fabric.cut(*way)
        world.advance(3_000)
        targets = handed_over(monkeypatch)
        miss_an_answer(world, 4)
        world.advance(5_000)
        assert set(targets) == {NO_BROKER} and world.leader_of(TOPIC) == 4


def test_a_leader_that_is_the_controller_by_now_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with moving_world(monkeypatch, (1, 4, 5)) as world:
        make_controller(world, 1)
        lead(world, 1)
        targets = handed_over(monkeypatch)
        miss_an_answer(world, 1)
        world.advance(5_000)
        assert targets == [] and world.leader_of(TOPIC) == 1


@pytest.mark.parametrize("since_ms", [0, 200, 700, 900, 1_200])
def test_where_the_controller_has_just_died_nobody_gives_way(
    monkeypatch: pytest.MonkeyPatch, since_ms: int
) -> None:
    """A broker that heard it until now reports so, and the next one is about to be elected."""
    with moving_world(monkeypatch, (4, 5)) as world:
        lead(world, 4)
        targets = handed_over(monkeypatch)
        world.hosts[world.controller_leader()].kill()
        world.advance(since_ms)
        miss_an_answer(world, 4)
        world.advance(5_000)
        assert targets == [] and world.leader_of(TOPIC) == 4


def test_where_another_controller_is_about_to_serve_nobody_gives_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The way to the one before was cut; the next one answers, and has no lease yet."""
    with moving_world(monkeypatch, (4, 5)) as world:
        lead(world, 4)
        first = world.controller_leader()
        targets = handed_over(monkeypatch)
        for way in both_ways(4, first):
            world.fabric.cut(*way)
        world.advance(300)
        world.hosts[first].kill()
        world.until(lambda: world.controller_leader() not in (0, first))
        miss_an_answer(world, 4)
        world.advance(5_000)
        assert targets == [] and world.leader_of(TOPIC) == 4


@pytest.mark.parametrize("spared", [3, 5])
def test_who_is_in_maintenance_is_not_handed_what_another_voter_could_lead(
    monkeypatch: pytest.MonkeyPatch, spared: int
) -> None:
    """It would give it back at once, to the one that cannot reach the controller."""
    with moving_world(monkeypatch, VOTERS) as world:
        lead(world, 4)
        make_controller(world, 1)
        alter(world, BrokerId(spared), KEY, "-1")
        world.advance(1_000)
        for way in both_ways(4, 1):
            world.fabric.cut(*way)
        targets = handed_over(monkeypatch)
        miss_an_answer(world, 4)
        world.advance(10_000)
        (other,) = set(VOTERS) - {4, spared}
        assert [one for one in targets if one != NO_BROKER] == [other]
        assert world.leader_of(TOPIC) == other


def test_who_is_in_maintenance_leads_where_nobody_else_reaches_the_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with moving_world(monkeypatch, (4, 5)) as world:
        lead(world, 4)
        make_controller(world, 1)
        alter(world, BrokerId(5), KEY, "-1")
        world.advance(1_000)
        for way in both_ways(4, 1):
            world.fabric.cut(*way)
        targets = handed_over(monkeypatch)
        miss_an_answer(world, 4)
        world.until(lambda: 5 in targets)
        world.until(lambda: world.leader_of(TOPIC) == 5)


def test_how_full_disks_were_then_is_nothing_that_the_next_controller_goes_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The controller alone remembers room, for it asks again and again."""
    with moving_world(monkeypatch, (2, 3)) as world:
        make_controller(world, 1)
        lead(world, 2)
        fill(world, 3, 99)
        miss_an_answer(world, 2)
        world.advance(1_000)
        fill(world, 3, 0)
        make_controller(world, 2)
        topic = NewTopic(name="late", partitions=1, replication_factor=5)
        answer = world.submit(CreateTopics((topic,)), at=2)
        assert isinstance(answer, TopicResults) and not answer.topics[0].error_code, answer
