"""A stream reads every record once: through limits, restarts, new partitions and lost topics.

Source: PySpark's `DataSourceStreamReader`; decisions/0049."""

import json
import pickle
from collections.abc import Iterator

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.spark.reading.scene import Scene

from strandline.client.cluster import Client
from strandline.spark.reading.data_loss import DataLossError
from strandline.spark.reading.options import parse_options
from strandline.spark.reading.splits import Split
from strandline.spark.reading.stream_offsets import JsonOffsets
from strandline.spark.reading.stream_reader import StreamReader


class Stream(StreamReader):
    """A stream over the cluster in memory."""

    def __init__(self, scene: Scene, **given: str) -> None:
        options = {"kafka.bootstrap.servers": "fake:9001", "subscribe": "orders", **given}
        if "subscribePattern" in given or "assign" in given:
            del options["subscribe"]
        self.scene = scene
        super().__init__(parse_options(options), ("value",))

    def _connect(self) -> Client:
        return self.scene.client()

    def micro_batches(self, start: JsonOffsets) -> Iterator[tuple[JsonOffsets, list[Split]]]:
        """As Spark goes on, until there is nothing new."""
        while True:
            end = through_json(self.latestOffset(start, self.getDefaultReadLimit()))
            if end == start:
                return
            yield end, list(self.partitions(start, end))  # type: ignore[arg-type]
            start = end


def through_json(offsets: JsonOffsets) -> JsonOffsets:
    found = json.loads(json.dumps(offsets))
    assert isinstance(found, dict)
    return found


def read(batches: Iterator[tuple[JsonOffsets, list[Split]]]) -> list[dict[tuple[str, int], int]]:
    """{(topic, partition): offsets} of each micro-batch."""
    found = []
    for _, splits in batches:
        sizes: dict[tuple[str, int], int] = {}
        for one in splits:
            place = (one.topic, one.partition)
            sizes[place] = sizes.get(place, 0) + one.end - one.start
        found.append(sizes)
    return found


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.topic("orders", 2)
    scene.write("orders", 0, 10)
    scene.write("orders", 1, 30)
    return scene


def test_a_stream_goes_from_where_it_begins_to_the_end(scene: Scene) -> None:
    stream = Stream(scene, startingOffsets="earliest")
    start = stream.initialOffset()
    assert start == {
        "orders": {"0": 0, "1": 0},
        f"orders@v1:{scene.topic_id('orders')}": {},
    }
    assert read(stream.micro_batches(start)) == [{("orders", 0): 10, ("orders", 1): 30}]
    latest = stream.reportLatestOffset()
    assert latest is not None and latest["orders"] == {"0": 10, "1": 30}


def test_a_micro_batch_has_at_most_so_many_offsets(scene: Scene) -> None:
    stream = Stream(scene, startingOffsets="earliest", maxOffsetsPerTrigger="16")
    batches = read(stream.micro_batches(stream.initialOffset()))
    assert batches == [
        {("orders", 0): 4, ("orders", 1): 12},
        {("orders", 0): 4, ("orders", 1): 12},
        {("orders", 0): 2, ("orders", 1): 6},
    ]


def test_trigger_once_takes_all_whatever_the_limit(scene: Scene) -> None:
    stream = Stream(scene, startingOffsets="earliest", maxOffsetsPerTrigger="16")
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    assert end["orders"] == {"0": 10, "1": 30}


def test_available_now_ends_where_it_was_when_it_began(scene: Scene) -> None:
    stream = Stream(scene, startingOffsets="earliest", maxOffsetsPerTrigger="25")
    stream.prepareForTriggerAvailableNow()
    start = stream.initialOffset()
    found = []
    for end, splits in stream.micro_batches(start):
        scene.write("orders", 0, 7)
        found.append((end["orders"], sum(one.end - one.start for one in splits)))
    assert [count for _, count in found] == [25, 15]
    assert found[-1][0] == {"0": 10, "1": 30}


def test_available_now_that_begins_at_latest_reads_nothing(scene: Scene) -> None:
    stream = Stream(scene)
    stream.prepareForTriggerAvailableNow()
    scene.write("orders", 0, 5)
    assert read(stream.micro_batches(stream.initialOffset())) == []


def test_few_records_wait_and_a_run_to_the_end_does_not(scene: Scene) -> None:
    given = {"minOffsetsPerTrigger": "100", "maxTriggerDelay": "60s"}
    stream = Stream(scene, startingOffsets="earliest", **given)
    (first,) = stream.micro_batches(stream.initialOffset())
    scene.write("orders", 0, 5)
    assert read(stream.micro_batches(first[0])) == []
    scene.transport.now_ms += 60_000
    assert read(stream.micro_batches(first[0])) == [{("orders", 0): 5}]
    stream = Stream(scene, startingOffsets="earliest", **given)
    stream.prepareForTriggerAvailableNow()
    assert read(stream.micro_batches(first[0])) == [{("orders", 0): 5}]


