"""A group is led again soon after its leader died, at any distance (design section 5)."""

import pytest
from tests.simulation.plain_scenario import plain_scenario, run_until_led, started

from strandline.simulation.world.world import World

SEEDS = range(1, 9)


def run_failover(world: World, *, restarts: bool) -> int:
    """Kill the leader of group 1; the milliseconds until every group is led again."""
    world.scheduler.run_until(world.scheduler.now_us + 3_000_000)
    leader = next(r.self_id for r in world.cluster.leading_replicas() if r.group == 1)
    host = world.hosts[leader]
    if not restarts:
        host.on_down = None
    host.kill()
    took_ms = run_until_led(world, limit_ms=60_000)
    assert took_ms is not None
    assert world.checker.violation is None
    for other in world.hosts.values():
        other.kill()  # Tasks that have not begun end with their processes.
    return took_ms


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("one_way_ms", "loss_ratio", "median_ms", "worst_ms"),
    [(1, 0.0, 900, 1_300), (45, 0.0, 1_200, 2_000), (200, 0.01, 3_500, 10_000)],
)
def test_every_group_is_led_again_soon_after_a_kill(
    one_way_ms: int, loss_ratio: float, median_ms: int, worst_ms: int, *, restarts: bool
) -> None:
    took_ms = sorted(
        run_failover(
            started(
                plain_scenario(
                    seed=seed,
                    brokers=5,
                    groups=5,
                    one_way_us=one_way_ms * 1_000,
                    loss_ratio=loss_ratio,
                )
            ),
            restarts=restarts,
        )
        for seed in SEEDS
    )
    assert took_ms[len(took_ms) // 2] <= median_ms, took_ms
    assert took_ms[-1] <= worst_ms, took_ms


def test_leaders_stay_at_a_round_trip_of_400_ms_with_one_percent_loss() -> None:
    world = started(plain_scenario(brokers=5, groups=5, one_way_us=200_000, loss_ratio=0.01))
    elections = world.checker.election_count
    world.scheduler.run_until(world.scheduler.now_us + 120_000_000)
    assert world.checker.election_count == elections
    assert world.checker.violation is None


def test_the_only_voter_of_a_group_leads_again_as_soon_as_it_is_back() -> None:
    world = started(plain_scenario(brokers=1, groups=20))
    (host,) = world.hosts.values()
    host.kill()
    world.scheduler.run_until_true(lambda: host.is_up, limit_us=world.scheduler.now_us + 60_000_000)
    took_ms = run_until_led(world, limit_ms=10_000)
    assert took_ms is not None and took_ms < world.scenario.settings.election_timeout_ms / 4
