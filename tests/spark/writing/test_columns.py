"""What a query may write: its options and columns are checked before a row is read.

Source: Spark's guide to its Kafka connector; decision 0054."""

from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.values.ddl import parse_ddl
from strandline.spark.columns import TYPES, schema_of
from strandline.spark.reading.option_table import Use
from strandline.spark.source import StrandlineSource
from strandline.spark.writing.columns import NAMES, check_columns
from strandline.spark.writing.option_table import OPTIONS
from strandline.spark.writing.options import parse_write_options

GIVEN = {"kafka.bootstrap.servers": "h:1"}


@pytest.mark.parametrize(
    "ddl",
    [
        "value STRING",
        "value BINARY, key STRING",
        "key BINARY, value STRING, partition INT, timestamp TIMESTAMP",
        "value STRING, headers ARRAY<STRUCT<key: STRING, value: BINARY>>",
    ],
)
def test_columns_of_records_are_accepted(ddl: str) -> None:
    check_columns(parse_ddl(ddl), "orders")


def test_what_the_source_reads_can_be_written() -> None:
    check_columns(schema_of(tuple(TYPES)), "")


@pytest.mark.parametrize(
    ("ddl", "topic", "line"),
    [
        ("key STRING", "t", "the column value is missing: the query has key"),
        ("value INT", "t", "column value is int, not string or binary: cast it before writing"),
        ("value STRING, key BIGINT", "t", "column key is bigint, not string or binary"),
        ("value STRING, partition BIGINT", "t", "column partition is bigint, not int"),
        ("value STRING, timestamp BIGINT", "t", "column timestamp is bigint, not timestamp"),
        ("value STRING, topic BINARY", "", "column topic is binary, not string"),
        ("value STRING", "", "no topic: give the option topic, or a column topic"),
        ("value STRING, headres STRING", "t", "column headres would be lost: the columns of a"),
        (
            "value STRING, headers MAP<STRING, BINARY>",
            "t",
            "column headers is map<string,binary>, not array<struct<key: string, value: binary>>",
        ),
    ],
)
def test_columns_that_would_be_lost_or_guessed_are_refused(ddl: str, topic: str, line: str) -> None:
    with pytest.raises(OperatorError) as refusal:
        check_columns(parse_ddl(ddl), topic)
    assert str(refusal.value).startswith(line)


def test_options_are_those_of_kafkas_producer_in_any_case() -> None:
    options = parse_write_options(
        {**GIVEN, "TOPIC": "orders", "kafka.Compression.Type": "zstd", "kafka.acks": "-1"}
    )
    assert (options.topic, options.codec, options.batch_bytes) == ("orders", 4, 512 * 1024)
    assert options.producer_settings().acks == -1


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, "option kafka.bootstrap.servers is missing"),
        ({**GIVEN, "topik": "x"}, "option topik is not known (did you mean topic?)"),
        ({**GIVEN, "kafka.acks": "1"}, "kafka.acks: '1' is not offered: all or -1"),
        ({**GIVEN, "kafka.enable.idempotence": "false"}, "kafka.enable.idempotence: 'false'"),
        ({**GIVEN, "kafka.compression.type": "brotli"}, "kafka.compression.type: 'brotli' is not"),
        ({**GIVEN, "kafka.transactional.id": "x"}, "option kafka.transactional.id: the sink"),
        ({**GIVEN, "kafka.sasl.mechanism": "PLAIN"}, "kafka.sasl.mechanism has no effect "),
        ({**GIVEN, "path": "orders"}, "option path: save() takes no path"),
    ],
)
def test_options_that_would_do_otherwise_are_refused(given: dict[str, str], line: str) -> None:
    with pytest.raises(OperatorError) as refusal:
        parse_write_options(given)
    assert str(refusal.value).startswith(line)


def test_each_option_is_in_the_docs_with_its_default() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/pipelines/sink.md").read_text()
    rows = {line.split("|")[1].strip(): line for line in page.splitlines() if line[:3] == "| `"}
    for option in OPTIONS:
        if option.use is Use.WRITE:
            assert option.default in rows[f"`{option.name}`"]
        elif option.use is Use.NO_EFFECT:
            assert parse_write_options({**GIVEN, option.name: "1"}) == parse_write_options(GIVEN)
    for name in NAMES:
        assert any(name in row for row in rows), name


def test_a_topic_is_not_overwritten() -> None:
    source = StrandlineSource({**GIVEN, "topic": "orders"})
    with pytest.raises(OperatorError, match='use mode\\("append"\\)'):
        source.writer(parse_ddl("value STRING"), True)
