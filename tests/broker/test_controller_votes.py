"""The vote of a seed that is decommissioned moves to another broker, whatever dies meanwhile.

Source: KIP-853; Raft thesis 4.2.1 and 4.3; docs/decisions/0048-votes-that-move.md."""

from collections.abc import Callable, Iterator

import pytest
from tests.broker.cluster_world import VOTERS, ClusterWorld, joined
from tests.broker.test_lost_disk import lose_disk
from tests.broker.test_unregistering import unregister

from strandline.broker.operations.broker_registration import CHECK_INTERVAL_MS
from strandline.config.broker_life import DECOMMISSION
from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    CreateTopics,
    NewTopic,
    Refused,
    ResourceChanges,
    ResourceType,
    TopicResults,
)
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.replication.liveness import sessions
from strandline.replication.wire import ABILITIES, Ability

FIVE = (1, 2, 3, 4, 5)


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """Three voters of the controller, and brokers 4 and 5."""
    with joined(ClusterWorld(FIVE)) as world:
        yield world


class OneController:
    """Looks after every event: never two leaders of one epoch, never two that serve."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self._led: dict[int, int] = {}

    def look(self) -> None:
        serving = []
        for one in running(self._world):
            replica = self._world.controller(one)
            if replica.is_leader:
                assert self._led.setdefault(replica.epoch, one) == one, "two leaders of an epoch"
            if replica.can_serve_reads:
                serving.append(one)
        assert len(serving) <= 1, serving

    def until(self, condition: Callable[[], bool]) -> None:
        def looked() -> bool:
            self.look()
            return condition()

        self._world.until(looked)


def running(world: ClusterWorld) -> list[int]:
    found = [one for one, host in world.hosts.items() if host.program is not None]
    return [one for one in found if 0 in world.broker(one).replication.replicas]


def leader(world: ClusterWorld) -> int:
    """The controller, 0 for none."""
    return next((one for one in running(world) if world.controller(one).can_serve_reads), 0)


def voters(world: ClusterWorld) -> set[tuple[int, ...]]:
    """What the running brokers hold to be the voters, old and new ones."""
    known = [world.controller(one).configuration for one in running(world)]
    return {tuple(sorted(one.all_voters)) for one in known}


def decommission(world: ClusterWorld, *brokers: int, at: int) -> None:
    change = (ConfigChange(DECOMMISSION, ConfigOperation.SET, "true"),)
    rows = (ResourceChanges(ResourceType.BROKER, str(one), change) for one in brokers)
    world.submit(AlterConfigs(tuple(rows)), at=at)


@pytest.mark.parametrize("is_leader", [False, True])
def test_a_seed_gives_its_vote_away_and_leaves_for_good(
    cluster: ClusterWorld, is_leader: bool
) -> None:
    cluster.create_topic("before", replicas=2)
    first = leader(cluster)
    out = first if is_leader else next(one for one in VOTERS if one != first)
    decommission(cluster, out, at=4)
    stay = {*VOTERS, 4} - {out}
    watch = OneController(cluster)
    watch.until(lambda: voters(cluster) == {tuple(sorted(stay))})
    watch.until(lambda: leader(cluster) in stay)
    cluster.until(lambda: not any(out in one.hosts for one in groups(cluster)))
    cluster.hosts[out].kill()
    cluster.advance(5_000)
    assert unregister(cluster, out, at=5) == (0, None)
    # A majority of the new voters goes on without one of them.
    lost = next(one for one in sorted(stay) if one == leader(cluster))
    cluster.hosts[lost].kill()
    watch.until(lambda: leader(cluster) in stay - {lost})
    create(cluster, "after", at=5)
    watch.until(lambda: {"before", "after"} <= set(cluster.broker(5).services.cluster.topics))


def test_a_vote_goes_to_a_machine_that_has_none_yet() -> None:
    machines = {1: "a", 2: "b", 3: "c", 4: "a", 5: "c"}
    with joined(ClusterWorld(FIVE, machines=machines)) as world:
        world.advance(5_000)  # Until both could take it.
        decommission(world, 3, at=4)
        OneController(world).until(lambda: voters(world) == {(1, 2, 5)})


def test_a_seed_that_was_unregistered_while_it_was_not_heard_ends_though_it_hears_the_others(
    cluster: ClusterWorld,
) -> None:
    """The others go on sending to a seed, so its silence does not tell it."""
    out = next(one for one in VOTERS if one != leader(cluster))
    others = [one for one in FIVE if one != out]
    decommission(cluster, out, at=4)
    cluster.until(lambda: voters(cluster) == {tuple(sorted({*VOTERS, 4} - {out}))})
    for one in others:
        cluster.fabric.cut(BrokerId(out), BrokerId(one))
    cluster.until(lambda: unregister(cluster, out, at=5) == (0, None))
    for one in others:
        cluster.fabric.heal(BrokerId(out), BrokerId(one))
    cluster.advance(2 * CHECK_INTERVAL_MS)
    assert "was unregistered" in cluster.failures.get(out, "it goes on")


@pytest.mark.parametrize("dies", [False, True])
def test_a_machine_with_two_votes_and_the_leader_gives_both_away(dies: bool) -> None:
    """Two of three voters leave together, which is a majority; one of them may die meanwhile."""
    machines = {1: "a", 2: "a", 3: "b", 4: "c", 5: "d"}
    with joined(ClusterWorld(FIVE, machines=machines)) as world:
        world.advance(5_000)
        watch = OneController(world)
        if leader(world) == 3:
            world.hosts[3].kill()
            watch.until(lambda: leader(world) in (1, 2))
            world.hosts[3].start()
            world.until_started(3)
            world.advance(10_000)
        first = leader(world)
        assert first in (1, 2)
        decommission(world, 1, 2, at=4)
        if dies:
            world.hosts[first].kill()
        watch.until(lambda: {(3, 4, 5)} == voters(world) and leader(world) in (3, 4, 5))
        if dies:
            world.hosts[first].start()
            world.until_started(first)
            watch.until(lambda: voters(world) == {(3, 4, 5)})
        for one in (1, 2):
            world.hosts[one].kill()
        world.advance(5_000)
        assert unregister(world, 1, at=5) == unregister(world, 2, at=5) == (0, None)


def groups(world: ClusterWorld):  # type: ignore[no-untyped-def]
    return world.broker(5).services.cluster.groups.values()


def create(world: ClusterWorld, name: str, *, at: int) -> None:
    """Create a topic; a leader that steps down meanwhile cannot say whether it did."""
    topic = NewTopic(name=name, partitions=1, replication_factor=1, configs=())
    answer = world.submit(CreateTopics((topic,)), at=at)
    if isinstance(answer, Refused):
        assert answer.error_code == Error.REQUEST_TIMED_OUT
        world.until(lambda: leader(world) != 0)
        answer = world.submit(CreateTopics((topic,)), at=leader(world))
    assert isinstance(answer, TopicResults)
    assert answer.topics[0].error_code in (Error.NONE, Error.TOPIC_ALREADY_EXISTS)


@pytest.mark.parametrize("out_leads", [False, True])
@pytest.mark.parametrize("victim", ["out", "into", "leader"])
@pytest.mark.parametrize("stage", ["asked", "joint", "final"])
@pytest.mark.parametrize("is_disk_lost", [False, True])
def test_a_broker_that_dies_at_any_stage_costs_no_decision(
    cluster: ClusterWorld, stage: str, victim: str, out_leads: bool, is_disk_lost: bool
) -> None:
    cluster.create_topic("before", replicas=2)
    first = leader(cluster)
    out = first if out_leads else next(one for one in VOTERS if one != first)
    dies = {"out": out, "into": 4, "leader": first}[victim]
    decommission(cluster, out, at=5)
    watch = OneController(cluster)

    def is_reached() -> bool:
        known = [cluster.controller(one).configuration for one in running(cluster)]
        if stage == "joint":
            return any(one.is_joint for one in known)
        return stage == "asked" or any(not one.is_joint and 4 in one.voters for one in known)

    watch.until(is_reached)
    if is_disk_lost:
        lose_disk(cluster, dies)
    else:
        cluster.hosts[dies].kill()
    # The others need not wait for it, and decide.
    watch.until(lambda: leader(cluster) not in (0, dies))
    create(cluster, "meanwhile", at=leader(cluster))
    cluster.hosts[dies].start()
    cluster.until_started(dies)
    stay = {*VOTERS, 4, 5} - {out}
    watch.until(lambda: len(now := voters(cluster)) == 1 and len(*now) == 3 and set(*now) <= stay)
    (now,) = voters(cluster)
    watch.until(lambda: not any(cluster.controller(one).raft.has_lost_state for one in FIVE))
    lost = next(one for one in now)
    cluster.hosts[lost].kill()
    watch.until(lambda: leader(cluster) not in (0, lost))
    at = leader(cluster)
    create(cluster, "after", at=at)
    topics = set(cluster.broker(at).services.cluster.topics)
    assert {"before", "meanwhile", "after"} <= topics


def moved(world: ClusterWorld, *outs: int) -> None:
    """Each of them gives its vote away."""
    for out in outs:
        decommission(world, out, at=5)
    world.until(lambda: len(now := voters(world)) == 1 and not set(outs) & set(*now))
    world.until(lambda: leader(world) not in (0, *outs))
    world.advance(1_000)  # The last configuration is on every disk.


def test_a_new_voter_that_loses_its_disk_elects_no_controller_that_lacks_a_decision(
    cluster: ClusterWorld,
) -> None:
    moved(cluster, 1)
    assert voters(cluster) == {(2, 3, 4)}
    cluster.hosts[1].kill()
    cluster.hosts[3].kill()
    cluster.advance(3_000)
    create(cluster, "decided", at=5)
    cluster.hosts[2].kill()
    lose_disk(cluster, 4)
    for one in (3, 4):
        cluster.hosts[one].start()
    cluster.advance(15_000)
    assert cluster.controller(4).raft.has_lost_state
    assert not any(cluster.controller(one).is_leader for one in (3, 4, 5))
    cluster.hosts[2].start()
    cluster.until_started(2, 3, 4)
    assert "decided" in cluster.broker(3).services.cluster.topics
    cluster.until(lambda: not cluster.controller(4).raft.has_lost_state)


@pytest.mark.parametrize("is_disk_lost", [False, True])
def test_an_old_seed_with_its_old_list_neither_votes_nor_founds_a_cluster(
    cluster: ClusterWorld, is_disk_lost: bool
) -> None:
    moved(cluster, 1)
    for one in FIVE:
        cluster.hosts[one].kill()
    if is_disk_lost:
        lose_disk(cluster, 1)
    cluster.hosts[1].start()
    cluster.advance(20_000)
    assert not cluster.controller(1).is_leader
    # With one of the new voters it makes no majority, though both were seeds.
    cluster.hosts[2].start()
    cluster.advance(20_000)
    assert leader(cluster) == 0
    assert not any(cluster.controller(one).is_leader for one in (1, 2))
    cluster.hosts[4].start()
    cluster.until_started(1, 2, 4)
    assert leader(cluster) in (2, 4) and voters(cluster) == {(2, 3, 4)}


def test_the_last_seed_of_the_list_keeps_its_vote_and_erased_seeds_found_no_second_cluster() -> (
    None
):
    with joined(ClusterWorld((1, 2, 3, 4, 5, 6))) as world:
        moved(world, 1, 2)
        decommission(world, 3, at=5)
        world.advance(5_000)
        (now,) = voters(world)
        assert now == (3, 4, 5)
        for one in (1, 2):
            lose_disk(world, one)
        world.advance(5_000)
        for one in (1, 2):
            world.hosts[one].start()
        watch = OneController(world)
        end = world.scheduler.now_us + 20_000_000
        watch.until(lambda: world.scheduler.now_us > end)
        assert voters(world) == {now} and leader(world) in now


def test_erased_seeds_wait_while_the_last_one_is_down() -> None:
    with joined(ClusterWorld((1, 2, 3, 4, 5, 6))) as world:
        moved(world, 1, 2)
        for one in (1, 2):
            lose_disk(world, one)
        for one in (3, 4, 5, 6):
            world.hosts[one].kill()
        for one in (1, 2):
            world.hosts[one].start()
        world.advance(30_000)
        assert leader(world) == 0
        for one in (3, 4, 5, 6):
            world.hosts[one].start()
        world.until_started()
        assert voters(world) == {(3, 4, 5)}


def test_a_broker_of_an_earlier_release_gets_no_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = ABILITIES & ~Ability.CONTROLLER_VOTES
    monkeypatch.setattr(sessions, "ABILITIES", earlier)
    with joined(ClusterWorld((1, 2, 3, 4))) as world:
        decommission(world, 3, at=1)
        world.advance(5_000)
        assert voters(world) == {VOTERS}
        monkeypatch.setattr(sessions, "ABILITIES", ABILITIES)
        world.hosts[4].kill()
        world.advance(3_000)
        world.hosts[4].start()
        world.until(lambda: voters(world) == {(1, 2, 4)})


def test_without_a_broker_for_it_the_vote_stays_until_there_is_one() -> None:
    with joined(ClusterWorld((1, 2, 3, 4))) as world:
        world.hosts[4].kill()
        world.advance(3_000)
        decommission(world, 3, at=1)
        world.advance(5_000)
        assert voters(world) == {VOTERS}
        world.hosts[4].start()
        world.until(lambda: voters(world) == {(1, 2, 4)})


def test_voters_that_are_not_on_their_list_find_each_other_after_a_power_cut() -> None:
    """They alone are up: the seeds on their lists are gone, or down."""
    with joined(ClusterWorld((1, 2, 3, 4, 5, 6))) as world:
        moved(world, 1, 2)
        for one in world.hosts:
            world.hosts[one].fail_power()
        world.advance(100)
        for one in (4, 5):
            world.hosts[one].start()
        world.until_started(4, 5)
        assert leader(world) in (4, 5)
        create(world, "later", at=leader(world))


def test_a_new_broker_finds_a_controller_that_is_not_on_its_list() -> None:
    brokers = (1, 2, 3, 4, 5, 6, 7)
    with joined(ClusterWorld(brokers)) as world:
        world.hosts[7].kill()
        world.advance(5_000)
        assert unregister(world, 7) == (0, None)
        moved(world, 1, 2)
        assert voters(world) == {(3, 4, 5)}
        for one in (1, 2, 3):
            world.hosts[one].kill()
        world.advance(5_000)
        world.hosts[3].start()
        world.until_started(3)
        assert leader(world) in (4, 5)
        for one in (1, 2):
            assert unregister(world, one, at=5) == (0, None)
        lose_disk(world, 7)
        world.directory_ids[7] = "another"
        world.hosts[7].start()
        world.until_started(7)
        seven = BrokerId(7)
        world.until(lambda: seven in world.broker(4).controller.cluster.brokers)
        assert world.failures == {}
