"""An admin that moves replicas to other brokers, changes the target, and cancels.

Why:    a move is a protocol of three parties; a fault may strike each of them at each step.
How:    each turn asks any broker to move a group to random brokers, or to stop its move. A failed
        request may have been done. If the answer is lost, the client repeats the request at any
        broker. Where keys are deleted, it also moves replicas away from brokers that are down, and
        back later: the log that was left there still has the deleted keys (decision 0038).
Owns:   which replicas it has moved away from brokers that were down.
Source: docs/decisions/0009-moving-replicas.md; design section 10."""

import random
from collections.abc import Sequence

from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.simulation.clients.admins import Admin
from strandline.simulation.clients.connections import Exchange
from strandline.simulation.invariants.facts import Subject
from strandline.simulation.scenarios.scenario import GroupPlan
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.member import Member

VERSION = 1
TIMEOUT_MS = 2_000
ATTEMPTS = 3
CANCEL_SHARE = 0.25
FROM_DOWN_SHARE = 0.7
BACK_SHARE = 0.3
"""Of the turns in which there is something to move from who is down, or back."""
FAILURES = {
    Error.KAFKA_STORAGE_ERROR,
    Error.NO_REASSIGNMENT_IN_PROGRESS,
    Error.REQUEST_TIMED_OUT,
}
"""What a faulty cluster may say (the disk of the controller's log may be full), and one in which
nothing moves any more."""
OBSERVED_FAILURES = {Error.INVALID_REPLICA_ASSIGNMENT}
"""Where there are observers, a random list mostly says of roles what none may."""


class Reassigner(Admin):
    """See the module."""

    def __init__(self, name: str, cluster: SimCluster, rng: random.Random) -> None:
        super().__init__(name, cluster, rng, interval_ms=cluster.scenario.move_interval_ms)
        self.move_count = 0
        # [(group, where it was before it was moved from there)]
        self._moved: list[tuple[GroupPlan, tuple[BrokerId, ...]]] = []

    def act(self) -> None:
        """See `Admin`."""
        if not (self.cluster.scenario.tombstone_ratio and self._act_on_brokers_down()):
            self._act_at_random()

    def _act_on_brokers_down(self) -> bool:
        """Move something from there, or back; whether there was anything."""
        if self._moved and self.rng.random() < BACK_SHARE:
            plan, replicas = self._moved.pop(0)
            self._move(plan, replicas)
            return True
        hosts = self.cluster.hosts
        down = {one for one in hosts if not hosts[one].is_up}
        plan = self.rng.choice(self.cluster.scenario.groups)
        partition = self._known(plan) if down and not plan.observers else None
        if partition is None or down.isdisjoint(partition.replicas):
            return False
        free = sorted(hosts.keys() - down - set(partition.hosts))
        if not free or self.rng.random() >= FROM_DOWN_SHARE:
            return False
        self.rng.shuffle(free)
        replicas = tuple(free.pop() if one in down and free else one for one in partition.replicas)
        self._moved.append((plan, partition.replicas))
        self._move(plan, replicas)
        return True

    def _known(self, plan: GroupPlan) -> Partition | None:
        """Where a group is, as far as some broker that is up knows."""
        for host in self.cluster.hosts.values():
            member = host.program
            if isinstance(member, BrokerMember):
                partition = member.partition_of(plan.group)
                if partition is not None:
                    return partition
        return None

    def _act_at_random(self) -> None:
        brokers = self.cluster.scenario.brokers
        plan = self.rng.choice(self.cluster.scenario.groups)
        replicas: list[int] | None = None
        if self.rng.random() >= CANCEL_SHARE:
            present = len(plan.voters) + len(plan.observers)
            count = self.rng.choice((present, self.rng.randint(1, len(brokers))))
            replicas = list(self.rng.sample(brokers, count))
        self._move(plan, replicas)

    def _move(self, plan: GroupPlan, replicas: Sequence[int] | None) -> None:
        """Ask for these; or for no move."""
        wanted = None if replicas is None else list(replicas)
        topic = ReassignableTopic(plan.name, [ReassignablePartition(0, wanted)])
        failures = FAILURES | OBSERVED_FAILURES if plan.observers else FAILURES
        self._send(topic, failures, attempts=ATTEMPTS)

    def _send(self, topic: ReassignableTopic, failures: set[Error], *, attempts: int) -> None:
        def again() -> None:
            if attempts > 1 and not self.is_stopped:
                self._send(topic, failures, attempts=attempts - 1)

        self.ask(
            self.rng.choice(self.cluster.scenario.brokers),
            lambda member, exchange: self._ask(member, exchange, topic, failures),
            lambda: None,
            lost=again,
        )

    def _ask(
        self,
        member: Member,
        exchange: Exchange,
        topic: ReassignableTopic,
        failures: set[Error],
    ) -> None:
        """Inside the broker."""
        assert isinstance(member, BrokerMember)

        def on_answer(answer: AlterPartitionReassignmentsResponse) -> None:
            exchange.settle()
            code = answer.error_code or answer.responses[0].partitions[0].error_code
            if code == Error.NONE:
                self.move_count += 1
            elif code not in failures:
                self.cluster.checker.fail(
                    f"NoUnexpectedError: {self.name} was told {code} of {topic}", Subject(None)
                )

        member.ask(
            AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=[topic]),
            AlterPartitionReassignmentsResponse,
            VERSION,
            on_answer=on_answer,
            on_closed=lambda _: None,
        )
