"""Hostile bytes on a real socket are refused, and the next client is served.

Source: reliability reference 4, row by row."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from tests.broker.broker_world import BrokerWorld, ObedientReplica, batch_of

from strandline.broker.server.limits import MIB, ServerLimits
from strandline.broker.server.server import Server
from strandline.network.loop_clock import LoopClock
from strandline.protocol.codec import decode
from strandline.protocol.errors import Error
from strandline.protocol.headers import (
    decode_response_header,
    encode_request,
)
from strandline.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.protocol.table import Message
from strandline.replication.memory_budget import MemoryBudget

DEADLINE_S = 60
R = TypeVar("R", bound=Message)


class Victim:
    """A broker with the topic `t`, on a real port."""

    def __init__(self, world: BrokerWorld, replica: ObedientReplica, server: Server) -> None:
        self.world = world
        self.replica = replica
        self.server = server

    async def connect(self) -> "Attacker":
        return Attacker(*await asyncio.open_connection("127.0.0.1", self.server.port))

    async def assert_alive(self) -> None:
        client = await self.connect()
        answer = await client.ask(ApiVersionsRequest("tester", "1"), ApiVersionsResponse, 3)
        assert answer.error_code == 0
        await client.close()


class Attacker:
    """A raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    def send(self, request: Message, version: int) -> None:
        frame = encode_request(request, version, correlation_id=1, client_id="x")
        self.writer.write(struct.pack(">i", len(frame)) + frame)

    async def ask(self, request: Message, answer: type[R], version: int) -> R:
        self.send(request, version)
        async with asyncio.timeout(DEADLINE_S):
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            frame = await self._reader.readexactly(size)
        _, position = decode_response_header(frame, request.API_KEY, version)
        return decode(answer, frame, position, version)[0]

    async def is_closed(self) -> bool:
        async with asyncio.timeout(DEADLINE_S):
            try:
                return await self._reader.read() == b""
            except ConnectionResetError:
                return True

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            pass


def run(attack: Callable[[Victim], Awaitable[None]]) -> None:
    """Attack, then see that the broker lives and holds nothing of the attacker's."""
    world = BrokerWorld()
    (replica,) = world.add_topic("t")

    async def main() -> None:
        server = Server(
            router=world.router,
            clock=LoopClock(asyncio.get_running_loop()),
            limits=ServerLimits(),
            memory=MemoryBudget(MIB),
        )
        await server.start("127.0.0.1", 0)
        victim = Victim(world, replica, server)
        try:
            await attack(victim)
            await victim.assert_alive()
        finally:
            server.stop()
        assert (server.inflight_bytes, server.partial_bytes) == (0, 0)

    asyncio.run(main())
    world.close()


def frame(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 1, -1)


@pytest.mark.parametrize(
    ("what", "data"),
    [
        ("above socket.request.max.bytes", struct.pack(">i", 100 * MIB + 1)),
        ("a negative length", struct.pack(">i", -(2**31))),
        ("an empty frame", struct.pack(">i", 0)),
        ("http", b"GET /metrics HTTP/1.1\r\n\r\n"),
        ("tls", bytes.fromhex("1603010200010001fc0303")),
        ("an unknown API", frame(header(777, 0))),
        ("a broker's API", frame(header(4, 7), bytes(40))),
        ("an old version", frame(header(0, 2), bytes(40))),
        ("a new version", frame(header(3, 99), bytes(40))),
        ("a body that is cut", frame(header(3, 1), b"\0\0\0\1\0\5ab")),
        ("more topics than bytes", frame(header(3, 1), struct.pack(">i", 2**31 - 1))),
        ("a negative count", frame(header(3, 1), struct.pack(">i", -7))),
        ("a string longer than the frame", frame(header(3, 1), b"\0\0\0\1\x7f\xffa")),
        ("a client id longer than the frame", frame(struct.pack(">hhih", 3, 1, 1, 32_000))),
        ("a varint without an end", frame(header(3, 9), b"\0" + b"\xff" * 20)),
        ("text that is not utf-8", frame(header(3, 1), b"\0\0\0\1\0\2\xff\xfe")),
        ("too many tagged fields", frame(header(18, 3), b"\xff\xff\x7f" + bytes(10))),
        ("random bytes", frame(bytes(range(256)))),
    ],
)
def test_what_is_no_request_closes_the_connection(what: str, data: bytes) -> None:
    async def attack(victim: Victim) -> None:
        attacker = await victim.connect()
        attacker.writer.write(data)
        assert await attacker.is_closed(), what
        await attacker.close()

    run(attack)


