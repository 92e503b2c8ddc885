"""Restarts of a running cluster: its upgrade domains, and the quorums that need them.

How:    labels from the brokers, maintenance from the controller, in-sync replicas from the
        partitions' leaders; the controller's voters are the seeds of its leader. A broker
        without an upgrade domain is a unit of its own.
Source: docs/decisions/0011-the-life-of-a-broker.md."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

from strandline.base.errors import OperatorError
from strandline.cli.text.live_cluster import LiveCluster, look
from strandline.client.cluster import Client
from strandline.client.operations.broker_configs import SEEDS
from strandline.client.operations.broker_removal import describe_lives
from strandline.client.operations.configs import describe_controller_configs
from strandline.config.addresses import parse_seed
from strandline.controller.placing.broker_removal import CONTROLLER
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.placement.survival.replicas import Quorum
from strandline.placement.survival.restarts import (
    Brokers,
    QuorumGroup,
    RestartPlan,
    Unit,
    hurt_by,
    need_of,
    plan_restarts,
)


@dataclass(frozen=True, slots=True)
class Restarts:
    """The plan, and what it rests on."""

    plan: RestartPlan
    groups: tuple[QuorumGroup, ...]
    up: Brokers
    spared: Brokers = frozenset()
    """In maintenance: they may go down at any time."""

    def now(self, done: Collection[str]) -> tuple[list[Unit], list[tuple[Unit, str]]]:
        """(what may be restarted now, together; what may not, with why not). `done`: the names of
        what was restarted. Raises OperatorError for one that is not in the plan."""
        known = [one.name for step in self.plan.steps for one in step]
        known += [one.name for one, _ in self.plan.never]
        for name in done:
            if name not in known:
                raise OperatorError(f"--done {name!a}: the plan has {', '.join(known)}")
        now: list[Unit] = []
        later: list[tuple[Unit, str]] = []
        for step in self.plan.steps:
            left = [one for one in step if one.name not in done]
            is_turn = not now
            for unit in left:
                together = unit.brokers.union(*(one.brokers for one in now))
                group = self._hurt(unit.brokers if not is_turn else together)
                if group is not None:
                    later.append((unit, self.why(group)))
                elif is_turn:
                    now.append(unit)
                else:
                    later.append((unit, "in a later step"))
        for unit, group in self.plan.never:
            if unit.name not in done:
                later.append((unit, self.why(group)))
        return now, later

    def why(self, group: QuorumGroup) -> str:
        """What a group needs, and what it lacks."""
        return f"{group.name} {need_of(group, self.up, self.spared)}"

    def _hurt(self, brokers: Brokers) -> QuorumGroup | None:
        return next(hurt_by(brokers, self.groups, up=self.up, spared=self.spared), None)


def look_at_restarts(client: Client) -> Restarts:
    """Ask a cluster."""
    cluster = look(client, None, asks_leaders=True)
    up = frozenset(one.id for one in cluster.candidates if one.is_up)
    groups = (controller_group(client, up), *partition_groups(cluster, up))
    last = None if cluster.controller == NO_BROKER else cluster.controller
    spared = frozenset(one.broker for one in describe_lives(client).maintained)
    return Restarts(plan_restarts(_units(cluster), groups, last=last), groups, up, spared)


def _units(cluster: LiveCluster) -> list[Unit]:
    domains: dict[str, set[BrokerId]] = {}
    for one in cluster.candidates:
        name = one.labels.upgrade_domain
        domains.setdefault(f"domain {name}" if name else f"broker {one.id}", set()).add(one.id)
    return [Unit(name, frozenset(brokers)) for name, brokers in domains.items()]


def partition_groups(cluster: LiveCluster, up: Brokers) -> list[QuorumGroup]:
    """The partitions as quorum groups, by current voters; equal ones are one group."""
    found: dict[object, QuorumGroup] = {}
    counts = Counter[object]()
    for topic in cluster.topics:
        for one in topic.partitions:
            voters = frozenset(one.voting)
            least = topic.request.min_insync_replicas
            quorum = Quorum.of(len(voters), least).write_quorum
            leads = one.leader in up
            ready = voters & up - frozenset(one.behind) if leads else frozenset()
            away = frozenset(one.voters) - voters
            key = voters, quorum, ready, away, leads
            counts[key] += 1
            group = QuorumGroup(
                name=f"{topic.name}-{one.index}",
                voters=voters,
                quorum=quorum,
                ready=ready,
                away=away,
                has_leader=leads,
            )
            found.setdefault(key, group)
    return [replace(group, count=counts[key]) for key, group in found.items()]


def controller_group(client: Client, up: Brokers) -> QuorumGroup:
    """The controller's quorum group, given which brokers are up: its voters are the seeds of its
    leader."""
    (row,) = describe_controller_configs(client, [SEEDS])
    seeds = frozenset(parse_seed(text).id for text in row.value.split(","))
    quorum = len(seeds) // 2 + 1
    return QuorumGroup(name=CONTROLLER, voters=seeds, quorum=quorum, ready=seeds & up)
