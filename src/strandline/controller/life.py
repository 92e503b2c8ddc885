"""Brokers that are to leave: who they are, and whether the cluster can do without them. Pure.

Why:    replicas that have no other place would stay for ever, and the person who waits for the
        broker to be empty would be the last to know.
How:    what is wanted of each broker is its configuration. Before a broker is taken off, every
        topic is held against the brokers that stay: by its policy, or by its count of replicas.
        Brokers that stay count, up or down.
Owns:   nothing; `LifeChecks` sees what earlier parts of its command ask for.
Source: decision 0011."""

from collections.abc import Mapping

from strandline.config.broker_life import BrokerLife
from strandline.controller.decision import Facts, refuse
from strandline.controller.policy_changes import PolicyChecks
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error


class LifeChecks:
    """The checks of one command."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._leaving = set(facts.leaving)

    def check(self, broker: BrokerId, changes: Mapping[str, str | None]) -> None:
        """Refuse changes to a broker that the cluster cannot bear; raises ApiError."""
        own = {**self._facts.state.cluster.broker_configs.get(broker, {}), **changes}
        after = BrokerLife.from_values({key: one for key, one in own.items() if one is not None})
        if not after.broker_decommission:
            self._leaving.discard(broker)
        elif broker not in self._leaving:
            self._check_decommission(broker)
            self._leaving.add(broker)

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
