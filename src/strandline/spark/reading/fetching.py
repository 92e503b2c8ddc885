"""Fetches the record batches of one split, from the nearest replica, one request ahead.

Why:    a task must not wait for the network while it decodes, nor give up when a broker dies.
How:    leader --preferred replica--> replica near the rack --any trouble--> leader.
        A rule against reading is trouble at the replica, and the end of it at the leader.
        The request for the next bytes is sent before the answer is handed over. Errors that a
        retry mends are retried with growing pauses until `stall_ms` pass without a new record.
        Brokers that know topic ids are asked by id, so a topic that was made anew is noticed.
Owns:   the next offset, and while it reads one of the client's connections.
Source: KIP-392 (nearest replica), KIP-516 (topic ids), KIP-74 (the first batch always fits)."""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from uuid import UUID

from strandline.base.errors import ApiError
from strandline.client.brokers import PAUSE_FIRST_MS, PAUSE_MAX_MS
from strandline.client.cluster import Client
from strandline.client.errors import CannotConnectError, ClientError, refusal
from strandline.client.rights import REFUSALS, missing_right
from strandline.client.wire.connection import Connection
from strandline.model.access import Kind, Operation
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.protocol.errors import Error, is_retriable
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from strandline.protocol.table import NO_ID
from strandline.records.batch import HEADER_BYTES, LENGTH_END
from strandline.spark.reading.bounds import EARLIEST, LATEST, name_of
from strandline.spark.reading.cluster import READ_COMMITTED, ClusterReader, id_text, leader_in
from strandline.spark.reading.data_loss import DataLoss
from strandline.spark.reading.options import ReachOptions
from strandline.spark.reading.splits import Split

_LOG = logging.getLogger(__name__)
RACK_VARIABLE = "STRANDLINE_CLIENT_RACK"
FETCH_VERSION_MAX = 17
"""By topic id; the client's other requests name topics."""
ANSWER_BYTES_MIN = 64 << 10
"""The least that a request asks for, however few offsets are left."""
NO_TOPIC_GRACE_MS = 5_000
"""How long brokers may not know a topic before it counts as deleted."""
REPLICA_PATIENCE = 4
"""So many answers without records from a replica, then the leader is asked."""

_NO_TOPIC = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID)
_BASE_OFFSET_AND_LENGTH = Struct(">qi").unpack_from
_LAST_DELTA = Struct(">i").unpack_from
_LAST_DELTA_AT = 23


@dataclass(frozen=True, slots=True)
class Fetched:
    """Whole record batches with offsets from `first_offset` to before `next_offset`. `aborted`:
    (producer id, first offset) of aborted transactions."""

    data: memoryview
    first_offset: int
    next_offset: int
    aborted: list[tuple[int, int]]


def last_whole(data: memoryview) -> tuple[int, int | None]:
    """(where the last whole batch ends in the data, the offset after it); (0, None) if there is no
    whole one."""
    position, last, size = 0, -1, len(data)
    while size - position >= HEADER_BYTES:
        _, length = _BASE_OFFSET_AND_LENGTH(data, position)
        end = position + LENGTH_END + length
        if length < HEADER_BYTES - LENGTH_END or end > size:
            break
        last, position = position, end
    if last < 0:
        return 0, None
    base, _ = _BASE_OFFSET_AND_LENGTH(data, last)
    return position, int(base) + int(_LAST_DELTA(data, last + _LAST_DELTA_AT)[0]) + 1


