"""The cost of a plan: 100,000 simulated losses of 60 brokers in three regions, 60 partitions.

In processes of this machine: CPU seconds of all of them, and seconds on the clock. Without a
cluster and without Spark, whose start would come on top."""

import resource
import time
from collections.abc import Callable

from strandline.pipeline.plan.alternatives import parse_alternatives, place
from strandline.pipeline.plan.assumptions import Assumptions
from strandline.pipeline.plan.results import results_of
from strandline.pipeline.plan.runs import process_count, run_here
from strandline.pipeline.plan.trials import Plan
from strandline.placement.topology.described import decode_cluster

EVENTS = 100_000
PARTITIONS = 60
POLICIES = (
    ("2+2+1",),
    ("3+2+1", "2+2+1", "rf3", "2+2+1o,min-insync=3"),
)
CLUSTER = "brokers:\n" + "\n".join(
    f"  - {{count: {count}, region: {region}, zone: {zone}}}"
    for region in ("east", "west", "south")
    for zone, count in (("a", 7), ("b", 7), ("c", 6))
)


def measure(say: Callable[..., None]) -> None:
    """Each set of policies once; `say` prints a line of figures."""
    cluster, assumptions = decode_cluster(CLUSTER), Assumptions()
    config = assumptions.config()
    for words in POLICIES:
        placed = tuple(
            place(one, cluster, partitions=PARTITIONS, config=config)
            for one in parse_alternatives(words, cluster)
        )
        plan = Plan(cluster.candidates, placed, assumptions, 1)
        cpu_s, begin = _cpu_s(), time.monotonic()
        rows = run_here(plan, plan.trials_for(EVENTS), processes=process_count())
        results = results_of(plan, rows)
        say(
            policies=list(words),
            brokers=results.brokers,
            losses=results.losses,
            years=results.trials,
            processes=process_count(),
            wall_s=round(time.monotonic() - begin, 1),
            cpu_s=round(_cpu_s() - cpu_s, 1),
        )


def _cpu_s() -> float:
    """Of this process and of those that it waited for."""
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(one.ru_utime + one.ru_stime for one in map(resource.getrusage, both))
