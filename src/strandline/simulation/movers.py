"""An admin that moves the replicas of topics to other brokers, changes its mind, and cancels.

Why:    a move is a protocol of three parties; each of them may be struck at each of its steps.
How:    each turn asks any broker to move a group to random brokers, or to stop moving it. A request
        that fails may have been done; one whose answer was lost is sent again, to any broker.
Owns:   nothing.
Source: docs/decisions/0009-moving-replicas.md; design section 10."""

import random
from typing import TYPE_CHECKING

from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.simulation.admins import Admin
from strandline.simulation.broker_member import BrokerMember
from strandline.simulation.connections import Exchange
from strandline.simulation.facts import Subject

if TYPE_CHECKING:
    from strandline.simulation.member import Member
    from strandline.simulation.world import World

VERSION = 1
TIMEOUT_MS = 2_000
ATTEMPTS = 3
CANCEL_SHARE = 0.25
FAILURES = {
    Error.KAFKA_STORAGE_ERROR,
    Error.NO_REASSIGNMENT_IN_PROGRESS,
    Error.REQUEST_TIMED_OUT,
}
"""What a faulty cluster may say (the disk of the controller's log may be full), and one in which
nothing moves any more."""
OBSERVED_FAILURES = {Error.INVALID_REPLICA_ASSIGNMENT}
"""Where there are observers, a random list mostly says of roles what none may."""


class Mover(Admin):
    """See the module."""

    def __init__(self, name: str, world: "World", rng: random.Random) -> None:
        super().__init__(name, world, rng, interval_ms=world.scenario.move_interval_ms)
        self.move_count = 0

    def act(self) -> None:
        """See `Admin`."""
        brokers = self.world.scenario.brokers
        plan = self.rng.choice(self.world.scenario.groups)
        replicas: list[int] | None = None
        if self.rng.random() >= CANCEL_SHARE:
            present = len(plan.voters) + len(plan.observers)
            count = self.rng.choice((present, self.rng.randint(1, len(brokers))))
            replicas = list(self.rng.sample(brokers, count))
        topic = ReassignableTopic(plan.name, [ReassignablePartition(0, replicas)])
        failures = FAILURES | OBSERVED_FAILURES if plan.observers else FAILURES
        self._send(topic, failures, attempts=ATTEMPTS)

    def _send(self, topic: ReassignableTopic, failures: set[Error], *, attempts: int) -> None:
        def again() -> None:
            if attempts > 1 and not self.is_stopped:
                self._send(topic, failures, attempts=attempts - 1)

        self.ask(
            self.rng.choice(self.world.scenario.brokers),
            lambda member, exchange: self._ask(member, exchange, topic, failures),
            lambda: None,
            lost=again,
        )

    def _ask(
        self,
        member: "Member",
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
                self.world.checker.fail(
                    f"NoUnexpectedError: {self.name} was told {code} of {topic}", Subject(None)
                )

        member.ask(
            AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=[topic]),
            AlterPartitionReassignmentsResponse,
            VERSION,
            on_answer=on_answer,
            on_closed=lambda _: None,
        )
