"""Producers as Kafka's clients behave: several batches in flight, retries, idempotence, acks.

Why:    duplicates, losses and reordering arise where a client retries; the retries must be those
        of a real client.
How:    batches wait in order. At most five are in flight, counted from the oldest unfinished one. A
        batch that failed or timed out is sent again once it is the oldest, before any newer one. If
        the broker answers that the oldest batch is out of sequence, the producer counts from 0 in
        its next epoch; that answer must be right. Values are `name/number/filling`, all different.
Owns:   the batches that are not finished.
Source: Kafka's Java producer (Sender, TransactionManager.canRetry,
        RecordAccumulator.shouldStopDrainBatchesForPartition); KIP-98, KIP-360."""

import random
from collections import deque
from functools import partial
from itertools import islice

from strandline.model.ids import NO_BROKER, BrokerId, Offset
from strandline.protocol.errors import Error
from strandline.replication.leader.appender import NO_ACKS
from strandline.replication.leader.requests import AppendResult
from strandline.simulation.clients.clients import Client
from strandline.simulation.clients.connections import Exchange
from strandline.simulation.clients.lookups import NO_PRODUCER_ID, ask_producer_id
from strandline.simulation.clients.values import make_batch
from strandline.simulation.invariants.facts import NO_EPOCH, Acknowledged, Produced, Subject
from strandline.simulation.invariants.superseding import TOMBSTONE
from strandline.simulation.scenarios.scenario import ProducerPlan
from strandline.simulation.world.clock import WALL_START_MS
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.member import Member
from strandline.simulation.world.scheduler import US_PER_MS, ScheduledEvent
from strandline.storage.producers.producers import SEQUENCE_COUNT

INFLIGHT_MAX = 5
WAITING_MAX = 20
REQUEST_TIMEOUT_MS = 1_500
RETRY_MS = 50
RECORDS_MAX = 4

RETRIABLE = {
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.NOT_ENOUGH_REPLICAS,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
    Error.KAFKA_STORAGE_ERROR,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.REQUEST_TIMED_OUT,
}


class _Batch:
    """`attempt` tells late answers to earlier attempts from those to the present one.
    `is_pausing`: it failed, and the pause before its next attempt is not over."""

    __slots__ = (
        "attempt",
        "epoch",
        "in_flight",
        "is_done",
        "is_pausing",
        "made_ms",
        "sequence",
        "timeout",
        "values",
    )

    def __init__(self, values: list[bytes], *, epoch: int, sequence: int, made_ms: int) -> None:
        self.values = values
        self.epoch = epoch
        self.sequence = sequence
        self.made_ms = made_ms
        self.attempt = 0
        self.in_flight = False
        self.is_done = False
        self.is_pausing = False
        self.timeout: ScheduledEvent | None = None


