"""Reads a topic, or some of its partitions, from given offsets, without a group.

How:    one fetch is in flight to each leader; `poll` waits until one of them answers, and fetches
        from that leader again at once. If a leader moved, the consumer looks it up again. It checks
        the CRC of batches and skips control batches.
Owns:   the next offset of every partition; a connection to each leader.
Source: kafka-protocol reference 7 and 8.1."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from strandline.client.admin import EARLIEST, list_offsets
from strandline.client.brokers import PAUSE_FIRST_MS
from strandline.client.cluster import Client
from strandline.client.errors import CannotConnectError, ClientError, refusal
from strandline.client.wire.connection import Connection
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error, is_retriable
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from strandline.records.batch import BatchHeader, crc_matches, iterate_headers
from strandline.records.record import decode_records

FETCH_WAIT_MS = 500
FETCH_BYTES_MAX = 16 * 1024 * 1024
PARTITION_BYTES_MAX = 1024 * 1024
ANSWER_MARGIN_MS = 500
"""How long an answer may be under way, beyond the FETCH_WAIT_MS that a leader may wait itself."""
DEADLINE_DIVISOR = 3
"""This part of the client's deadline is added; the rest is for retries."""


@dataclass(frozen=True, slots=True)
class ConsumedRecord:
    """A record, and where it lies."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Consumer:
    """See the module; for one topic. `positions`: {partition: next offset}."""

    def __init__(self, client: Client, topic: str, positions: Mapping[int, int]) -> None:
        self._client = client
        self._topic = topic
        self.positions = dict(positions)
        self.high_watermarks: dict[int, int] = {}
        # Fetches in flight: {leader: (its connection, the partitions asked for)}.
        self._asked: dict[BrokerId, tuple[Connection, list[int]]] = {}
        # One connection per leader, beside the client's own, which answer questions meanwhile.
        self._connections: dict[BrokerId, Connection] = {}
        # Records that have come in and were not handed out yet: a retry must not lose them.
        self._records: list[ConsumedRecord] = []

    def poll(self) -> list[ConsumedRecord]:
        """What has come in when the next leader answers, in order for each partition.

        A leader with nothing new answers after FETCH_WAIT_MS: then this is empty. Raises what keeps
        it from reading for as long as the client's deadline, the silence of all leaders included.
        While the client is over a quota, it waits as told.
        """
        self._client.wait_throttled(self._connections.values())
        return self._client.attempt(self._poll_once)

    def close(self) -> None:
        """Give up the fetches in flight, and end their connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._asked.clear()

    def _poll_once(self, until: int) -> list[ConsumedRecord]:
        self._ask_idle_leaders(until)
        streams = {connection.stream: leader for leader, (connection, _) in self._asked.items()}
        transport = self._client.transport
        # A leader answers after FETCH_WAIT_MS at the latest; one that does not gets a new request.
        share_ms = self._client.timeout_ms // DEADLINE_DIVISOR
        patience_ms = FETCH_WAIT_MS + ANSWER_MARGIN_MS + share_ms
        ready = transport.wait_readable(list(streams), patience_ms)
        if not ready:
            self.close()
            raise CannotConnectError(f"topic {self._topic}: no leader answers")
        for stream in ready:
            connection, _ = self._asked.pop(streams[stream])
            try:
                answer = connection.receive(FetchResponse, self._client.left_ms(until))
            except CannotConnectError:
                continue  # The next poll looks its partitions up again.
            if answer.error_code:
                raise refusal(answer.error_code, f"topic {self._topic}")
            for one in (one for topic in answer.responses for one in topic.partitions):
                self._take(one, until)
        records, self._records = self._records, []
        return records

    def _ask_idle_leaders(self, until: int) -> None:
        """Make sure that a fetch for every partition is in flight."""
        waiting = {index for _, mine in self._asked.values() for index in mine}
        idle = [index for index in self.positions if index not in waiting]
        if not idle:
            return
        leaders = self._client.leaders(self._topic, idle, deadline_ms=until)
        for leader in sorted(set(leaders.values())):
            mine = [index for index in idle if leaders[index] == leader]
            if leader in self._asked:
                # It has a fetch in flight: these are asked for together with the others afterwards.
                continue
            request = FetchRequest(
                max_wait_ms=FETCH_WAIT_MS,
                min_bytes=1,
                max_bytes=FETCH_BYTES_MAX,
                topics=[
                    FetchTopic(
                        topic=self._topic,
                        partitions=[
                            FetchPartition(
                                partition=index,
                                fetch_offset=self.positions[index],
                                partition_max_bytes=PARTITION_BYTES_MAX,
                            )
                            for index in mine
                        ],
                    )
                ],
            )
            connection = self._connection(leader, until)
            connection.send(request, self._client.left_ms(until))
            self._asked[leader] = (connection, mine)

    def _connection(self, leader: BrokerId, until: int) -> Connection:
        connection = self._connections.get(leader)
        if connection is None or connection.is_closed:
            connection = self._client.open_connection(leader, until)
            self._connections[leader] = connection
        return connection

    def _take(self, one: PartitionData, until: int) -> None:
        index = one.partition_index
        if one.error_code == Error.OFFSET_OUT_OF_RANGE:
            self._refuse_or_reset(index, until)
        elif is_retriable(one.error_code):
            self._client.transport.sleep_ms(PAUSE_FIRST_MS)
        elif one.error_code:
            raise refusal(one.error_code, f"partition {self._topic}-{index}")
        else:
            self.high_watermarks[index] = one.high_watermark
            if one.records is not None:
                assert isinstance(one.records, memoryview)
                self._records.extend(self._records_in(index, one.records))

    def _refuse_or_reset(self, index: int, until: int) -> None:
        """Continue at the log's start if retention has overtaken the position; raise if the
        position is beyond the end."""
        start = list_offsets(
            self._client, self._topic, EARLIEST, partitions=[index], deadline_ms=until
        )[index]
        if self.positions[index] >= start:
            raise ClientError(
                f"partition {self._topic}-{index} has no offset {self.positions[index]}: it is "
                "beyond the end"
            )
        self.positions[index] = start

    def _records_in(self, index: int, data: memoryview) -> Iterator[ConsumedRecord]:
        for header in iterate_headers(data):
            if header.last_offset < self.positions[index]:
                continue
            if not crc_matches(data, header):
                raise ClientError(
                    f"partition {self._topic}-{index}: the batch at offset "
                    f"{header.base_offset} arrived damaged",
                )
            if not header.is_control:
                yield from self._records_of(index, data, header)
            self.positions[index] = header.next_offset

    def _records_of(
        self, index: int, data: memoryview, header: BatchHeader
    ) -> Iterator[ConsumedRecord]:
        batch = data[header.position : header.position + header.size]
        for record in decode_records(batch):
            offset = header.base_offset + record.offset_delta
            if offset >= self.positions[index]:
                yield ConsumedRecord(
                    topic=self._topic,
                    partition=index,
                    offset=offset,
                    timestamp_ms=record.timestamp,
                    key=record.key,
                    value=record.value,
                    headers=tuple(record.headers),
                )
