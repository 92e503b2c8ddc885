"""Scenarios that leave nothing to chance but what a test asks for."""

from strandline.model.ids import BrokerId, GroupId
from strandline.replication.settings import ReplicationSettings
from strandline.simulation.scenarios.scenario import REGIONS, GroupPlan, ProducerPlan, Scenario
from strandline.simulation.world.world import World
from strandline.storage.config import LogConfig


def plain_scenario(
    *,
    seed: int = 1,
    brokers: int = 3,
    groups: int = 1,
    one_way_us: int = 500,
    near_one_way_us: int | None = None,
    jitter_ratio: float = 0.1,
    loss_ratio: float = 0.0,
    flush_us: tuple[int, int] = (200, 1_000),
    producers: tuple[ProducerPlan, ...] = (),
    settings: ReplicationSettings | None = None,
    log: LogConfig | None = None,
) -> Scenario:
    """Every broker holds a voter of every group; no faults, no load but `producers`. Within a
    region the way is `near_one_way_us`, if that is given."""
    near_us = one_way_us if near_one_way_us is None else near_one_way_us
    ids = tuple(BrokerId(number + 1) for number in range(brokers))
    return Scenario(
        seed=seed,
        regions=tuple(REGIONS[number % len(REGIONS)] for number in range(brokers)),
        one_way_us={(a, b): near_us if a == b else one_way_us for a in REGIONS for b in REGIONS},
        jitter_ratio=jitter_ratio,
        bytes_per_ms=100_000,
        loss_ratio=loss_ratio,
        drift_ppm=(0,) * brokers,
        groups=tuple(
            GroupPlan(GroupId(number + 1), ids, (), ids, min_insync=2) for number in range(groups)
        ),
        producers=producers,
        consumer_count=0,
        settings=settings or ReplicationSettings(),
        log=log or LogConfig(segment_bytes=64 * 1024),
        flush_us=flush_us,
        fault_weights={},
        fault_interval_ms=1_000,
        active_ms=2_000,
    )


def started(scenario: Scenario) -> World:
    """A world whose brokers are up and whose groups are all led."""
    world = World(scenario)
    world.cluster.start_brokers()
    assert run_until_led(world, limit_ms=30_000) is not None
    return world


def run_until_led(world: World, *, limit_ms: int) -> int | None:
    """Run until every group has a leader that serves; the milliseconds that took, or None."""
    begun_us = world.scheduler.now_us
    wanted = {plan.group for plan in world.scenario.groups}
    found = world.scheduler.run_until_true(
        lambda: {r.group for r in world.cluster.replicas() if r.is_serving} == wanted,
        limit_us=begun_us + limit_ms * 1_000,
    )
    return (world.scheduler.now_us - begun_us) // 1_000 if found else None