class Producer(Client):
    """Produces the batches of its plan, a few at a time, and retries until each is acknowledged."""

    def __init__(
        self, plan: ProducerPlan, cluster: SimCluster, rng: random.Random, *, producer_id: int
    ) -> None:
        super().__init__(plan.name, cluster, rng)
        self.plan = plan
        self.acknowledged_count = 0
        self._producer_id = producer_id if plan.is_idempotent else NO_PRODUCER_ID
        if cluster.scenario.has_brokers:
            self._producer_id = NO_PRODUCER_ID  # Brokers give them out.
        self._tombstone_ratio = cluster.scenario.tombstone_ratio if plan.acks == -1 else 0.0
        self._next_number = 0
        self._epoch = 0
        self._next_sequence = plan.first_sequence
        self._batches: deque[_Batch] = deque()
        self._leader: BrokerId = NO_BROKER
        self._is_looking_up = False

    @property
    def is_idle(self) -> bool:
        """Whether everything produced is answered."""
        return not self._batches

    def start(self) -> None:
        """Produce from now on."""
        self.is_stopped = False
        self._tick()

    def _tick(self) -> None:
        if self.is_stopped:
            return
        if len(self._batches) < WAITING_MAX:
            self._batches.append(self._make_batch())
            self._pump()
        pause_ms = self.rng.randint(1, 2 * self.plan.interval_ms)
        self.scheduler.after(pause_ms * US_PER_MS, self._tick)

    def _make_batch(self) -> _Batch:
        values = []
        for _ in range(self.rng.randint(1, RECORDS_MAX)):
            filling = b"." * self.rng.randint(0, self.plan.value_bytes_max)
            if self._tombstone_ratio and self.rng.random() < self._tombstone_ratio:
                filling = TOMBSTONE
            values.append(b"%s/%d/%s" % (self.name.encode(), self._next_number, filling))
            self._next_number += 1
        sequence = self._next_sequence
        self._next_sequence = (sequence + len(values)) % SEQUENCE_COUNT
        made_ms = WALL_START_MS + self.scheduler.now_us // US_PER_MS
        return _Batch(values, epoch=self._epoch, sequence=sequence, made_ms=made_ms)

    def _pump(self) -> None:
        if self.cluster.scenario.has_brokers and not self._is_prepared():
            return
        for number, batch in enumerate(list(islice(self._batches, INFLIGHT_MAX))):
            if batch.is_pausing and self.plan.is_idempotent:
                break
            if batch.in_flight or batch.is_done:
                continue
            if batch.attempt and number:
                break
            self._send(batch)
        if self._batches and self._batches[0].is_done:
            self._drop_finished()

    def _is_prepared(self) -> bool:
        """Whether it has all that it must ask whole brokers for; asks if not."""
        if self._leader != NO_BROKER and self._has_id:
            return True
        if self._batches and not self._is_looking_up:
            self._is_looking_up = True
            if self._has_id:
                self.seek_leader(self.plan.group, self._on_leader)
            else:
                broker = self.rng.choice(self.cluster.scenario.brokers)
                self.lookup(broker, ask_producer_id, self._on_producer_id)
        return False

    @property
    def _has_id(self) -> bool:
        return not self.plan.is_idempotent or self._producer_id != NO_PRODUCER_ID

    def _on_leader(self, leader: BrokerId) -> None:
        self._is_looking_up = False
        self._leader = leader
        if leader == NO_BROKER:
            self.scheduler.after(self.rng.randint(1, 2 * RETRY_MS) * US_PER_MS, self._pump)
        else:
            self._pump()

    def _on_producer_id(self, producer_id: int | None) -> None:
        self._is_looking_up = False
        if producer_id is None or producer_id == NO_PRODUCER_ID:
            self.scheduler.after(self.rng.randint(1, 2 * RETRY_MS) * US_PER_MS, self._pump)
            return
        self.cluster.checker.producer_id_given(self.name, producer_id)
        self._producer_id = producer_id
        self._pump()

    def _send(self, batch: _Batch) -> None:
        batch.attempt += 1
        batch.in_flight = True
        attempt = batch.attempt
        if self._leader == NO_BROKER:
            self._leader = self.find_leader(self.plan.group)
        if self._leader == NO_BROKER:
            self._retry_later(batch, attempt)
            return
        broker = self._leader
        self.cluster.checker.produced(
            Produced(self.plan.group, self.name, broker, attempt, batch.values)
        )
        buffer = make_batch(
            batch.values,
            producer_id=self._producer_id,
            producer_epoch=batch.epoch,
            base_sequence=batch.sequence,
            timestamp_ms=batch.made_ms,
            key_count=self.cluster.scenario.key_count,
        )
        self.ask(
            broker,
            partial(self._replicate, batch, attempt, buffer),
            lambda: self._on_refused(batch, attempt),
        )
        if self.plan.acks == NO_ACKS:
            self._finish(batch)
            return
        batch.timeout = self.scheduler.after(
            REQUEST_TIMEOUT_MS * US_PER_MS, lambda: self._on_timeout(batch, attempt, broker)
        )

    def _replicate(
        self,
        batch: _Batch,
        attempt: int,
        buffer: bytearray,
        member: Member,
        exchange: Exchange,
    ) -> None:
        """Inside the broker."""

        def done(result: AppendResult) -> None:
            self._on_done(batch, member, result)
            exchange.answer(lambda: self._on_answer(batch, attempt, result))

        member.produce(self.plan.group, buffer, acks=self.plan.acks, done=done)

    def _on_done(self, batch: _Batch, member: Member, result: AppendResult) -> None:
        """Still inside the broker: what is said here is a promise."""
        if result.error_code == Error.NONE and self.plan.acks != NO_ACKS:
            replica = member.replication.replicas.get(self.plan.group)
            self.cluster.checker.acknowledged(
                Acknowledged(
                    group=self.plan.group,
                    producer=self.name,
                    is_idempotent=self.plan.is_idempotent,
                    acks=self.plan.acks,
                    base_offset=Offset(result.base_offset),
                    values=batch.values,
                    broker=member.broker,
                    epoch=NO_EPOCH if replica is None else replica.epoch,
                )
            )

    def _on_answer(self, batch: _Batch, attempt: int, result: AppendResult) -> None:
        if batch.is_done or batch.attempt != attempt:
            return
        if result.error_code == Error.NONE:
            self.acknowledged_count += 1
            self._finish(batch)
            self._drop_finished()
        elif result.error_code in RETRIABLE:
            if result.error_code != Error.OUT_OF_ORDER_SEQUENCE_NUMBER:
                self._leader = NO_BROKER
            elif batch is self._batches[0]:
                self._begin_epoch()
            self._retry_later(batch, attempt)
        else:
            self.cluster.checker.fail(
                f"NoUnexpectedError: {self.name} was told {result.error_code} ({result.message})",
                Subject(self.plan.group, values=tuple(batch.values)),
            )

    def _on_timeout(self, batch: _Batch, attempt: int, broker: BrokerId) -> None:
        """No answer in time: the connection is given up."""
        if not batch.is_done and batch.attempt == attempt:
            self.reconnect(broker)
            self._on_refused(batch, attempt)

    def _on_refused(self, batch: _Batch, attempt: int) -> None:
        """No connection, or no answer in time."""
        if not batch.is_done and batch.attempt == attempt:
            self._leader = NO_BROKER
            self._retry_later(batch, attempt)

    def _retry_later(self, batch: _Batch, attempt: int) -> None:
        self._cancel_timeout(batch)
        batch.is_pausing = True
        delay_ms = self.rng.randint(1, 2 * RETRY_MS)

        def retry() -> None:
            if not batch.is_done and batch.attempt == attempt:
                batch.in_flight = batch.is_pausing = False
                self._pump()

        self.scheduler.after(delay_ms * US_PER_MS, retry)

    def _begin_epoch(self) -> None:
        """The broker has lost count: number what is not finished from 0, in the next epoch."""
        self.cluster.trace.add(self.name, f"begins its epoch {self._epoch + 1}")
        self._epoch += 1
        self._next_sequence = 0
        for batch in self._batches:
            batch.epoch = self._epoch
            batch.sequence = self._next_sequence
            self._next_sequence = (batch.sequence + len(batch.values)) % SEQUENCE_COUNT

    def _finish(self, batch: _Batch) -> None:
        batch.is_done = True
        self._cancel_timeout(batch)

    def _cancel_timeout(self, batch: _Batch) -> None:
        if batch.timeout is not None:
            batch.timeout.cancel()
            batch.timeout = None

    def _drop_finished(self) -> None:
        while self._batches and self._batches[0].is_done:
            self._batches.popleft()
        self._pump()
