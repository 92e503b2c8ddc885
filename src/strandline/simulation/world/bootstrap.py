"""How a simulated cluster of whole brokers comes to be, before load and faults begin.

Why:    a scenario's group is a topic there, and only the controller creates topics.
How:    all brokers have joined and know each other -> a request creates the topics, in the order of
        their groups' numbers -> each has a leader.
Source: design section 10."""

from collections.abc import Callable
from functools import partial

from strandline.model.ids import GroupId
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.scheduler import US_PER_MS

BOOTSTRAP_MS = 20_000
REBALANCE_DELAY = ("group.initial.rebalance.delay.ms", "100")
"""So that a consumer group begins within a short run."""
LOST_AFTER = "broker.lost.after.ms"
SNAPSHOT_BYTES = "metadata.log.max.record.bytes.between.snapshots"


def bootstrap_cluster(cluster: SimCluster) -> None:
    """See the module. Fails the run when it takes too long."""
    limit_us = cluster.scheduler.now_us + BOOTSTRAP_MS * US_PER_MS

    def require(condition: Callable[[], bool], what: str) -> None:
        done = cluster.scheduler.run_until_true(condition, limit_us=limit_us)
        if not done and cluster.checker.violation is None:
            cluster.checker.fail(f"Progress: it took more than {BOOTSTRAP_MS} ms until {what}")

    require(lambda: _have_joined(cluster), "the brokers joined")
    if cluster.checker.violation is not None:
        return
    first = _members(cluster)[0]
    process = cluster.hosts[first.broker].process
    assert process is not None
    process.run_now(lambda: first.create_topics(cluster.checker.fail))
    answers: list[str] = []
    configs = dict([REBALANCE_DELAY])
    if cluster.scenario.lost_after_ms:
        configs[LOST_AFTER] = str(cluster.scenario.lost_after_ms)
    if cluster.scenario.snapshot_bytes:
        configs[SNAPSHOT_BYTES] = str(cluster.scenario.snapshot_bytes)
    configs |= dict(cluster.scenario.cluster_configs)
    for key, value in configs.items():
        process.run_now(
            partial(
                first.set_cluster_config,
                key,
                value,
                done=partial(answers.append, key),
                failed=cluster.checker.fail,
            )
        )
    groups = {plan.group for plan in cluster.scenario.groups}
    require(lambda: groups <= _led(cluster), "every topic was led")
    require(lambda: set(answers) == set(configs), f"{', '.join(configs)} were set")


def _members(cluster: SimCluster) -> list[BrokerMember]:
    programs = [host.program for host in cluster.hosts.values()]
    return [one for one in programs if isinstance(one, BrokerMember)]


def _have_joined(cluster: SimCluster) -> bool:
    brokers = cluster.scenario.brokers
    members = _members(cluster)
    return len(members) == len(brokers) and all(
        one.is_serving and all(map(one.knows, brokers)) for one in members
    )


def _led(cluster: SimCluster) -> set[GroupId]:
    return {replica.group for replica in cluster.replicas() if replica.is_serving}
