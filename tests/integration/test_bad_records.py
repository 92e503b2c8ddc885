"""Batches with a right checksum and garbage in them, sent to real brokers: none is stored, clients
read on, and a bomb takes no memory for good.

Source: decision 0044."""

import gzip
import random
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor

import cramjam
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.conftest import DevCluster
from tests.integration.raw_client import Broker, leader_of
from tests.integration.test_kill import read_back

from strandline.protocol.errors import Error
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.records.batch import HEADER_BYTES, read_header, seal
from strandline.records.codec import GZIP, LZ4, SNAPPY, ZSTD, compress
from strandline.records.record import Record, build_batch, encode_record

pytestmark = pytest.mark.integration

MIB = 1 << 20
RECORDS = [Record(0, value=b"one"), Record(1, value=b"two")]
PLAIN = b"".join(encode_record(record, 0) for record in RECORDS)
NOISE = random.Random(1).randbytes(500)


def batch_of(payload: bytes, codec: int = 0, count: int = 2) -> bytes:
    """A batch with a right CRC that promises `count` records in `payload`."""
    batch = build_batch([], last_offset_delta=count - 1)
    struct.pack_into(">i", batch, 8, HEADER_BYTES - 12 + len(payload))
    struct.pack_into(">h", batch, 21, codec)
    struct.pack_into(">i", batch, 57, count)
    batch += payload
    header = read_header(batch)
    assert header is not None
    seal(batch, header)
    return bytes(batch)


def linked_lz4(data: bytes) -> bytes:
    compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=True)
    compressor.compress(data)
    return bytes(compressor.finish())


BAD: dict[str, bytes] = {
    "noise": batch_of(NOISE),
    "fewer records": batch_of(PLAIN, count=3),
    "more records": batch_of(PLAIN, count=1),
    "wrong offset deltas": batch_of(PLAIN[len(PLAIN) // 2 :] + PLAIN[: len(PLAIN) // 2]),
    "bytes behind": batch_of(PLAIN + b"\0"),
    "noise as gzip": batch_of(NOISE, GZIP),
    "noise as snappy": batch_of(NOISE, SNAPPY),
    "noise as lz4": batch_of(NOISE, LZ4),
    "noise as zstd": batch_of(NOISE, ZSTD),
    "gzip, cut": batch_of(compress(GZIP, PLAIN)[:-3], GZIP),
    "snappy as lz4": batch_of(compress(SNAPPY, PLAIN), LZ4),
    "linked lz4": batch_of(linked_lz4(PLAIN), LZ4),
    "snappy of Google's framing": batch_of(bytes(cramjam.snappy.compress(PLAIN)), SNAPPY),
    "noise in zstd": batch_of(compress(ZSTD, NOISE), ZSTD),
}


def produce(
    broker: Broker, topic: str, *batches: bytes, acks: int = -1
) -> PartitionProduceResponse:
    """One request for partition 0."""
    data = PartitionProduceData(index=0, records=b"".join(batches))
    request = ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    with broker.connect() as client:
        if acks == 0:
            client.request(request, 9)
            assert client.is_closed()
            return PartitionProduceResponse()
        return client.ask(request, ProduceResponse, 9).responses[0].partition_responses[0]


@pytest.fixture
def leader(cluster: DevCluster, topic_name: str) -> Broker:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic_name, 1, len(cluster.brokers))])[topic_name].result(30)
    return leader_of(cluster, topic_name)


def test_no_bad_batch_is_stored_and_a_consumer_reads_on(
    cluster: DevCluster, topic_name: str, leader: Broker
) -> None:
    expected = {}
    for number, (name, bad) in enumerate(BAD.items()):
        for acks in (-1, 1):
            result = produce(leader, topic_name, bad, acks=acks)
            assert result.error_code == Error.INVALID_RECORD, name
            assert result.error_message, name
        produce(leader, topic_name, bad, acks=0)
        good = b"%d" % number
        codec = number % 5
        assert produce(leader, topic_name, bytes(build_batch([Record(value=good)], codec=codec)))
        expected[good] = (0, number)
    assert read_back(cluster, topic_name, 1) == expected


def test_payloads_of_several_parts_are_stored_and_read(
    cluster: DevCluster, topic_name: str, leader: Broker
) -> None:
    def records(first: bytes, second: bytes) -> bytes:
        return PLAIN.replace(b"one", first).replace(b"two", second)

    frames = compress(ZSTD, PLAIN[:5]) + compress(ZSTD, PLAIN[5:])
    block = bytes(cramjam.snappy.compress_raw(records(b"six", b"ten")))
    behind = gzip.compress(records(b"odd", b"end")) + b"behind"
    for payload, codec in ((frames, ZSTD), (block, SNAPPY), (behind, GZIP)):
        assert produce(leader, topic_name, batch_of(payload, codec)).error_code == 0
    values = (b"one", b"two", b"six", b"ten", b"odd", b"end")
    assert read_back(cluster, topic_name, 1) == {
        value: (0, offset) for offset, value in enumerate(values)
    }


def test_bombs_take_no_memory_for_good(
    cluster: DevCluster, topic_name: str, leader: Broker
) -> None:
    record = encode_record(Record(value=bytes(20 * MIB)), 0)
    squeezer = zlib.compressobj(1, wbits=31)
    bombs = [
        batch_of(squeezer.compress(record) + squeezer.flush(), GZIP, 1),
        batch_of(compress(ZSTD, record), ZSTD, 1),
    ]
    before = leader.memory_bytes()
    with ThreadPoolExecutor(5) as pool:
        answers = pool.map(lambda number: produce(leader, topic_name, bombs[number % 2]), range(10))
        assert {answer.error_code for answer in answers} == {Error.INVALID_RECORD}
    assert leader.memory_bytes() - before < 60 * MIB
