"""Sends records to a topic: batches per partition, acknowledged by the write quorum, each exactly
once.

How:    records gather in one batch per partition. When one is full, or on `flush`, the producer
        seals the batches with producer id and sequence, sends one request to each leader in
        parallel, and waits for the answers. After a retriable error it sends the same batch with
        the same sequence again, until the deadline: the log appends it once.
Owns:   the open batches; the next sequence of each partition.
Source: KIP-98 (idempotent producers); KIP-480 (sticky partitions)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from strandline.base.errors import ApiError
from strandline.client.cluster import Client
from strandline.client.errors import CannotConnectError, ClientError, refusal
from strandline.client.partitioner import partition_for_key
from strandline.client.wire.connection import Connection
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error, is_retriable
from strandline.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.records.record import Record, build_batch, build_encoded_batch

ALL = -1
BATCH_BYTES = 512 * 1024
BATCH_RECORDS_MAX = 100_000
ENCODED_BYTES_MAX = 8 << 20
"""Of batches given to `send_encoded` that are not sent yet: the bound of a request, about."""
RECORD_OVERHEAD_BYTES = 24
"""A bound on what a record takes in a batch beside key, value and headers."""

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """acks: 0, 1 or ALL. codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd. A batch is sent at
    `batch_bytes`. Idempotent only with ALL."""

    acks: int = ALL
    codec: int = 0
    batch_bytes: int = BATCH_BYTES


@dataclass(slots=True)
class _OpenBatch:
    """Records of one partition that have not been sealed yet."""

    records: list[Record] = field(default_factory=list)
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _SealedBatch:
    """A batch that is sent until it is acknowledged. `records_count` for the tally."""

    partition: int
    bytes: bytearray
    records_count: int


@dataclass(slots=True)
class Acknowledged:
    """What one partition has acknowledged: how many records, and their first and last offset (-1
    with acks=0, which acknowledges nothing)."""

    records_count: int = 0
    first_offset: int = -1
    last_offset: int = -1


class Producer:
    """See the module; for one topic. Not for threads."""

    def __init__(
        self, client: Client, topic: str, settings: ProducerSettings | None = None
    ) -> None:
        self._client = client
        self._topic = topic
        self._settings = settings or ProducerSettings()
        self._partition_count = len(client.topic(topic).partitions)
        self._producer_id = -1
        self._producer_epoch = -1
        self._sequences: dict[int, int] = {}
        self._open: dict[int, _OpenBatch] = {}
        self._encoded: dict[int, _SealedBatch] = {}
        self._sticky = 0
        self.acknowledged: dict[int, Acknowledged] = {}
        if self._settings.acks == ALL:
            self._become_idempotent()

    @property
    def partition_count(self) -> int:
        """Partitions of the topic at the producer's start."""
        return self._partition_count

    def send(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> None:
        """Take a record in; sends what has gathered when a batch is full."""
        if partition is None:
            partition = (
                self._sticky if key is None else partition_for_key(key, self._partition_count)
            )
        elif not 0 <= partition < self._partition_count:
            raise ClientError(
                f"topic {self._topic} has no partition {partition}: its partitions are 0 to "
                f"{self._partition_count - 1}"
            )
        if timestamp_ms is None:
            timestamp_ms = self._client.transport.wall_ms()
        size = len(value or b"") + len(key or b"") + RECORD_OVERHEAD_BYTES
        size += sum(len(name) + len(text or b"") + 10 for name, text in headers)
        batch = self._open.get(partition)
        if batch is not None and batch.size_bytes + size > self._settings.batch_bytes:
            self.flush()
            batch = None
        if batch is None:
            batch = self._open[partition] = _OpenBatch()
        batch.records.append(
            Record(
                offset_delta=len(batch.records),
                timestamp=timestamp_ms,
                key=key,
                value=value,
                headers=tuple(headers),
            )
        )
        batch.size_bytes += size
        if len(batch.records) >= BATCH_RECORDS_MAX:
            self.flush()

    def send_encoded(
        self, partition: int, records: bytes, *, records_count: int, timestamps: tuple[int, int]
    ) -> None:
        """Take in a batch of records that are encoded already, with the offset deltas 0, 1, 2...

        `timestamps`: the base that they count from, and the highest of them. Sends what has
        gathered if the partition has a batch already, or if there is much."""
        assert 0 <= partition < self._partition_count, f"partition {partition}"
        if partition in self._open or partition in self._encoded:
            self.flush()
        sequence = self._next_sequence(partition, records_count)
        batch = build_encoded_batch(
            records,
            records_count=records_count,
            timestamps=timestamps,
            codec=self._settings.codec,
            producer=(self._producer_id, self._producer_epoch, sequence),
        )
        self._encoded[partition] = _SealedBatch(partition, batch, records_count)
        if sum(len(one.bytes) for one in self._encoded.values()) >= ENCODED_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        """Send everything that has gathered; returns once all of it is acknowledged."""
        pending = {index: self._seal(index, batch) for index, batch in sorted(self._open.items())}
        pending |= self._encoded
        self._open.clear()
        self._encoded.clear()
        self._sticky = (self._sticky + 1) % self._partition_count
        if pending:
            self._client.wait_throttled()
            self._client.attempt(lambda until: self._send_all(pending, until))

    # ---- sealing ---------------------------------------------------------------------------------

    def _become_idempotent(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

        def ask(until: int) -> InitProducerIdResponse:
            answer = self._client.ask_any(request, InitProducerIdResponse, deadline_ms=until)
            if answer.error_code:
                raise refusal(answer.error_code, "a producer id")
            return answer

        answer = self._client.attempt(ask)
        self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch

    def _seal(self, partition: int, batch: _OpenBatch) -> _SealedBatch:
        count = len(batch.records)
        sequence = self._next_sequence(partition, count)
        return _SealedBatch(
            partition=partition,
            bytes=build_batch(
                batch.records,
                codec=self._settings.codec,
                producer_id=self._producer_id,
                producer_epoch=self._producer_epoch,
                base_sequence=sequence,
            ),
            records_count=count,
        )

    def _next_sequence(self, partition: int, count: int) -> int:
        """The base sequence of the partition's next batch, of so many records; -1 without an id."""
        if self._producer_id < 0:
            return -1
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = (sequence + count) & 0x7FFF_FFFF
        return sequence

    # ---- sending ---------------------------------------------------------------------------------

    def _send_all(self, pending: dict[int, _SealedBatch], until: int) -> None:
        """Send pending batches once; acknowledged ones leave the list. Raises the first error."""
        client = self._client
        leaders = client.leaders(self._topic, list(pending), deadline_ms=until)
        asked: list[tuple[Connection, list[int]]] = []
        failure: CannotConnectError | ApiError | None = None
        for leader in sorted(set(leaders.values())):
            mine = [index for index, leads in leaders.items() if leads == leader]
            try:
                connection = self._ask(leader, [pending[index] for index in mine], until)
                asked.append((connection, mine))
            except CannotConnectError as error:
                failure = error
        for connection, mine in asked:
            try:
                failure = self._take_answer(connection, mine, pending, until) or failure
            except CannotConnectError as error:
                failure = error
        if failure is not None:
            raise failure

    def _ask(self, leader: BrokerId, batches: Sequence[_SealedBatch], until: int) -> Connection:
        request = ProduceRequest(
            acks=self._settings.acks,
            timeout_ms=self._client.left_ms(until),
            topic_data=[
                TopicProduceData(
                    name=self._topic,
                    partition_data=[
                        PartitionProduceData(index=batch.partition, records=batch.bytes)
                        for batch in batches
                    ],
                )
            ],
        )
        connection = self._client.connection(leader, until)
        connection.send(
            request, self._client.left_ms(until), expects_answer=self._settings.acks != 0
        )
        return connection

    def _take_answer(
        self, connection: Connection, mine: list[int], pending: dict[int, _SealedBatch], until: int
    ) -> ApiError | None:
        """Read one leader's answer; returns an error that may pass, raises one that will not."""
        if self._settings.acks == 0:
            for index in mine:
                self._tally(pending.pop(index), -1)
            return None
        answer = connection.receive(ProduceResponse, self._client.left_ms(until))
        failure: ApiError | None = None
        for one in (one for topic in answer.responses for one in topic.partition_responses):
            code = one.error_code
            if code in (Error.NONE, Error.DUPLICATE_SEQUENCE_NUMBER):
                self._tally(pending.pop(one.index), one.base_offset)
            elif is_retriable(code):
                failure = self._refusal(one)
            else:
                raise self._refusal(one)
        return failure

    def _refusal(self, one: PartitionProduceResponse) -> ApiError:
        return refusal(one.error_code, f"partition {self._topic}-{one.index}", one.error_message)

    def _tally(self, batch: _SealedBatch, base_offset: int) -> None:
        tally = self.acknowledged.setdefault(batch.partition, Acknowledged())
        tally.records_count += batch.records_count
        if base_offset >= 0:
            if tally.first_offset < 0:
                tally.first_offset = base_offset
            tally.last_offset = base_offset + batch.records_count - 1
