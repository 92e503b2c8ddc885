"""How long acks=all waits for an observer that stands in, in simulated histories.

Why:    a late promotion is no better than an operator.
How:    `python -m bench.promotion [RUNS]`: the 2.5-data-centre example, which is two voters in each
        of two regions, an observer beside each two, min.insync.replicas=3 and the controller's
        third voter at a third site; round trips, jitter and loss of the profile `atl`
        (`chaos.hosts`). A region loses its power, west and east by turns, at another moment of each
        history. Virtual time, so the machine does not matter; one JSON line, in ms:

            silence    from the loss until a remaining broker counts both lost voters as silent: two
                       election time-outs, and the messages in flight
            resumed    from then until the first acks=all of a batch sent after the loss

        The simulator checks its promises in every history; the first violation ends the run.
Source: decision 0025; reference/regions-rtt.md, the profiles."""

import json
import logging
import random
import sys
from dataclasses import replace
from math import ceil
from pathlib import Path

from chaos.hosts import ATLANTIC

from strandline.model.ids import BrokerId, GroupId
from strandline.replication.settings import ReplicationSettings
from strandline.simulation.invariants.facts import Acknowledged
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.scenarios.scenario_file import load_scenario
from strandline.simulation.world.scheduler import US_PER_MS
from strandline.simulation.world.world import World

SCENARIO = (
    Path(__file__).parents[1] / "tests/simulation/scenarios/observers-stand-in-for-a-region.toml"
)
RUNS = 40
GROUP = GroupId(1)
LOST_AT_MS, AWAY_MS, ACTIVE_MS = 4_000, 14_000, 20_000
MOMENTS_MS = 1_000
LOOK_MS = 5
REGIONS = ("west", "east")


def scenario_of(seed: int) -> Scenario:
    """One history: its seed says when, and what chance does on the way."""
    base = load_scenario(SCENARIO)
    assert base.faults is not None
    one_way = dict(base.one_way_us)
    for (one, other), round_trip_ms in ATLANTIC.round_trip_ms.items():
        one_way[one, other] = one_way[other, one] = int(round_trip_ms * US_PER_MS / 2)
    lost = REGIONS[seed % 2]
    fault_seed = next(
        one for one in range(100) if random.Random(one).choice(sorted({*base.regions})) == lost
    )
    at_ms = LOST_AT_MS + random.Random(seed).randrange(MOMENTS_MS)
    return replace(
        base,
        seed=seed,
        one_way_us=one_way,
        jitter_ratio=ATLANTIC.jitter_ms / min(ATLANTIC.round_trip_ms.values()),
        loss_ratio=ATLANTIC.loss,
        settings=ReplicationSettings(),
        groups=base.groups[:1],
        producers=tuple(replace(one, interval_ms=20) for one in base.producers[:1]),
        faults=(replace(base.faults[0], at_ms=at_ms, duration_ms=AWAY_MS, seed=fault_seed),),
        active_ms=ACTIVE_MS,
    )


class Watch:
    """Notes when the loss came, when it was noticed, and when writes went on."""

    def __init__(self, world: World, lost: str) -> None:
        self.lost_ms = self.silent_ms = self.resumed_ms = 0
        self._world = world
        voters = world.cluster.plan(GROUP).voters
        self._voters = [one for one in voters if world.scenario.region_of(one) == lost]
        self._left = [
            one for one in world.scenario.brokers if world.scenario.region_of(one) != lost
        ]
        self._acknowledged = world.checker.acknowledged
        world.checker.acknowledged = self._on_acknowledged  # type: ignore[method-assign]
        world.scheduler.after(LOST_AT_MS * US_PER_MS, self._look)

    @property
    def _now_ms(self) -> int:
        return self._world.scheduler.now_us // US_PER_MS

    def _look(self) -> None:
        if not self.lost_ms and all(self._world.hosts[one].program is None for one in self._voters):
            self.lost_ms = self._now_ms
        if self.lost_ms and any(self._takes_for_silent(one) for one in self._left):
            self.silent_ms = self._now_ms
            return
        self._world.scheduler.after(LOOK_MS * US_PER_MS, self._look)

    def _takes_for_silent(self, broker: BrokerId) -> bool:
        member = self._world.hosts[broker].program
        return member is not None and not any(
            member.replication.is_peer_alive(one) for one in self._voters
        )

    def _on_acknowledged(self, fact: Acknowledged) -> None:
        self._acknowledged(fact)
        if fact.group == GROUP and self.silent_ms and not self.resumed_ms:
            self.resumed_ms = self._now_ms


def measure(runs: int) -> dict[str, dict[str, int]]:
    """The figures of so many histories."""
    silence, resumed = [], []
    for seed in range(1, runs + 1):
        scenario = scenario_of(seed)
        world = World(scenario)
        watch = Watch(world, REGIONS[seed % 2])
        violation = world.run()
        assert violation is None, f"seed {seed}: {violation}"
        assert watch.lost_ms < watch.silent_ms < watch.resumed_ms, f"seed {seed}: nothing came"
        silence.append(watch.silent_ms - watch.lost_ms)
        resumed.append(watch.resumed_ms - watch.silent_ms)
    return {"silence_ms": _spread(silence), "resumed_ms": _spread(resumed)}


def _spread(times: list[int]) -> dict[str, int]:
    ordered = sorted(times)
    return {
        name: ordered[ceil(share * len(ordered)) - 1]
        for name, share in (("p50", 0.5), ("p95", 0.95), ("max", 1.0))
    }


def main() -> None:
    """One line."""
    logging.getLogger("strandline").addHandler(logging.NullHandler())
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    print(json.dumps({"scenario": "promotion", "runs": runs, **measure(runs)}), flush=True)


if __name__ == "__main__":
    main()
