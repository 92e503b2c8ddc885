"""Consumers that send their rack, and read from the replica that the leader names.

Why:    such a consumer moves from replica to replica. It must miss nothing in between, and must not
        wait for ever at a replica that cannot go on.
How:    as Kafka's clients do. Metadata names the leader; the consumer fetches from it with its
        rack. If the leader names a replica, the consumer fetches there until that replica refuses,
        does not answer, or the time to stay is over.
            position unknown to a follower     the consumer asks the leader
            position unknown to the leader     it goes on at the start of the log, or at the
                                               committed end
            position diverges from the log     it goes on where the two diverge
        Fetches wait for data. Now and then another member goes on from the same position, mostly
        elsewhere, as after a rebalance. Some readers send the epoch of the last record that they
        read: no log diverges from committed records.
Owns:   one reader's position, and the broker that it asks.
Source: KIP-392; KIP-320 (epochs); KIP-595 (diverging epochs); decision 0031."""

import random
from collections.abc import Callable

from strandline.model.ids import NO_BROKER, BrokerId, Offset
from strandline.protocol.errors import Error, message_of
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from strandline.records.batch import iterate_headers
from strandline.replication.replica.replica import Replica
from strandline.simulation.clients.clients import Client
from strandline.simulation.clients.consumers import READ_BYTES, fact_of
from strandline.simulation.clients.lookups import Closed, Leadership, ask_leadership
from strandline.simulation.invariants.facts import Subject
from strandline.simulation.scenarios.scenario import GroupPlan
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.member import committed_end
from strandline.simulation.world.scheduler import US_PER_MS

WAIT_MS = (0, 100, 500)
STAY_MS = (1_000, 5_000, 300_000)
"""After so long the leader is asked anew who is near; the last is librdkafka's."""
AGAIN_MS = (10, 100)
HANDOVER = 0.03
"""How likely another member of its group gets the partition, before each fetch."""
WORK_MS = (1, 50)
FETCH_VERSIONS = (11, 12)
REFUSALS = {
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.KAFKA_STORAGE_ERROR,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.FENCED_LEADER_EPOCH,
    Error.UNKNOWN_LEADER_EPOCH,
    Error.OFFSET_NOT_AVAILABLE,
    Error.REPLICA_NOT_AVAILABLE,
}
"""After these a client looks for the leader."""
NO_LEADER = Leadership(NO_BROKER, -1)
_Answer = tuple[PartitionData, Offset]
"""What was answered, and where to go on where that does not say it."""