class SplitFetcher:
    """See the module. `position`: the first offset that was not handed over."""

    def __init__(
        self, client: Client, split: Split, reach: ReachOptions, *, fail_on_data_loss: bool
    ) -> None:
        self._client = client
        self._split = split
        self._reach = reach
        self._loss = DataLoss(fails=fail_on_data_loss)
        self._rack = reach.rack or os.environ.get(RACK_VARIABLE, "")
        self.position = split.start
        self._connection: Connection | None = None
        self._source = NO_BROKER
        """The broker of the connection."""
        self._near = NO_BROKER
        """The replica that the leader prefers for this rack, until it fails."""
        self._near_failed = False
        self._empty_answers = 0
        self._bytes_per_offset = 0.0
        self._pause_ms = PAUSE_FIRST_MS
        self._progress_ms = client.transport.monotonic_ms()
        self._trouble = "no answer has records"

    @property
    def place(self) -> str:
        """The partition, for messages."""
        return name_of((self._split.topic, self._split.partition))

    def close(self) -> None:
        """Give the connection back to the client, which ends one that owes an answer."""
        if self._connection is not None and self._connection.due_count:
            self._connection.close()
        self._connection = None

    def __iter__(self) -> Iterator[Fetched]:
        """The batches of the split, in order; may reach beyond its end. Raises DataLossError,
        ClientError, ApiError."""
        try:
            while self.position < self._split.end:
                fetched = self._fetch()
                if fetched is not None:
                    yield fetched
        finally:
            self.close()

    # ---- one request -----------------------------------------------------------------------------

    def _fetch(self) -> Fetched | None:
        """The next batches, with the request for the following ones sent; None to try again."""
        try:
            connection = self._asked_connection()
            if connection is None:
                return None
            wait_ms = self._reach.fetch_wait_ms + self._reach.request_timeout_ms
            answer = connection.receive(FetchResponse, wait_ms)
            return self._take(answer)
        except CannotConnectError as error:
            self._retry(str(error))
        except ApiError as error:
            if error.code in REFUSALS:
                self._refused(error)
                return None
            if not is_retriable(error.code):
                raise
            self._retry(str(error), code=error.code)
        return None

    def _asked_connection(self) -> Connection | None:
        """A connection with a request in flight; None if the partition is gone."""
        if self._connection is None:
            self._connection = self._connect()
        connection = self._connection
        if connection is not None and not connection.due_count:
            self._wait_throttled(connection)
            self._ask(connection)
        return connection

    def _wait_throttled(self, connection: Connection) -> None:
        """Wait as the broker has told: the client is over a quota. That is no stall."""
        wait_ms = connection.throttled_ms
        if wait_ms:
            self._client.transport.sleep_ms(wait_ms)
            self._progress_ms += wait_ms

    def _connect(self) -> Connection | None:
        deadline_ms = self._client.transport.monotonic_ms() + self._reach.request_timeout_ms
        topic = self._split.topic
        view = self._client.metadata([topic], deadline_ms=deadline_ms)
        leader = leader_in(view, (topic, self._split.partition))
        found = id_text(view.topics[topic].id)
        if self._split.topic_id and found and found != self._split.topic_id:
            self._gone(
                f"topic {topic} was made anew: its id is {found}, {self._split.topic_id} before"
            )
            return None
        near = self._near
        self._source = near if near in view.brokers and not self._near_failed else leader
        return self._client.connection(self._source, deadline_ms)

    def _ask(self, connection: Connection) -> None:
        split = self._split
        left_bytes = int((split.end - self.position) * self._bytes_per_offset * 1.1)
        bytes_max = self._reach.fetch_bytes
        if left_bytes:
            bytes_max = min(bytes_max, left_bytes + ANSWER_BYTES_MIN)
        partition = FetchPartition(
            partition=split.partition,
            fetch_offset=self.position,
            partition_max_bytes=bytes_max,
        )
        topic_id = UUID(split.topic_id) if split.topic_id else NO_ID
        request = FetchRequest(
            max_wait_ms=max(self._reach.fetch_wait_ms, PAUSE_FIRST_MS),
            min_bytes=1,
            max_bytes=bytes_max,
            isolation_level=READ_COMMITTED if self._reach.read_committed else 0,
            topics=[FetchTopic(topic=split.topic, topic_id=topic_id, partitions=[partition])],
            rack_id="" if self._near_failed else self._rack,
        )
        version_max = FETCH_VERSION_MAX if split.topic_id else None
        connection.send(request, self._reach.request_timeout_ms, version_max=version_max)

    # ---- one answer ------------------------------------------------------------------------------

    def _take(self, answer: FetchResponse) -> Fetched | None:
        if answer.error_code:
            raise refusal(answer.error_code, f"partition {self.place}")
        parts = [one for topic in answer.responses for one in topic.partitions]
        if not parts and answer.throttle_time_ms > 0:
            return None
        if len(parts) != 1:
            raise ClientError(f"partition {self.place}: the answer has {len(parts)} partitions")
        (part,) = parts
        if part.error_code == Error.OFFSET_OUT_OF_RANGE:
            self._out_of_range()
            return None
        if part.error_code:
            raise refusal(part.error_code, f"partition {self.place}")
        if part.preferred_read_replica >= 0 and not self._near_failed:
            self._go_near(BrokerId(part.preferred_read_replica))
            return None
        data = part.records
        assert data is None or isinstance(data, memoryview)
        next_offset = last_whole(data)[1] if data else None
        if next_offset is None or next_offset <= self.position:
            self._nothing()
            return None
        assert data is not None
        return self._hand_over(data, next_offset, part)

    def _hand_over(self, data: memoryview, next_offset: int, part: PartitionData) -> Fetched:
        aborted = [(one.producer_id, one.first_offset) for one in part.aborted_transactions or ()]
        fetched = Fetched(data, self.position, next_offset, aborted)
        self._bytes_per_offset = len(data) / (next_offset - self.position)
        self.position = next_offset
        self._empty_answers = 0
        self._pause_ms = PAUSE_FIRST_MS
        self._progress_ms = self._client.transport.monotonic_ms()
        connection = self._connection
        if next_offset < self._split.end and connection and not connection.throttled_ms:
            try:
                self._ask(connection)
            except CannotConnectError:
                self.close()  # Found out here; the next fetch connects again.
        return fetched

    def _go_near(self, replica: BrokerId) -> None:
        """Read from the replica that the leader names for this rack."""
        if replica != self._source:
            self._near = replica
            self.close()

    def _nothing(self) -> None:
        """An answer without records below the split's end: a replica that is behind, or a leader
        whose end moves on."""
        self._trouble = f"broker {self._source} has no records from offset {self.position} on"
        self._empty_answers += 1
        if self._source == self._near and self._empty_answers >= REPLICA_PATIENCE:
            self._leave_near()
        self._check_stalled()

    def _refused(self, error: ApiError) -> None:
        """A rule stands against the read: at the near replica, then the leader is asked."""
        if self._source != self._near or self._near_failed:
            topic = self._split.topic
            raise missing_right(self._client, Operation.READ, Kind.TOPIC, topic) from error
        _LOG.warning("%s, at broker %d: reading at the leader", error, self._source)
        self._leave_near()

    def _leave_near(self) -> None:
        self._near_failed = True
        self._empty_answers = 0
        self.close()

    # ---- trouble ---------------------------------------------------------------------------------

    def _retry(self, trouble: str, *, code: int = Error.NONE) -> None:
        """After an error that a retry mends: pause, then look the leader up again."""
        self._trouble = trouble
        if code in _NO_TOPIC and self._waited_ms() > NO_TOPIC_GRACE_MS:
            self._gone(trouble)
            return
        if self._source == self._near:
            self._leave_near()
        self.close()
        self._source = NO_BROKER
        self._check_stalled()
        self._client.transport.sleep_ms(self._pause_ms)
        self._pause_ms = min(2 * self._pause_ms, PAUSE_MAX_MS)

    def _waited_ms(self) -> int:
        """Since the last records."""
        return self._client.transport.monotonic_ms() - self._progress_ms

    def _check_stalled(self) -> None:
        if self._waited_ms() > self._reach.stall_ms:
            raise ClientError(
                f"partition {self.place}: no progress from offset {self.position} on in "
                f"{self._reach.stall_ms} ms (kafkaConsumer.pollTimeoutMs): {self._trouble}"
            )

    def _out_of_range(self) -> None:
        """The position is not in the log: below its start, or beyond its end."""
        if self._source == self._near:
            self._leave_near()  # It may be behind; only the leader knows.
            return
        cluster = ClusterReader(self._client, read_committed=self._reach.read_committed)
        place = (self._split.topic, self._split.partition)
        start = cluster.offsets({place: EARLIEST})[place]
        end = cluster.offsets({place: LATEST})[place]
        if start <= self.position <= end:
            self._retry(f"partition {self.place}: offset {self.position} is out of range")
            return
        if self.position > end:
            self._gone(f"partition {self.place} ends at offset {end}, before {self.position}")
            return
        gone = min(start, self._split.end)
        self._loss.report(f"partition {self.place}: offsets {self.position} to {gone} are gone")
        self.position = gone

    def _gone(self, what: str) -> None:
        """Nothing of the split's rest is there."""
        self._loss.report(what)
        self.position = self._split.end
