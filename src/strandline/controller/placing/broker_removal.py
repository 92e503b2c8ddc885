"""Checks that the cluster can do without brokers that leave or go into maintenance. Pure.

Why:    replicas without another place would stay for ever, and the operator would wait in vain for
        the broker to be empty.
How:    The desired life of each broker is its configuration. Before a broker leaves, this checks
        every topic against the brokers that stay, up or down: its policy or its count of replicas,
        and its bytes against their disks. A policy that cannot be met anyhow keeps only brokers
        that hold a replica of its topic. Without a policy, the replicas must still fit on as many
        hosts: of two on one machine, its end takes both.
            Before a broker goes into maintenance, every partition with a replica on it, and the
        controller if it votes there, must keep a quorum of other brokers that are in sync, as the
        leader reports, and not in maintenance. A partition that has too few anyhow may lose none.
        The restart planner gives its reasons in the same words.
Owns:   nothing; `LifeChecks` sees the changes of earlier parts of its command.
Source: decision 0011."""

from collections.abc import Collection, Iterator, Mapping

from strandline.config.broker_life import DECOMMISSION, MAINTENANCE, BrokerLife
from strandline.config.topic import TopicConfig
from strandline.controller.commands import AlterConfigs, Command, ConfigOperation, ResourceType
from strandline.controller.decision import Facts, refuse
from strandline.controller.loss_commands import DeclareLost, RecoverPartition
from strandline.controller.outage_commands import RuleDomain
from strandline.controller.placing.policy_changes import PolicyChecks, refusal_of
from strandline.controller.placing.space import require_room
from strandline.controller.reports import Question
from strandline.model.cluster import Cluster, Ruling, Topic
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, GroupId
from strandline.placement.survival.replicas import Quorum
from strandline.placement.survival.restarts import QuorumGroup, hurt_by, need_of
from strandline.placement.topology.universe import domain_of
from strandline.protocol.errors import Error

CONTROLLER = "the controller"
"""The name of the controller's group in messages."""
HOST = "host"


def question_of(command: Command) -> Question | None:
    """The reports that such a command needs; None: none."""
    if isinstance(command, DeclareLost | RecoverPartition):
        return Question(hears=True, logs=(command.group,))
    if isinstance(command, RuleDomain):
        return Question(hears=True) if command.ruling in (Ruling.LOST, Ruling.RELEASE) else None
    if not isinstance(command, AlterConfigs):
        return None
    wanted = {
        change.key
        for resource in command.resources
        if resource.type == ResourceType.BROKER and resource.name
        for change in resource.changes
        if change.operation == ConfigOperation.SET
    }
    if not wanted & {DECOMMISSION, MAINTENANCE}:
        return None
    return Question(sizes=DECOMMISSION in wanted, leads=MAINTENANCE in wanted)