class NearReader(Client):
    """See the module. Reads one group; `position` is where it goes on; `near_count`: of the
    records read, those of a replica to which the leader had sent it."""

    def __init__(
        self, name: str, cluster: SimCluster, rng: random.Random, *, plan: GroupPlan, rack: str
    ) -> None:
        super().__init__(name, cluster, rng)
        self.plan = plan
        self.position = Offset(0)
        self.stays = False
        """Whether nobody else goes on in its place any more."""
        self.read_count = self.near_count = 0
        self._rack = rack
        self._version = rng.choice(FETCH_VERSIONS)
        self._stay_us = rng.choice(STAY_MS) * US_PER_MS
        self._sends_epoch = rng.random() < 0.5
        self._last_epoch = -1
        self._leader = NO_LEADER
        self._near: BrokerId = NO_BROKER
        self._near_until_us = 0

    def start(self) -> None:
        """Read from now on."""
        self._step()

    @property
    def asked(self) -> BrokerId:
        """Whom it asks now; NO_BROKER where it looks for the leader."""
        is_sent = self.scheduler.now_us < self._near_until_us
        return self._near if is_sent else self._leader.broker

    def _step(self) -> None:
        if self.is_stopped:
            return
        if not self.stays and self.rng.random() < HANDOVER:
            self._hand_over()
        broker = self.asked
        if broker == NO_BROKER:
            self._find()
        else:
            self._fetch(broker)

    def _hand_over(self) -> None:
        """Somebody else goes on from here, somewhere else, over other connections."""
        if self.asked != NO_BROKER:
            self.reconnect(self.asked)
        scenario = self.cluster.scenario
        self._rack = self.rng.choice((*scenario.regions, *scenario.zones))
        self._leader, self._near_until_us = NO_LEADER, 0

    def _again(self, *, finds: bool) -> None:
        """At the leader, after a while."""
        self._near_until_us = 0
        if finds:
            self._leader = NO_LEADER
        self.scheduler.after(self.rng.randint(*AGAIN_MS) * US_PER_MS, self._step)

    def _find(self) -> None:
        def end(found: Leadership | None) -> None:
            if found is None or found.broker == NO_BROKER:
                self._again(finds=True)
            else:
                self._leader = found
                self._step()

        broker = self.rng.choice(self.cluster.scenario.brokers)
        name = self.plan.name
        self.lookup(broker, lambda member, *done: ask_leadership(member, name, *done), end)

    def _fetch(self, broker: BrokerId) -> None:
        is_near = broker == self._near and self.scheduler.now_us < self._near_until_us
        sends_epoch = self._sends_epoch and self._version >= 12
        wanted = FetchPartition(
            partition=0,
            current_leader_epoch=self._leader.epoch,
            fetch_offset=self.position,
            last_fetched_epoch=self._last_epoch if sends_epoch else -1,
            partition_max_bytes=self.rng.choice(READ_BYTES),
        )
        request = FetchRequest(
            max_wait_ms=self.rng.choice(WAIT_MS),
            min_bytes=1,
            max_bytes=wanted.partition_max_bytes,
            topics=[FetchTopic(topic=self.plan.name, partitions=[wanted])],
            rack_id=self._rack,
        )

        def question(
            member: BrokerMember, found: Callable[[_Answer], None], closed: Closed
        ) -> None:
            def on_answer(answer: FetchResponse) -> None:
                one = answer.responses[0].partitions[0]
                found((one, self._tell(one, Offset(wanted.fetch_offset), member)))

            member.ask(
                request,
                FetchResponse,
                self._version,
                on_answer=on_answer,
                on_closed=closed,
                connection=self.connection,
            )

        self.lookup(broker, question, lambda one: self._on_fetched(one, is_near=is_near))

    def _tell(self, one: PartitionData, position: Offset, member: BrokerMember) -> Offset:
        """Inside the broker: what it answers is a fact. Returns where to go on."""
        replica = member.replication.replicas.get(self.plan.group)
        subject = Subject(self.plan.group, position)
        if one.diverging_epoch.end_offset >= 0 and not self._may_be_gone(
            Offset(one.diverging_epoch.end_offset)
        ):
            message = f"broker {member.broker} says that the log parts from what {self.name} read"
            self.cluster.checker.fail(f"NoReadOfWhatDisappeared: {message}", subject)
        if one.error_code == Error.OFFSET_OUT_OF_RANGE and replica is not None:
            return self._go_on_from(replica, position)
        if one.error_code or replica is None or one.preferred_read_replica != NO_BROKER:
            return position
        try:
            found = self.cluster.values.read(bytes(_data_of(one)))
        except ValueError as error:
            message = f"group {self.plan.group}: broker {member.broker}: {error}"
            self.cluster.checker.fail(f"NoDamageServed: {message}", subject)
            return position
        records = [record for record in found if record[0] >= position]
        self.cluster.checker.records_read(fact_of(self.name, member, replica, position, records))
        return position

    def _go_on_from(self, replica: Replica, position: Offset) -> Offset:
        """Inside a broker that does not have the position: where its log begins, or what is
        committed there. Of a leader only what never was can have gone."""
        start, end = replica.local_log_start_offset, committed_end(replica)
        is_lost = position > replica.log_end_offset and replica.can_serve_reads
        if is_lost and not self._may_be_gone(replica.log_end_offset):
            message = f"{replica.name} ends at {end}, and {self.name} has read up to {position}"
            subject = Subject(self.plan.group, position)
            self.cluster.checker.fail(f"NoReadOfWhatDisappeared: {message}", subject)
        return start if position < start else end

    def _may_be_gone(self, offset: Offset) -> bool:
        """Whether what it read from there on may have disappeared."""
        cluster = self.cluster
        return cluster.scenario.may_lose_unflushed or cluster.checker.was_at_risk(
            self.plan.group, offset
        )

    def _on_fetched(self, answer: "_Answer | None", *, is_near: bool) -> None:
        """With the client again; None where no answer came in time."""
        one, instead = answer or (None, self.position)
        if one is None:
            self._again(finds=True)
        elif one.error_code == Error.OFFSET_OUT_OF_RANGE:
            if not is_near:
                self.position = instead
            self._again(finds=False)
        elif one.error_code:
            if one.error_code not in REFUSALS:
                message = message_of(one.error_code)
                self.cluster.checker.fail(f"NoUnexpectedError: {self.name} got: {message}")
            self._again(finds=True)
        elif one.diverging_epoch.end_offset >= 0:
            self.position = min(self.position, Offset(one.diverging_epoch.end_offset))
            self._last_epoch = one.diverging_epoch.epoch
            self._again(finds=False)
        elif one.preferred_read_replica != NO_BROKER:
            self._near = BrokerId(one.preferred_read_replica)
            self._near_until_us = self.scheduler.now_us + self._stay_us
            self._step()
        else:
            self._advance(_data_of(one), is_near=is_near)

    def _advance(self, data: bytes | bytearray | memoryview, *, is_near: bool) -> None:
        before = self.position
        for header in iterate_headers(data):
            self.position = max(self.position, header.next_offset)
            self._last_epoch = header.partition_leader_epoch
        self.read_count += self.position - before
        if is_near:
            self.near_count += self.position - before
        # A client has something to do with what it read; and virtual time has to go on.
        self.scheduler.after(self.rng.randint(*WORK_MS) * US_PER_MS, self._step)


def near_readers_of(cluster: SimCluster) -> list[NearReader]:
    """One for each rack of the scenario, for its groups by turns."""
    seed, groups = cluster.scenario.seed, cluster.scenario.groups
    return [
        NearReader(
            f"n{number}",
            cluster,
            random.Random(f"near readers {seed} {number}"),
            plan=groups[number % len(groups)],
            rack=rack,
        )
        for number, rack in enumerate(cluster.scenario.near_racks)
    ]


def _data_of(one: PartitionData) -> bytes | bytearray | memoryview:
    assert one.records is None or isinstance(one.records, bytes | bytearray | memoryview)
    return one.records or b""
