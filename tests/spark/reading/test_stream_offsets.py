"""A checkpoint is read by later releases and by the Kafka connector, and read back from it."""

import json

import pytest

from strandline.base.errors import OperatorError
from strandline.spark.reading.stream_offsets import StreamOffsets, from_json, to_json

OFFSETS = StreamOffsets({("b", 10): 7, ("b", 9): 3, ("a", 0): 0}, {"a": "11-22", "b": "33-44"})


def test_the_text_is_stable() -> None:
    assert json.dumps(to_json(OFFSETS)) == (
        '{"a": {"0": 0}, "b": {"9": 3, "10": 7}, "a@v1:11-22": {}, "b@v1:33-44": {}}'
    )


def test_what_was_written_is_read_back() -> None:
    assert from_json(json.loads(json.dumps(to_json(OFFSETS)))) == OFFSETS
    assert to_json(StreamOffsets({}, {})) == {}


def test_the_connector_s_offsets_are_read() -> None:
    found = from_json(json.loads('{"orders":{"1":45,"0":23}}'))
    assert found == StreamOffsets({("orders", 0): 23, ("orders", 1): 45}, {})
    assert found.same_topic("orders", "11-22")


def test_the_connector_finds_nothing_else_than_numbers_by_partition() -> None:
    for partitions in to_json(OFFSETS).values():
        assert all(word.isdigit() and type(n) is int for word, n in partitions.items())


def test_another_id_is_another_topic() -> None:
    assert OFFSETS.same_topic("a", "11-22")
    assert not OFFSETS.same_topic("a", "11-23")
    assert OFFSETS.same_topic("a", "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"orders@v2:11-22": {}}, "have version 'v2', this release reads v1: run the stream with"),
        ({"orders": {"x": 1}}, "orders-x"),
        ({"orders": {"0": -1}}, "orders-0: -1"),
        ({"orders": 5}, "topic orders: 5"),
        ([1], "not this source's"),
    ],
)
def test_other_offsets_are_refused(content: object, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        from_json(content)
