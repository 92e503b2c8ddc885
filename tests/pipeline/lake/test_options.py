"""A lake job's options are refused at once, in one line, when they cannot work."""

import socket
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.options import (
    LakeOptions,
    PartitionColumn,
    check_reachable,
    parse_bootstrap,
    parse_partition_by,
    read_schema,
    reader_options,
)


def options(**changes: object) -> LakeOptions:
    return LakeOptions(
        **{"bootstrap": "127.0.0.1:9092", "topic": "flights", "table": "/lake/flights", **changes}  # type: ignore[arg-type]
    )


def test_partition_columns_are_fields_of_the_value_or_expressions() -> None:
    assert parse_partition_by(["carrier", "day = to_date(timestamp)"], decoded=True) == (
        PartitionColumn("carrier", "value.`carrier`"),
        PartitionColumn("day", "to_date(timestamp)"),
    )


def test_tables_are_partitioned_by_date_when_nobody_says() -> None:
    assert parse_partition_by([], decoded=False) == (PartitionColumn("date", "to_date(timestamp)"),)


@pytest.mark.parametrize(
    ("words", "decoded", "reason"),
    [
        (["carrier"], False, "raw values have no fields"),
        (["offset"], True, "the table already has this column"),
        (["a", "A"], True, "given twice"),
        (["a b"], True, "expected NAME or NAME=EXPRESSION"),
        (["a="], True, "expected NAME or NAME=EXPRESSION"),
        (["=a"], True, "expected NAME or NAME=EXPRESSION"),
    ],
)
def test_partition_columns_that_cannot_work_are_refused(
    words: list[str], decoded: bool, reason: str
) -> None:
    with pytest.raises(OperatorError, match=reason):
        parse_partition_by(words, decoded=decoded)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"topic": "../x"}, "not a legal topic name"),
        ({"topic": ".."}, "not a legal topic name"),
        ({"topic": "a,b"}, "not a legal topic name"),
        ({"bootstrap": "localhost"}, "expected host:port"),
        ({"bootstrap": "h:0"}, "expected host:port"),
        ({"bootstrap": "h:9092,"}, "expected host:port"),
        ({"batch_records": 0}, "at least 1"),
        ({"files": 0}, "at least 1"),
        ({"interval_ms": -1}, "0 or more"),
    ],
)
def test_options_that_cannot_work_are_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(OperatorError, match=reason):
        options(**changes)


def test_reader_begins_at_the_first_record_and_fails_rather_than_skips() -> None:
    chosen = reader_options(options(batch_records=500, rack="east", kafka={"client.id": "lake"}))
    assert chosen["subscribe"] == "flights"
    assert chosen["startingOffsets"] == "earliest"
    assert chosen["failOnDataLoss"] == "true"
    assert chosen["kafka.isolation.level"] == "read_committed"
    assert chosen["maxOffsetsPerTrigger"] == "500"
    assert chosen["kafka.client.rack"] == "east"
    assert chosen["kafka.client.id"] == "lake"


def test_checkpoint_lies_in_the_table_unless_told() -> None:
    assert options().checkpoint_location == "/lake/flights/_checkpoints/flights"
    assert options(checkpoint="/elsewhere").checkpoint_location == "/elsewhere"


def test_schema_files_may_have_comments_and_lines(tmp_path: Path) -> None:
    file = tmp_path / "schema.ddl"
    file.write_text("-- one flight\nid BIGINT,\n  carrier STRING,\n")
    assert read_schema(file) == "id BIGINT, carrier STRING"


@pytest.mark.parametrize("content", [None, b"", b"-- nothing\n", b"\xff\xfe\x00"])
def test_schema_file_that_says_nothing_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "schema.ddl"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(OperatorError, match=f"--schema {file}"):
        read_schema(file)


def test_addresses_may_be_ipv6() -> None:
    assert parse_bootstrap("a:1,[::1]:2") == [("a", 1), ("::1", 2)]


def test_one_broker_that_answers_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        open_port, closed_port = listening.getsockname()[1], closed.getsockname()[1]
        check_reachable(f"127.0.0.1:{closed_port},127.0.0.1:{open_port}")
        with pytest.raises(OperatorError, match=f"127.0.0.1:{closed_port}: Connection refused"):
            check_reachable(f"127.0.0.1:{closed_port}")
