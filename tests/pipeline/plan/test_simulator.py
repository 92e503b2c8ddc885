"""The plan's verdicts against whole brokers in the simulator: led or not, records kept or not."""

from dataclasses import replace

import pytest
from tests.pipeline.plan.described import plan_of
from tests.simulation.plain_scenario import plain_scenario, run_until_led, started

from strandline.model.cluster import Roles
from strandline.model.ids import BrokerId, GroupId
from strandline.pipeline.plan.assumptions import Assumptions
from strandline.pipeline.plan.behaviour import Around, Behaviour
from strandline.pipeline.plan.domains import loss_domains
from strandline.pipeline.plan.trials import Trials
from strandline.placement.topology.described import decode_cluster
from strandline.placement.topology.universe import Universe
from strandline.simulation.scenarios.scenario import ProducerPlan
from strandline.simulation.world.world import World

MS = 1_000
PRODUCER = ProducerPlan("p", GroupId(1), -1, False, 20, 200)
CLUSTER = "brokers: [{id: 1, region: east}, {id: 2, region: west}, {id: 3, region: south}, " \
    "{id: 4, region: east}, {id: 5, region: west}]"  # fmt: skip


def behaviour_of(voters: int) -> Behaviour:
    """Of a partition on brokers 1 to `voters`, with `min.insync.replicas` 2."""
    cluster = decode_cluster(CLUSTER)
    plan = plan_of(cluster, [f"rf{voters},min-insync=2"], Assumptions(), partitions=1)
    (placed,) = plan.alternatives
    universe = Universe(plan.candidates)
    domains = loss_domains(universe, plan.assumptions.losses.by_level())
    roles = Roles(tuple(BrokerId(one) for one in range(1, voters + 1)))
    around = Around.of(domains, universe, placed.rules)
    request = placed.alternative.request
    assert Trials(plan).topics
    return Behaviour(roles, universe, request, rules=placed.rules, around=around)


def world_of(voters: int) -> World:
    """The same partition on whole brokers, written with acks=all."""
    scenario = plain_scenario(brokers=voters, producers=(PRODUCER,))
    world = started(replace(scenario, active_ms=60_000))
    (producer,) = world.producers
    producer.start()
    wait(world, 500)
    return world


def wait(world: World, ms: int) -> None:
    world.scheduler.run_until(world.scheduler.now_us + ms * MS)


def kill(world: World, lost: set[int]) -> dict[int, int]:
    """Stop these brokers for good; {broker: where its log ended}."""
    ends = {int(one.self_id): int(one.log_end_offset) for one in world.cluster.replicas()}
    for one in lost:
        host = world.hosts[BrokerId(one)]
        host.on_down = None
        host.kill()
    return {one: ends[one] for one in lost}


def mask(brokers: set[int]) -> int:
    return sum(1 << one - 1 for one in brokers)


@pytest.mark.parametrize(
    ("voters", "lost"),
    [
        (3, {2}), (3, {1, 3}), (4, {4}), (4, {1, 2}),
        (5, {1, 4}), (5, {2, 5}), (5, {1, 2, 3}), (5, {3}),
    ],
)  # fmt: skip
def test_a_partition_is_led_after_a_loss_as_the_plan_says(voters: int, lost: set[int]) -> None:
    behaviour = behaviour_of(voters)
    answer = behaviour.after(behaviour.own, mask(lost))
    world = world_of(voters)
    kill(world, lost)
    is_led = run_until_led(world, limit_ms=20_000) is not None
    assert is_led == answer.is_writable == answer.is_readable
    assert world.checker.violation is None


@pytest.mark.parametrize(
    ("voters", "behind", "emptied"),
    [(3, {3}, {1, 2}), (3, {3}, {1}), (5, {4, 5}, {1, 2, 3}), (5, {4, 5}, {1, 2})],
)
def test_records_are_lost_with_disks_as_the_plan_says(
    voters: int, behind: set[int], emptied: set[int]
) -> None:
    """Some are away while records are acknowledged by a bare quorum; then disks are lost."""
    behaviour = behaviour_of(voters)
    danger = behaviour.danger(behaviour.own, mask(emptied))
    world = world_of(voters)
    ends = kill(world, behind)
    assert run_until_led(world, limit_ms=20_000) is not None
    wait(world, 2_000)
    acknowledged = max(int(one.committed_end) for one in world.cluster.replicas())
    ends |= kill(world, set(range(1, voters + 1)) - behind)
    left = [end for one, end in ends.items() if one not in emptied]
    assert acknowledged > 50
    assert (max(left) < acknowledged) == danger.is_short
