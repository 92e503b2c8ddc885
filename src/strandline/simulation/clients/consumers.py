"""Consumers that read from any replica up to its high watermark, and remember what they saw.

Why:    a record that a consumer has seen must never disappear, whichever replica showed it.
How:    each poll asks a random replica, now and then the leader, for the next records. A position
        beyond the replica's end is no error: the consumer asks another replica. If a power failure
        took unflushed-visible records, the position returns to the committed end.
Owns:   the positions.
Source: KIP-392 (fetch from the closest replica); design section 9."""

import random
from collections.abc import Sequence
from functools import partial

from strandline.base.errors import ApiError
from strandline.model.ids import NO_BROKER, BrokerId, GroupId, Offset
from strandline.protocol.errors import Error
from strandline.records.batch import iterate_headers
from strandline.replication.replica.replica import Replica
from strandline.simulation.clients.clients import Client
from strandline.simulation.clients.connections import Exchange
from strandline.simulation.clients.lookups import LATEST, NO_OFFSET, ask_offset
from strandline.simulation.invariants.facts import RecordsRead, Subject
from strandline.simulation.scenarios.scenario import GroupPlan
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.member import Member, committed_end, visible_end
from strandline.simulation.world.scheduler import US_PER_MS

POLL_MS = (10, 150)
READ_BYTES = (200, 4_000, 100_000)
LISTING = 0.2
"""How often a consumer that has found the leader asks it where the partition ends."""
FROM_BEGINNING = 0.3
"""How often a consumer begins anew, where old records are in buckets."""
ELSEWHERE = {
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.KAFKA_STORAGE_ERROR,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
}
"""What a broker says that cannot serve the partition, or not now."""


class Consumer(Client):
    """See the module. Reads every group in turn."""

    def __init__(self, name: str, cluster: SimCluster, rng: random.Random) -> None:
        super().__init__(name, cluster, rng)
        self.read_count = 0
        self._positions: dict[GroupId, Offset] = {}

    def start(self) -> None:
        """Poll from now on."""
        self._poll()

    def _poll(self) -> None:
        if self.is_stopped:
            return
        plan = self.rng.choice(self.cluster.scenario.groups)
        broker = self.rng.choice(plan.hosts)

        def go_to_leader(leader: BrokerId) -> None:
            chosen = broker if leader == NO_BROKER else leader
            if self.cluster.scenario.has_brokers and self.rng.random() < LISTING:
                self._ask_end(plan, chosen)
            else:
                self.ask(chosen, partial(self._read, plan.group), lambda: None)

        if self.rng.random() < 0.4:
            self.seek_leader(plan.group, go_to_leader)
        else:
            self.ask(broker, partial(self._read, plan.group), lambda: None)
        self.scheduler.after(self.rng.randint(*POLL_MS) * US_PER_MS, self._poll)

    def _ask_end(self, plan: GroupPlan, broker: BrokerId) -> None:
        """A ListOffsets request, as of a consumer that begins at the end."""

        def run(member: Member, exchange: Exchange) -> None:
            def on_end(end: Offset) -> None:
                exchange.settle()
                self._on_end(plan, member, end)

            assert isinstance(member, BrokerMember)
            ask_offset(
                member,
                plan.name,
                LATEST,
                on_end,
                lambda _: None,
            )

        self.ask(broker, run, lambda: None)

    def _on_end(self, plan: GroupPlan, member: Member, end: Offset) -> None:
        """Inside the broker: only a leader may say where the partition ends."""
        replica = member.replication.replicas.get(plan.group)
        if end == NO_OFFSET or replica is None:
            return
        self.cluster.checker.records_read(
            RecordsRead(
                consumer=self.name,
                broker=member.broker,
                life=member.life,
                group=plan.group,
                position=end,
                records=[],
                committed_end=committed_end(replica),
                visible_end=visible_end(replica),
                high_watermark=end,
                is_leader_read=True,
                start_offset=replica.local_log_start_offset,
                deleted_before=replica.deletions.before,
                epoch=replica.epoch,
            )
        )

    def _read(self, group: GroupId, member: Member, exchange: Exchange) -> None:
        """Inside the broker."""
        replica = member.replication.replicas.get(group)
        if replica is None or replica.failed is not None:
            return
        is_bucketed = bool(self.cluster.scenario.bucket_regions)
        start = replica.log_start_offset if is_bucketed else replica.local_log_start_offset
        position = max(self._positions.get(group, Offset(0)), start)
        if is_bucketed and self.rng.random() < FROM_BEGINNING:
            position = self._positions[group] = start
        max_bytes = self.rng.choice(READ_BYTES)

        def done(data: bytes, error: ApiError | None) -> None:
            if error is None:
                self._on_read(data, position, member=member, replica=replica, exchange=exchange)
            elif exchange.settle():
                self._on_refused(error, replica)

        member.read(replica, position, max_bytes, done)

    def _on_refused(self, error: ApiError, replica: Replica) -> None:
        if error.code in ELSEWHERE:
            return
        if error.code != Error.OFFSET_OUT_OF_RANGE:
            self.cluster.checker.fail(f"NoUnexpectedError: {self.name} was told {error}")
        elif replica.can_serve_reads:
            # Only what was never committed can have gone from a leader.
            self._positions[replica.group] = committed_end(replica)

    def _on_read(
        self,
        data: bytes,
        position: Offset,
        *,
        member: Member,
        replica: Replica,
        exchange: Exchange,
    ) -> None:
        """Still inside the broker: what it answers is a fact, whether it arrives or not. Who does
        not get it asks for the same again, mostly another replica."""
        group = replica.group
        try:
            found = self.cluster.values.read(data)
        except ValueError as error:
            self.cluster.checker.fail(
                f"NoDamageServed: group {group}: broker {member.broker}: {error}",
                Subject(group, position),
            )
            return
        records = [record for record in found if record[0] >= position]
        fact = fact_of(self.name, member, replica, position, records)
        self.cluster.checker.records_read(fact)
        if not exchange.settle():
            return
        self.read_count += len(records)
        for header in iterate_headers(data):
            # Not the last record's: a compacted log has batches that lack records at their end.
            self._positions[group] = max(position, header.next_offset)


def fact_of(
    consumer: str,
    member: Member,
    replica: Replica,
    position: Offset,
    records: Sequence[tuple[Offset, bytes]],
) -> RecordsRead:
    """What a replica has just answered with."""
    return RecordsRead(
        consumer=consumer,
        broker=member.broker,
        life=member.life,
        group=replica.group,
        position=position,
        records=records,
        committed_end=committed_end(replica),
        visible_end=visible_end(replica),
        high_watermark=replica.high_watermark,
        is_leader_read=replica.is_leader if member.checks_leases else replica.can_serve_reads,
        start_offset=replica.local_log_start_offset,
        deleted_before=replica.deletions.before,
        epoch=replica.epoch,
    )
