"""Rows to records: the compiled encoding, its twin in Python, and what a topic then holds.

Source: decision 0054; `records.record`, which reads single records."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.client.fake_cluster import FakeCluster, FakeTransport

from strandline.base.errors import OperatorError
from strandline.client.cluster import Client
from strandline.client.errors import ClientError
from strandline.client.partitioner import partition_for_key
from strandline.client.producer import ProducerSettings
from strandline.protocol.errors import Error
from strandline.records.record import decode_batches
from strandline.spark.writing import row_encode, topic_writer
from strandline.spark.writing.arrow_columns import columns_of
from strandline.spark.writing.options import parse_write_options
from strandline.spark.writing.topic_writer import TopicWriter
from strandline.spark.writing.writer import Topics

NOW_MS = 1_700_000_000_000
ENTRY = pa.struct([("key", pa.string()), ("value", pa.binary())])
TYPES = {
    "key": pa.string(),
    "value": pa.binary(),
    "partition": pa.int32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "headers": pa.list_(ENTRY),
}
Row = dict[str, Any]


def random_rows(rng: random.Random, count: int) -> list[Row]:
    def some(limit: int) -> bytes | None:
        return None if rng.random() < 0.2 else rng.randbytes(rng.randrange(limit))

    return [
        {
            "key": rng.choice((None, "", "k", "schlüssel", "x" * rng.randrange(100))),
            "value": some(rng.choice((2, 100, 3_000))),
            "partition": rng.choice((None, None, 0, 1, 2)),
            "timestamp": rng.choice((None, NOW_MS * 1000 + rng.randrange(-(10**9), 10**9))),
            "headers": rng.choice(
                (None, [], [{"key": "h", "value": some(9)}, {"key": "", "value": None}])
            ),
        }
        for _ in range(count)
    ]


def record_batch(rows: list[Row], *names: str) -> pa.RecordBatch:
    names = names or tuple(TYPES)
    return pa.record_batch(
        {name: pa.array([row[name] for row in rows], TYPES[name]) for name in names}
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_encoding_and_its_twin_write_the_same(compiled: ModuleType, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        rows = random_rows(rng, rng.randrange(1, 30))
        names = rng.sample(list(TYPES), rng.randrange(1, len(TYPES) + 1))
        first = rng.randrange(len(rows))
        columns = columns_of(record_batch(rows, *names).slice(first), NOW_MS)
        order = np.array(rng.sample(range(len(rows) - first), len(rows) - first), np.int32)
        outcomes = []
        size, delta = rng.choice((50, 400, 100_000)), rng.choice((0, 70, 9_000))
        for encode in (compiled.encode, row_encode.encode_in_python):
            out = bytearray(size)
            done, end = encode(out, 7, order, delta, NOW_MS, *columns)
            outcomes.append((done, end, out[7:end]))
        assert outcomes[0] == outcomes[1]


def test_keys_have_the_partitions_of_kafkas_partitioner(compiled: ModuleType) -> None:
    rng = random.Random(0)
    keys = [None, b"", *(rng.randbytes(rng.randrange(40)) for _ in range(500))]
    column = columns_of(pa.record_batch({"key": pa.array(keys, pa.binary())}), 0).keys
    assert column is not None
    for count in (1, 7, 300):
        found = [np.empty(len(keys), np.int32) for _ in range(2)]
        compiled.partitions(column, count, found[0])
        row_encode.partitions_in_python(column, count, found[1])
        wanted = [-1 if key is None else partition_for_key(key, count) for key in keys]
        assert found[0].tolist() == found[1].tolist() == wanted


def test_rows_that_columns_lack_are_refused(compiled: ModuleType) -> None:
    columns = columns_of(record_batch(random_rows(random.Random(1), 3)), NOW_MS)
    for row in (3, -1):
        with pytest.raises(ValueError, match="do not have row"):
            compiled.encode(bytearray(99), 0, np.array([row], np.int32), 0, 0, *columns)
    assert columns.values is not None
    beyond = columns.values._replace(content=b"")
    with pytest.raises(ValueError, match="do not have row"):
        rows = np.arange(3, dtype=np.int32)
        compiled.encode(bytearray(9_999), 0, rows, 0, 0, *columns._replace(values=beyond))


@pytest.fixture(params=["compiled", "python"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Of a cluster in memory, by either encoding."""
    if request.param == "python":
        monkeypatch.setattr(row_encode, "_encode", row_encode.encode_in_python)
        monkeypatch.setattr(row_encode, "_partitions", row_encode.partitions_in_python)
    cluster = FakeCluster(3)
    cluster.add_topic("orders", 3)
    cluster.add_topic("returns", 1)
    with Client(cluster.bootstrap, transport=FakeTransport(cluster)) as client:
        yield client


def content(client: Client, topic: str) -> list[list[tuple[int, Any]]]:
    """[(offset, record) of each partition]"""
    transport: Any = client.transport
    logs = transport.cluster.topics[topic]
    return [list(decode_batches(b"".join(log.batches))) for log in logs]