def test_api_versions_of_the_future_is_answered_in_version_0() -> None:
    async def attack(victim: Victim) -> None:
        attacker = await victim.connect()
        attacker.writer.write(frame(header(18, 99)))
        async with asyncio.timeout(DEADLINE_S):
            answer = await attacker._reader.readexactly(20)
        assert answer == struct.pack(">iihihhh", 16, 1, 35, 1, 18, 0, 5)
        again = await attacker.ask(ApiVersionsRequest("tester", "1"), ApiVersionsResponse, 4)
        assert again.error_code == 0
        await attacker.close()

    run(attack)


def damaged(position: int, value: int) -> bytearray:
    batch = batch_of(b"one", b"two")
    batch[position] = value
    return batch


@pytest.mark.parametrize(
    ("what", "records"),
    [
        ("crc", damaged(20, 0xAB)),
        ("length", damaged(11, 0xFF)),
        ("negative length", damaged(8, 0x80)),
        ("count", damaged(60, 9)),
        ("last offset delta", damaged(26, 9)),
        ("magic", damaged(16, 1)),
        ("codec", damaged(22, 6)),
        ("second batch", batch_of(b"fine") + damaged(20, 0xAB)),
        ("half a header", batch_of(b"fine")[:40]),
        ("no batch", b"hello"),
    ],
)
def test_a_broken_batch_is_an_error_and_later_reads_are_sound(
    what: str, records: bytes | bytearray
) -> None:
    async def attack(victim: Victim) -> None:
        client = await victim.connect()
        codes = []
        for batch in (batch_of(b"before"), records, batch_of(b"after")):
            data = [PartitionProduceData(records=batch)]
            request = ProduceRequest(
                acks=1, timeout_ms=1_000, topic_data=[TopicProduceData("t", partition_data=data)]
            )
            answer = await client.ask(request, ProduceResponse, 9)
            codes.append(answer.responses[0].partition_responses[0].error_code)
        assert codes[0] == codes[2] == 0
        assert codes[1] != 0
        assert victim.replica.log_end_offset == 2
        wanted = FetchPartition(fetch_offset=0, partition_max_bytes=MIB)
        fetch = FetchRequest(topics=[FetchTopic("t", partitions=[wanted])])
        got = await client.ask(fetch, FetchResponse, 12)
        stored = got.responses[0].partitions[0].records
        assert isinstance(stored, memoryview)
        assert stored.tobytes().count(b"before") == stored.tobytes().count(b"after") == 1
        await client.close()

    run(attack)


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "a/b", ".", "..", "", "nul\0", "line\nbreak", "naïve", "x" * 250],
)
def test_an_illegal_topic_name_is_refused_by_metadata_and_produce(name: str) -> None:
    async def attack(victim: Victim) -> None:
        victim.world.cluster.cluster_configs["auto.create.topics.enable"] = "true"
        client = await victim.connect()
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        metadata = await client.ask(asked, MetadataResponse, 9)
        assert metadata.topics[0].error_code == Error.INVALID_TOPIC_EXCEPTION
        data = [PartitionProduceData(records=batch_of(b"a"))]
        request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name, partition_data=data)])
        answer = await client.ask(request, ProduceResponse, 9)
        refused = answer.responses[0].partition_responses[0].error_code
        assert refused == Error.UNKNOWN_TOPIC_OR_PARTITION
        assert victim.world.controller.commands == []
        await client.close()

    run(attack)


@pytest.mark.parametrize(
    ("topic", "index", "offset", "code"),
    [
        ("t", 0, -1, Error.OFFSET_OUT_OF_RANGE),
        ("t", 0, 2**63 - 1, Error.OFFSET_OUT_OF_RANGE),
        ("t", -1, 0, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 2**31 - 1, 0, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", 0, 0, Error.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_fetch_of_what_is_not_there_is_an_error_for_that_partition(
    topic: str, index: int, offset: int, code: Error
) -> None:
    async def attack(victim: Victim) -> None:
        client = await victim.connect()
        wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=MIB)
        request = FetchRequest(max_wait_ms=2**31 - 1, min_bytes=2**31 - 1)
        request.topics = [FetchTopic(topic, partitions=[wanted])]
        answer = await client.ask(request, FetchResponse, 12)
        assert answer.responses[0].partitions[0].error_code == code
        await client.close()

    run(attack)


def test_a_hundred_long_polls_hold_nobody_up_and_go_with_their_clients() -> None:
    async def attack(victim: Victim) -> None:
        wanted = FetchPartition(fetch_offset=0, partition_max_bytes=MIB)
        request = FetchRequest(max_wait_ms=2**31 - 1, min_bytes=1)
        request.topics = [FetchTopic("t", partitions=[wanted])]
        attackers = [await victim.connect() for _ in range(100)]
        for attacker in attackers:
            attacker.send(request, 12)
        await victim.assert_alive()
        watchers = victim.replica.watchers.watches
        async with asyncio.timeout(DEADLINE_S):
            while len(watchers) < 100:
                await victim.assert_alive()
            for attacker in attackers:
                await attacker.close()
            while watchers:
                await victim.assert_alive()

    run(attack)
