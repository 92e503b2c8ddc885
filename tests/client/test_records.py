"""Records in and out: order, exactly once, and which partition (KIP-98, KIP-480)."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.fake_cluster import FakeCluster, FakeTransport

from strandline.base.errors import ApiError
from strandline.client.cluster import Client
from strandline.client.consumer import ConsumedRecord, Consumer
from strandline.client.errors import CannotConnectError, ClientError
from strandline.client.partitioner import murmur2, partition_for_key
from strandline.client.producer import Producer, ProducerSettings
from strandline.protocol.errors import Error

with warnings.catch_warnings():
    # kafka-python reads its schemas in a way that Python has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python


def world(partitions: int = 3) -> tuple[FakeCluster, Client]:
    cluster = FakeCluster()
    cluster.add_topic("orders", partitions)
    return cluster, Client(cluster.bootstrap, timeout_ms=10_000, transport=FakeTransport(cluster))


def read_all(client: Client, positions: dict[int, int], count: int) -> list[ConsumedRecord]:
    consumer = Consumer(client, "orders", positions)
    records: list[ConsumedRecord] = []
    while len(records) < count:
        records += consumer.poll()
    return records


@given(st.binary(max_size=64))
def test_keys_are_hashed_as_kafkas_clients_hash_them(key: bytes) -> None:
    assert murmur2(key) == murmur2_of_kafka_python(key) & 0xFFFF_FFFF


def test_a_key_goes_where_the_java_client_sends_it() -> None:
    # From the tests of Kafka's own partitioner.
    assert murmur2(b"21") == -973932308 & 0xFFFF_FFFF
    assert murmur2(b"foobar") == -790332482 & 0xFFFF_FFFF
    assert 0 <= partition_for_key(b"foobar", 7) < 7


def test_what_is_sent_is_read_in_order_by_partition() -> None:
    _, client = world()
    producer = Producer(client, "orders")
    for number in range(100):
        producer.send(b"%d" % number, partition=number % 3, headers=[("n", b"%d" % number)])
        if number % 7 == 0:
            producer.flush()
    producer.flush()
    assert sum(one.records_count for one in producer.acknowledged.values()) == 100
    records = read_all(client, {0: 0, 1: 0, 2: 0}, 100)
    for index in range(3):
        mine = [one for one in records if one.partition == index]
        assert [one.offset for one in mine] == list(range(len(mine)))
        assert [one.value for one in mine] == [b"%d" % n for n in range(100) if n % 3 == index]
        assert all(one.headers == (("n", one.value),) for one in mine)


def test_reading_begins_in_the_middle_of_a_batch() -> None:
    _, client = world(1)
    producer = Producer(client, "orders")
    for number in range(10):
        producer.send(b"%d" % number)
    producer.flush()
    assert [one.value for one in read_all(client, {0: 7}, 3)] == [b"7", b"8", b"9"]


def test_records_without_a_key_change_partition_with_each_batch() -> None:
    cluster, client = world()
    producer = Producer(client, "orders")
    for _ in range(3):
        producer.send(b"a")
        producer.send(b"b")
        producer.flush()
    assert [part.end for part in cluster.topics["orders"]] == [2, 2, 2]


def test_a_full_batch_is_sent_by_itself() -> None:
    cluster, client = world(1)
    producer = Producer(client, "orders", ProducerSettings(batch_bytes=1_000))
    for _ in range(100):
        producer.send(bytes(50))
    assert cluster.topics["orders"][0].end > 80
    assert all(len(batch) <= 1_000 for batch in cluster.topics["orders"][0].batches)


@pytest.mark.parametrize("fault", ["drop", "die", int(Error.NOT_LEADER_OR_FOLLOWER)])
def test_a_batch_whose_answer_is_lost_is_in_the_log_once(fault: str | int) -> None:
    cluster, client = world(1)
    producer = Producer(client, "orders")
    cluster.faults["Produce"] = [fault, fault]
    for round_number in range(3):
        producer.send(b"%d" % round_number)
        producer.flush()
    assert [one.value for one in read_all(client, {0: 0}, 3)] == [b"0", b"1", b"2"]
    assert cluster.topics["orders"][0].end == 3
    assert producer.acknowledged[0].last_offset == 2


def test_production_goes_on_at_the_new_leader() -> None:
    cluster, client = world()
    producer = Producer(client, "orders")
    producer.send(b"a", partition=1)
    producer.flush()
    cluster.down = {2}
    assert isinstance(client.transport, FakeTransport)

    def elect(now_ms: int) -> None:
        cluster.topics["orders"][1].leader = 3

    client.transport.on_sleep = elect
    producer.send(b"b", partition=1)
    producer.flush()
    assert cluster.topics["orders"][1].end == 2
    cluster.down = set()
    cluster.topics["orders"][1].leader = 3
    assert [one.value for one in read_all(client, {1: 0}, 2)] == [b"a", b"b"]


def test_one_dead_leader_does_not_keep_the_others_from_acknowledging() -> None:
    cluster, client = world()
    producer = Producer(client, "orders")
    cluster.faults["Produce"] = [int(Error.NOT_ENOUGH_REPLICAS)]
    for index in range(3):
        producer.send(b"x", partition=index)
    producer.flush()
    assert [part.end for part in cluster.topics["orders"]] == [1, 1, 1]
    assert [name for _, name in cluster.asked].count("Produce") == 4


def test_a_refusal_that_will_not_pass_is_raised_at_once() -> None:
    cluster, client = world(1)
    producer = Producer(client, "orders")
    cluster.faults["Produce"] = [int(Error.MESSAGE_TOO_LARGE)]
    producer.send(b"x")
    with pytest.raises(ApiError, match=r"partition orders-0: .*\(MESSAGE_TOO_LARGE\)"):
        producer.flush()


def test_acks_0_waits_for_nothing() -> None:
    cluster, client = world(1)
    producer = Producer(client, "orders", ProducerSettings(acks=0))
    producer.send(b"x")
    producer.flush()
    assert cluster.topics["orders"][0].end == 1
    assert producer.acknowledged[0].first_offset == -1
    assert "InitProducerId" not in {name for _, name in cluster.asked}


def test_a_partition_that_is_not_there_is_refused() -> None:
    _, client = world(3)
    with pytest.raises(ClientError, match="has no partition 3: its partitions are 0 to 2"):
        Producer(client, "orders").send(b"x", partition=3)


def test_a_poll_is_empty_when_nothing_is_new_and_raises_when_no_leader_answers() -> None:
    cluster, client = world(1)
    consumer = Consumer(client, "orders", {0: 0})
    assert consumer.poll() == []
    cluster.silent.add(cluster.topics["orders"][0].leader)
    began_ms = client.transport.monotonic_ms()
    with pytest.raises(CannotConnectError, match="no answer in time"):
        consumer.poll()
    assert client.transport.monotonic_ms() - began_ms >= client.timeout_ms


def test_reading_goes_on_at_the_new_leader_and_loses_nothing() -> None:
    cluster, client = world(1)
    producer = Producer(client, "orders")
    for number in range(8):
        producer.send(b"%d" % number)
        producer.flush()
    consumer = Consumer(client, "orders", {0: 0})
    values = [one.value for one in consumer.poll()]
    cluster.faults["Fetch"] = ["die", int(Error.NOT_LEADER_OR_FOLLOWER)]
    cluster.topics["orders"][0].leader = 2
    while len(values) < 8:
        values += [one.value for one in consumer.poll()]
    assert values == [b"%d" % number for number in range(8)]


def test_an_offset_below_the_start_moves_to_the_start_and_one_beyond_the_end_is_refused() -> None:
    cluster, client = world(1)
    producer = Producer(client, "orders")
    for number in range(4):
        producer.send(b"%d" % number)
        producer.flush()
    cluster.topics["orders"][0].start = 2
    assert [one.value for one in read_all(client, {0: 0}, 2)] == [b"2", b"3"]
    with pytest.raises(ClientError, match="has no offset 9: it is beyond the end"):
        read_all(client, {0: 9}, 1)


def test_a_damaged_batch_is_not_handed_out() -> None:
    cluster, client = world(1)
    producer = Producer(client, "orders")
    producer.send(b"x")
    producer.flush()
    batch = bytearray(cluster.topics["orders"][0].batches[0])
    batch[-1] ^= 1
    cluster.topics["orders"][0].batches[0] = bytes(batch)
    with pytest.raises(ClientError, match="the batch at offset 0 arrived damaged"):
        Consumer(client, "orders", {0: 0}).poll()