class LifeChecks:
    """The checks of one command."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._leaving = set(facts.leaving)
        self._maintained = set(facts.maintained)
        self._behind: dict[GroupId, frozenset[BrokerId]] = {
            group: frozenset(behind)
            for report in facts.reports.values()
            for group, behind in report.behind.items()
        }

    def check(self, broker: BrokerId, changes: Mapping[str, str | None]) -> None:
        """Refuse changes to a broker that break a check; raises ApiError."""
        own = {**self._facts.state.cluster.broker_configs.get(broker, {}), **changes}
        after = BrokerLife.from_values({key: one for key, one in own.items() if one is not None})
        if not after.broker_decommission:
            self._leaving.discard(broker)
        elif broker not in self._leaving:
            self._check_decommission(broker)
            self._leaving.add(broker)
        if not after.is_maintained:
            self._maintained.discard(broker)
        elif broker not in self._maintained:
            self._check_maintenance(broker)
            self._maintained.add(broker)

    def _check_decommission(self, broker: BrokerId) -> None:
        leaving = frozenset(self._leaving | {broker})
        cluster = self._facts.state.cluster
        left = len(cluster.brokers) - len(leaving)
        after = PolicyChecks(self._facts, leaving=leaving)
        before = PolicyChecks(self._facts, leaving=frozenset(self._leaving))
        hosts_before = _host_count(cluster, leaving=self._leaving)
        hosts_after = _host_count(cluster, leaving=leaving)
        for topic in cluster.topics.values():
            key, why = after.present(topic)
            if why and (_holds(topic, broker) or not before.present(topic)[1]):
                raise refusal_of({topic.name: (key, why)})
            if key:
                continue
            needed = max(len(one.roles.all) for one in topic.partitions)
            without = f"without {_named(leaving)}"
            if needed > left:
                raise refuse(
                    Error.POLICY_VIOLATION,
                    f"topic {topic.name} has {needed} replicas, and {without} "
                    f"{left} broker{'s are' if left != 1 else ' is'} left for them: add a broker, "
                    "or give the topic fewer replicas",
                )
            if hosts_after < needed <= hosts_before:
                raise refuse(
                    Error.POLICY_VIOLATION,
                    f"topic {topic.name} has {needed} replicas for different hosts, and {without} "
                    f"{hosts_after} host{'s are' if hosts_after != 1 else ' is'} left for them: "
                    "add a machine, or give the topic fewer replicas or a placement.policy with "
                    "distinct_host: false",
                )
        if not left:
            raise refuse(Error.POLICY_VIOLATION, f"broker {broker} is the last one there is")
        require_room(self._facts, broker, leaving)

    def _check_maintenance(self, broker: BrokerId) -> None:
        up, spared = frozenset(self._facts.alive), frozenset(self._maintained)
        hurt = list(
            hurt_by(
                frozenset((broker,)),
                self._groups(broker),
                up=up,
                spared=spared,
                counts_stopped=False,
            )
        )
        if not hurt:
            return
        what = "decide" if hurt[0].name == CONTROLLER else "be written"
        text = f"{hurt[0].name} could not {what}: it {need_of(hurt[0], up, spared)}"
        partitions = {one.name for one in hurt if one.name != CONTROLLER}
        if len(partitions) > 1:
            text += f"; so it is with {len(partitions)} partitions"
        if partitions and any(one.name == CONTROLLER for one in hurt):
            text += f", and with {CONTROLLER}"
        raise refuse(Error.POLICY_VIOLATION, text)

    def _groups(self, broker: BrokerId) -> Iterator[QuorumGroup]:
        """All groups in which this broker votes, or may: the partitions, and the controller."""
        cluster = self._facts.state.cluster
        for topic in cluster.topics.values():
            config = TopicConfig.from_overrides(cluster.cluster_configs, topic.configs)
            for one in topic.partitions:
                for voters in one.possible:
                    if broker in voters:
                        quorum = Quorum.of(len(voters), config.min_insync_replicas).write_quorum
                        yield self._group(one.name, one.group, voters, quorum)
        voters = tuple(self._facts.voters)
        if broker in voters:
            yield self._group(CONTROLLER, CONTROLLER_GROUP, voters, len(voters) // 2 + 1)

    def _group(
        self, name: str, group: GroupId, voters: Collection[BrokerId], quorum: int
    ) -> QuorumGroup:
        """Whether the replica is in sync: its broker is up, and the leader reports no lag."""
        up = frozenset(voters) & frozenset(self._facts.alive)
        ready = up - self._behind.get(group, frozenset())
        return QuorumGroup(name=name, voters=frozenset(voters), quorum=quorum, ready=ready)


def _host_count(cluster: Cluster, *, leaving: Collection[BrokerId]) -> int:
    """On how many hosts the brokers are that stay; one without the label is on its own."""
    return len(
        {
            domain_of(one.labels, HOST) if one.labels.host else (one.id,)
            for one in cluster.brokers.values()
            if one.id not in leaving
        }
    )


def _named(brokers: Collection[BrokerId]) -> str:
    noun = "broker" if len(brokers) == 1 else "brokers"
    return f"{noun} {', '.join(map(str, sorted(brokers)))}"


def _holds(topic: Topic, broker: BrokerId) -> bool:
    return any(broker in one.hosts for one in topic.partitions)
