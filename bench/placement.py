"""The cost and evenness of placing 10,000 partitions of five replicas on 200 brokers.

Pure computation: CPU seconds of this process, no cluster."""

import random
import time
from collections import Counter
from collections.abc import Callable

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.policy.text import decode_policy
from strandline.placement.solver.request import Request
from strandline.placement.solver.solve import Solution, solve
from strandline.placement.topology.universe import Candidate

BROKERS = 200
PARTITIONS = 10_000

POLICIES = {
    "default": (5, "{}"),
    "region, zone, any two brokers": (3, "survive: [region, zone, any two brokers]"),
    "region and one more broker": (5, "survive: region and one more broker"),
    "two of five in one region": (
        3,
        "rules: [{count: 2, where: [{label: region, op: in, values: [r0]}]}, "
        "{count: 3, where: [{label: region, op: notIn, values: [r0]}]}]",
    ),
    "refused: region": (2, "survive: region"),
}
"""By name: regions, policy."""


def brokers(regions: int) -> list[Candidate]:
    """200 brokers over so many regions of three zones of seven racks."""
    return [
        Candidate(
            id=BrokerId(number),
            labels=Labels(
                region=f"r{number % regions}",
                zone=f"z{number // regions % 3}",
                rack=f"k{number // regions // 3 % 7}",
                host=f"h{number}",
            ),
        )
        for number in range(BROKERS)
    ]


def measure(say: Callable[..., None]) -> None:
    """Place by each policy; `say` prints a line of figures."""
    for name, (regions, text) in POLICIES.items():
        candidates = brokers(regions)
        request = Request(policy=decode_policy(text), default_voters=5)
        begin = time.process_time()
        found = solve(request, candidates, partitions=PARTITIONS, rng=random.Random(1))
        cpu_s = round(time.process_time() - begin, 2)
        if not isinstance(found, Solution):
            say(policy=name, cpu_s=cpu_s, refused=str(found))
            continue
        replicas = Counter(broker for one in found.partitions for broker in one.replicas)
        leaders = Counter(one.voters[0] for one in found.partitions)
        ids = [one.id for one in candidates]
        say(
            policy=name,
            cpu_s=cpu_s,
            voters=len(found.partitions[0].voters),
            replicas=[min(replicas[id] for id in ids), max(replicas.values())],
            leaders=[min(leaders[id] for id in ids), max(leaders.values())],
            searches=found.searches,
            is_proved=found.is_proved,
        )
