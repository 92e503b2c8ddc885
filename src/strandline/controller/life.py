"""Brokers that are to leave, or to be spared: whether the cluster can do without them. Pure.

Why:    replicas that have no other place would stay for ever, and the person who waits for the
        broker to be empty would be the last to know.
How:    what is wanted of each broker is its configuration. Before a broker is taken off, every
        topic is held against the brokers that stay: by its policy, or by its count of replicas;
        and its bytes against their disks.
        Brokers that stay count, up or down. Before one is spared, every partition has to have a
        write quorum of brokers that are up and not spared; one that has none loses none.
Owns:   nothing; `LifeChecks` sees what earlier parts of its command ask for.
Source: decision 0011."""

from collections.abc import Mapping

from strandline.config.broker_life import DECOMMISSION, MAINTENANCE, BrokerLife
from strandline.config.topic import TopicConfig
from strandline.controller.commands import AlterConfigs, Command, ConfigOperation, ResourceType
from strandline.controller.decision import Facts, refuse
from strandline.controller.policy_changes import PolicyChecks
from strandline.controller.reports import Question
from strandline.controller.space import require_room
from strandline.model.ids import BrokerId
from strandline.placement.survival.replicas import Quorum
from strandline.protocol.errors import Error


def question_of(command: Command) -> Question | None:
    """What brokers have to be asked before such a command is decided; None: nothing."""
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

    def check(self, broker: BrokerId, changes: Mapping[str, str | None]) -> None:
        """Refuse changes to a broker that the cluster cannot bear; raises ApiError."""
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
        checks = PolicyChecks(self._facts, leaving=leaving)
        for topic in cluster.topics.values():
            if checks.check_present(topic):
                continue
            needed = max(len(one.replicas) for one in topic.partitions)
            if needed > left:
                raise refuse(
                    Error.POLICY_VIOLATION,
                    f"topic {topic.name} has {needed} replicas, and without broker {broker} "
                    f"{left} broker{'s are' if left != 1 else ' is'} left for them: add a broker, "
                    "or give the topic fewer replicas",
                )
        if not left:
            raise refuse(Error.POLICY_VIOLATION, f"broker {broker} is the last one there is")
        require_room(self._facts, broker, leaving)

    def _check_maintenance(self, broker: BrokerId) -> None:
        cluster = self._facts.state.cluster
        there = set(self._facts.alive) - self._maintained
        hurt: list[str] = []
        first = ""
        for topic in cluster.topics.values():
            config = TopicConfig.from_overrides(cluster.cluster_configs, topic.configs)
            for one in topic.partitions:
                for voters in (one.replicas, one.pending):
                    if broker not in voters:
                        continue
                    quorum = Quorum.of(len(voters), config.min_insync_replicas).write_quorum
                    left = there & set(voters) - {broker}
                    if len(left) < quorum <= len(there & set(voters)):
                        hurt.append(one.name)
                        first = first or self._shortage(one.name, voters, broker, quorum)
                        break
        if hurt:
            count = len(hurt)
            more = f"; so it is with {count} partitions" if count > 1 else ""
            raise refuse(Error.POLICY_VIOLATION, first + more)

    def _shortage(
        self, name: str, voters: tuple[BrokerId, ...], broker: BrokerId, quorum: int
    ) -> str:
        others = [one for one in voters if one != broker]
        spared = [one for one in others if one in self._maintained]
        down = [one for one in others if one not in self._facts.alive and one not in spared]
        text = f"{name} could not be written: it needs {quorum} of brokers "
        text += f"{', '.join(map(str, voters))}"
        for which, what in ((spared, "in maintenance"), (down, "down")):
            if which:
                text += f"; {what}: {', '.join(map(str, which))}"
        return text