@pytest.mark.parametrize("codec", [0, 4])
@pytest.mark.parametrize("batch_bytes", [300, 20_000])
def test_a_topic_holds_each_row_once_in_its_partition_and_in_order(
    client: Client, codec: int, batch_bytes: int
) -> None:
    rng = random.Random(batch_bytes)
    writer = TopicWriter(client, "orders", ProducerSettings(codec=codec, batch_bytes=batch_bytes))
    wanted: list[list[Any]] = [[], [], []]
    for _ in range(5):
        rows = random_rows(rng, 60)
        for number, row in enumerate(rows):
            row["key"] = row["key"] or f"k{number}"
            key = row["key"].encode()
            partition = row["partition"]
            if partition is None:
                partition = partition_for_key(key, 3)
            headers = tuple((one["key"], one["value"]) for one in row["headers"] or ())
            time = row["timestamp"] and row["timestamp"] // 1000
            wanted[partition].append((key, row["value"], headers, time))
        writer.write(record_batch(rows))
    written = writer.flush()
    for partition, records in enumerate(content(client, "orders")):
        count = len(wanted[partition])
        assert [offset for offset, _ in records] == list(range(count))
        assert written[partition] == (count, 0, count - 1)
        for (_, record), (key, value, headers, time) in zip(
            records, wanted[partition], strict=True
        ):
            assert (record.key, record.value, record.headers) == (key, value, headers)
            assert record.timestamp == (client.transport.wall_ms() if time is None else time)


def test_rows_without_a_key_go_to_one_partition_after_the_other(client: Client) -> None:
    writer = TopicWriter(client, "orders", ProducerSettings())
    for number in range(3):
        writer.write(pa.record_batch({"value": pa.array([b"%d" % number] * 4, pa.binary())}))
    writer.flush()
    found = [{record.value for _, record in log} for log in content(client, "orders")]
    assert found == [{b"0"}, {b"1"}, {b"2"}]


def test_a_batch_has_at_most_so_many_records(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_writer, "BATCH_RECORDS_MAX", 7)
    writer = TopicWriter(client, "returns", ProducerSettings())
    for _ in range(3):
        writer.write(pa.record_batch({"value": pa.array([b"x"] * 10, pa.binary())}))
    assert writer.flush() == {0: (30, 0, 29)}
    assert len(content(client, "returns")[0]) == 30


@pytest.mark.parametrize("fault", ["drop", "die", int(Error.NOT_LEADER_OR_FOLLOWER)])
def test_a_lost_answer_adds_no_row_twice(client: Client, fault: str | int) -> None:
    transport: Any = client.transport
    writer = TopicWriter(client, "orders", ProducerSettings(batch_bytes=400))
    transport.cluster.faults["Produce"] = [fault, fault]
    for number in range(20):
        values = pa.array([b"%d-%d" % (number, at) for at in range(10)], pa.binary())
        writer.write(pa.record_batch({"value": values}))
    written = writer.flush()
    assert not transport.cluster.faults["Produce"]
    assert sum(count for count, _, _ in written.values()) == 200
    found = [record.value for log in content(client, "orders") for _, record in log]
    assert len(found) == len(set(found)) == 200


def test_a_partition_that_is_not_there_is_refused_by_name(client: Client) -> None:
    rows = random_rows(random.Random(2), 3)
    for wrong in (3, -1):
        rows[1]["partition"] = wrong
        writer = TopicWriter(client, "orders", ProducerSettings())
        with pytest.raises(ClientError, match=f"no partition {wrong}: its partitions are 0 to 2"):
            writer.write(record_batch(rows))


def test_a_header_without_a_key_is_refused(client: Client) -> None:
    headers = pa.array([None, [{"key": None, "value": b"x"}]], pa.list_(ENTRY))
    batch = pa.record_batch({"value": pa.array([b"v", b"w"]), "headers": headers})
    with pytest.raises(OperatorError, match="a header without a key"):
        TopicWriter(client, "orders", ProducerSettings()).write(batch)
    TopicWriter(client, "orders", ProducerSettings()).write(batch.slice(0, 1))


def test_times_are_cut_to_milliseconds(client: Client) -> None:
    times = [datetime(1970, 1, 1, 0, 0, 1, 500_999, UTC), datetime(1969, 1, 1, tzinfo=UTC)]
    batch = pa.record_batch(
        {"value": pa.array(["a", "é"]), "timestamp": pa.array(times, TYPES["timestamp"])}
    )
    writer = TopicWriter(client, "returns", ProducerSettings())
    writer.write(batch)
    writer.flush()
    records = [record for _, record in content(client, "returns")[0]]
    assert [record.timestamp for record in records] == [1500, -365 * 86_400_000]
    assert [record.value for record in records] == [b"a", "é".encode()]


def test_rows_name_their_topics(client: Client) -> None:
    topics = Topics(client, parse_write_options({"kafka.bootstrap.servers": "h:1"}))
    names = ["returns", "orders", "returns"]
    topics.write(pa.record_batch({"topic": pa.array(names), "value": pa.array(["a", "b", "c"])}))
    assert topics.flush().topics.keys() == {"orders", "returns"}
    assert [record.value for _, record in content(client, "returns")[0]] == [b"a", b"c"]
    with pytest.raises(OperatorError, match="a row has no topic"):
        values = pa.array(["a"])
        topics.write(pa.record_batch({"topic": pa.array([None], pa.string()), "value": values}))