def test_a_stream_from_latest_loses_nothing_if_it_dies_before_its_first_commit(
    scene: Scene,
) -> None:
    """Spark has the end of a planned micro-batch only, and asks anew where the stream begins."""
    stream = Stream(scene)
    planned = stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())
    scene.write("orders", 1, 20)
    again = Stream(scene)
    began = again.initialOffset()
    assert began["orders"] == {"0": 10, "1": 50}
    assert again.partitions(began, planned) == []
    assert read(again.micro_batches(planned)) == [{("orders", 1): 20}]


def test_a_planned_micro_batch_is_repeated_exactly(scene: Scene) -> None:
    stream = Stream(scene, startingOffsets="earliest", maxOffsetsPerTrigger="16")
    start = stream.initialOffset()
    end, splits = next(iter(stream.micro_batches(start)))
    scene.write("orders", 0, 99)
    assert Stream(scene).partitions(start, end) == splits


def test_partitions_that_are_added_are_read_from_their_first_record(scene: Scene) -> None:
    stream = Stream(scene, startingOffsets="earliest")
    ((end, _),) = stream.micro_batches(stream.initialOffset())
    log = scene.cluster.topics["orders"][0]
    scene.cluster.topics["orders"].append(type(log)(leader=3))
    scene.write("orders", 2, 8)
    assert read(stream.micro_batches(end)) == [{("orders", 2): 8}]
    scene.cluster.topics["orders"][2].start = 3
    with pytest.raises(DataLossError, match="new partition orders-2 begins at offset 3, not 0"):
        read(Stream(scene).micro_batches(end))
    assert read(Stream(scene, failOnDataLoss="false").micro_batches(end)) == [{("orders", 2): 5}]


def test_topics_of_a_pattern_that_appear_are_read_from_their_first_record(scene: Scene) -> None:
    stream = Stream(scene, subscribePattern="or.*", startingOffsets="latest")
    start = stream.initialOffset()
    assert read(stream.micro_batches(start)) == []
    scene.topic("organs", 1)
    scene.topic("other-organs", 1)
    scene.write("organs", 0, 4)
    scene.write("other-organs", 0, 4)
    assert read(stream.micro_batches(start)) == [{("organs", 0): 4}]


def test_a_topic_made_anew_is_said_or_read_from_its_first_record(scene: Scene) -> None:
    stream = Stream(scene, startingOffsets="earliest")
    ((end, _),) = stream.micro_batches(stream.initialOffset())
    scene.topic("orders", 2)
    scene.write("orders", 1, 500)
    with pytest.raises(DataLossError, match="topic orders was made anew: its id was "):
        read(stream.micro_batches(end))
    assert read(Stream(scene, failOnDataLoss="false").micro_batches(end)) == [{("orders", 1): 500}]


def test_a_checkpoint_of_the_kafka_connector_goes_on(scene: Scene) -> None:
    stream = Stream(scene)
    start: JsonOffsets = {"orders": {"1": 25, "0": 10}}
    assert read(stream.micro_batches(start)) == [{("orders", 1): 5}]


def test_partitions_that_are_gone_are_said(scene: Scene) -> None:
    start: JsonOffsets = {"orders": {"0": 10, "1": 30}, "returns": {"0": 5}}
    with pytest.raises(DataLossError, match="partition returns-0 is not there any more"):
        read(Stream(scene).micro_batches(start))
    end = Stream(scene, failOnDataLoss="false").latestOffset(start, ReadAllAvailable())
    assert list(end) == ["orders", f"orders@v1:{scene.topic_id('orders')}"]


def test_a_log_that_became_shorter_is_said(scene: Scene) -> None:
    start: JsonOffsets = {"orders": {"0": 10, "1": 31}}
    with pytest.raises(DataLossError, match="partition orders-1 ends at offset 30, before 31"):
        read(Stream(scene).micro_batches(start))
    end = Stream(scene, failOnDataLoss="false").latestOffset(start, ReadAllAvailable())
    assert end["orders"] == {"0": 10, "1": 30}


def test_executors_get_no_connections() -> None:
    options = parse_options({"kafka.bootstrap.servers": "a:1", "subscribe": "orders"})
    reader = StreamReader(options, ("value",))
    assert reader._connected() is reader._connected()
    copy = pickle.loads(pickle.dumps(reader))
    assert copy._client is None
    reader.stop()
