"""An admin that deletes the oldest records of a topic now and then, and tries to read them again.

Why:    deleted records must stay deleted through every fault, most of all right after the answer.
How:    each turn asks the leader of a group: to delete up to a visible offset, or to read just
        below an earlier deletion. A failed request may have been done. If the answer is lost, the
        client repeats the request.
Owns:   the deletions that it got an answer for.
Source: docs/decisions/0006-deleting-records.md; design section 10."""

import random
from functools import partial

from strandline.base.errors import ApiError
from strandline.model.ids import NO_BROKER, GroupId, Offset
from strandline.protocol.errors import Error
from strandline.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from strandline.replication.replica.replica import Replica
from strandline.simulation.clients.admins import Admin
from strandline.simulation.clients.connections import Exchange
from strandline.simulation.invariants.facts import Deleted, DeletionAsked, Subject
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.member import Member

VERSION = 2
TIMEOUT_MS = 2_000
ATTEMPTS = 3
SHARE_MAX = 0.3
"""Of what can be read, so much goes at once."""
READ_BYTES = 1_000
FAILURES = {
    Error.KAFKA_STORAGE_ERROR,
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.OFFSET_OUT_OF_RANGE,
    Error.REQUEST_TIMED_OUT,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
}
"""What a faulty cluster may say. An offset that was shown may be lost with the power: acks=1."""


class Deleter(Admin):
    """See the module."""

    def __init__(self, name: str, cluster: SimCluster, rng: random.Random) -> None:
        super().__init__(name, cluster, rng, interval_ms=cluster.scenario.delete_interval_ms)
        self.deletion_count = 0
        self.refusal_count = 0
        """Reads of deleted records that were refused."""
        self._deleted: dict[GroupId, Offset] = {}

    def act(self) -> None:
        """See `Admin`."""
        plan = self.rng.choice(self.cluster.scenario.groups)
        leader = self.find_leader(plan.group)
        act = self._read if self.rng.random() < 0.5 else self._delete
        if leader != NO_BROKER:
            self.ask(leader, partial(act, plan.group), lambda: None)

    def _delete(self, group: GroupId, member: Member, exchange: Exchange) -> None:
        """Inside the broker: choose, and ask."""
        assert isinstance(member, BrokerMember)
        replica = member.replication.replicas.get(group)
        if replica is None or member.partition_of(group) is None:
            return
        start = replica.log_start_offset
        span = replica.high_watermark - start
        before = Offset(start + int(span * self.rng.random() * SHARE_MAX))
        if span <= 0:
            return
        self._put(group, before, ATTEMPTS, member, exchange)

    def _put(
        self, group: GroupId, before: Offset, attempts: int, member: Member, exchange: Exchange
    ) -> None:
        """Inside the broker."""
        assert isinstance(member, BrokerMember)
        partition = member.partition_of(group)
        if partition is None:
            return

        def again() -> None:
            leader = self.find_leader(group)
            if attempts > 1 and leader != NO_BROKER and not self.is_stopped:
                self.ask(leader, partial(self._put, group, before, attempts - 1), lambda: None)

        exchange.lost = again
        self.cluster.checker.deletion_asked(DeletionAsked(group, before))
        asked = DeleteRecordsPartition(partition_index=partition.index, offset=before)
        topic = DeleteRecordsTopic(name=partition.topic, partitions=[asked])

        def on_answer(answer: DeleteRecordsResponse) -> None:
            is_received = exchange.settle()
            (result,) = answer.topics[0].partitions
            if result.error_code == Error.NONE:
                self.deletion_count += 1
                if is_received:
                    self._deleted[group] = max(before, self._deleted.get(group, before))
                self.cluster.checker.deleted(Deleted(group, before, Offset(result.low_watermark)))
            elif result.error_code not in FAILURES:
                self.cluster.checker.fail(
                    f"NoUnexpectedError: {self.name} was told {result.error_code}", Subject(group)
                )

        member.ask(
            DeleteRecordsRequest(topics=[topic], timeout_ms=TIMEOUT_MS),
            DeleteRecordsResponse,
            VERSION,
            on_answer=on_answer,
            on_closed=lambda _: None,
        )

    def _read(self, group: GroupId, member: Member, exchange: Exchange) -> None:
        """Inside the broker: ask for a record that was deleted."""
        replica: Replica | None = member.replication.replicas.get(group)
        deleted = self._deleted.get(group, Offset(0))
        if replica is None or not deleted:
            return
        position = Offset(self.rng.randrange(deleted))

        def done(data: bytes, error: ApiError | None) -> None:
            exchange.settle()
            if error is not None:
                self.refusal_count += error.code == Error.OFFSET_OUT_OF_RANGE
            elif replica.is_leader:
                self.cluster.checker.fail(
                    f"DeletedStaysDeleted: group {group}: broker {member.broker} leads and serves "
                    f"offset {position}; records below {deleted} were deleted",
                    Subject(group, position),
                )

        member.read(replica, position, READ_BYTES, done)
