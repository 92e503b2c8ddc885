"""A lake job's options are refused at once, in one line, when they cannot work."""

import json
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.commands.app import main
from strandline.pipeline.lake.cluster import Cluster, TopicSnapshot
from strandline.pipeline.lake.kafka_settings import read_properties, without_secrets
from strandline.pipeline.lake.options import (
    LakeOptions,
    PartitionColumn,
    check_apart,
    parse_partition_by,
    read_schema,
)
from strandline.pipeline.lake.progress import Batch, TopicProgress
from strandline.pipeline.lake.source import reader_options
from strandline.pipeline.lake.start import Start, parse_start, starting_offsets


def options(**changes: object) -> LakeOptions:
    return LakeOptions(
        **{
            "bootstrap": "127.0.0.1:9092",
            "topics": ("flights",),
            "table": "/lake/flights",
            **changes,
        }  # type: ignore[arg-type]
    )


@pytest.fixture
def schema_file(tmp_path: Path) -> Path:
    """A schema of two fields."""
    file = tmp_path / "schema.ddl"
    file.write_text("-- one flight\nid BIGINT,\n  carrier STRING,\n")
    return file


def test_partition_columns_are_fields_of_the_value_or_expressions(schema_file: Path) -> None:
    words = ["carrier", "day = to_date(timestamp)"]
    assert parse_partition_by(words, schema=read_schema(schema_file)) == (
        PartitionColumn("carrier", "value.`carrier`"),
        PartitionColumn("day", "to_date(timestamp)"),
    )


def test_a_time_is_the_timestamps_unless_the_value_has_a_field_of_this_name(
    tmp_path: Path,
) -> None:
    file = tmp_path / "schema.ddl"
    file.write_text("day INT")
    assert parse_partition_by(["month", "hour"], schema=None) == (
        PartitionColumn("month", "date_format(timestamp, 'yyyy-MM')"),
        PartitionColumn("hour", "date_format(timestamp, 'yyyy-MM-dd-HH')"),
    )
    assert parse_partition_by(["day", "year"], schema=read_schema(file)) == (
        PartitionColumn("day", "value.`day`"),
        PartitionColumn("year", "year(timestamp)"),
    )


def test_a_field_whose_name_a_table_cannot_have_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "schema.ddl"
    file.write_text("area STRUCT<unit: STRING, `total (sq km)`: BIGINT>")
    with pytest.raises(OperatorError, match=r"schema.ddl: field 'area.total \(sq km\)': a Delta"):
        options(schema=read_schema(file))


def test_tables_are_partitioned_by_date_when_nobody_says() -> None:
    assert parse_partition_by([], schema=None) == (PartitionColumn("date", "to_date(timestamp)"),)


@pytest.mark.parametrize(
    ("words", "decoded", "reason"),
    [
        (["carrier"], False, "raw values have no fields"),
        (["offset"], True, "the table already has this column"),
        (["a", "A"], True, "given twice"),
        (["a b"], True, "expected NAME or NAME=EXPRESSION"),
        (["a="], True, "expected NAME or NAME=EXPRESSION"),
        (["=a"], True, "expected NAME or NAME=EXPRESSION"),
        (["carier"], True, "schema.ddl has no field carier: .*hour, day, month, year"),
    ],
)
def test_partition_columns_that_cannot_work_are_refused(
    schema_file: Path, words: list[str], decoded: bool, reason: str
) -> None:
    schema = read_schema(schema_file) if decoded else None
    with pytest.raises(OperatorError, match=reason):
        parse_partition_by(words, schema=schema)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"topics": ("../x",)}, "not a legal topic name"),
        ({"topics": ("..",)}, "not a legal topic name"),
        ({"topics": ("a,b",)}, "not a legal topic name"),
        ({"topics": ("a", "a")}, "given twice"),
        ({"dead_letters": "/lake/flights"}, "name another table"),
        ({"mode": "lenient"}, "give --schema"),
        ({"keep_raw": True}, "give --schema"),
        ({"kafka": {"client.id": "x"}}, "add --source kafka"),
        ({"source": "kafka", "kafka": {"fetch.min.byte": "1"}}, "did you mean fetch.min.bytes"),
        ({"source": "kafka", "kafka": {"client.rack": "x"}}, "use --rack"),
        ({"source": "kafka", "kafka": {"sasl.mechanism": "PLAIN"}}, "give security.protocol, too"),
        ({"source": "kafka", "kafka": {"security.protocol": "TLS"}}, "expected PLAINTEXT, SSL"),
        ({"batch_records": 0}, "at least 1"),
        ({"files": 0}, "at least 1"),
        ({"interval_ms": -1}, "0 or more"),
    ],
)
def test_options_that_cannot_work_are_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(OperatorError, match=reason):
        options(**changes)


@pytest.mark.parametrize("bootstrap", ["localhost:x", "h:0", ""])
def test_addresses_that_cannot_work_are_refused(bootstrap: str) -> None:
    with pytest.raises(OperatorError, match="--bootstrap"):
        Cluster(bootstrap)


@pytest.mark.parametrize("source", ["strandline", "kafka"])
def test_reader_reads_exactly_the_batch_and_fails_rather_than_skips(source: str) -> None:
    read = {0: (5, 9), 3: (0, 2)}
    batch = Batch(7, "c", {"flights": TopicProgress("id", {0: 9, 1: 4, 3: 2}, read)})
    chosen = reader_options(batch, options(rack="east", source=source))
    assert json.loads(chosen["assign"]) == {"flights": [0, 3]}
    assert json.loads(chosen["startingOffsets"]) == {"flights": {"0": 5, "3": 0}}
    assert json.loads(chosen["endingOffsets"]) == {"flights": {"0": 9, "3": 2}}
    assert chosen["failOnDataLoss"] == "true"
    assert chosen["kafka.isolation.level"] == "read_committed"
    assert chosen["kafka.client.rack"] == "east"


def test_a_job_is_named_after_its_table() -> None:
    assert options().job == "lake-flights"
    assert options(table="s3a://bucket/my lake/").job == "lake-my-lake"
    assert options(name="nightly").job == "nightly"


def test_a_table_may_begin_at_an_offset_a_time_or_an_end() -> None:
    topic = TopicSnapshot("id", {0: 3, 1: 0}, {0: 9, 1: 5})
    cluster = Cluster("127.0.0.1:9")  # It is not asked.
    for word, begun in (("earliest", {0: 3, 1: 0}), ("latest", {0: 9, 1: 5})):
        assert starting_offsets(parse_start(word, (), topics=["a"]), "a", topic, cluster) == begun
    start = parse_start("earliest", ["a:1=4"], topics=["a", "b"])
    assert starting_offsets(start, "a", topic, cluster) == {0: 3, 1: 4}
    assert parse_start("2026-01-31", (), topics=["a"]) == Start(1769817600000)
    assert parse_start("2026-01-31T01:00:00+01:00", (), topics=["a"]) == Start(1769817600000)
    outside = parse_start("earliest", ["1=6"], topics=["a"])
    with pytest.raises(OperatorError, match="a:1=6: the partition has offsets 0 to 5"):
        starting_offsets(outside, "a", topic, cluster)


@pytest.mark.parametrize(
    ("word", "offsets", "reason"),
    [
        ("yesterday", [], "expected earliest, latest or a time"),
        ("earliest", ["x"], "expected .TOPIC:.PARTITION=OFFSET"),
        ("earliest", ["0=1"], "name the topic"),
        ("earliest", ["c:0=1"], "c is not a topic of this job"),
    ],
)
def test_beginnings_that_cannot_work_are_refused(
    word: str, offsets: list[str], reason: str
) -> None:
    with pytest.raises(OperatorError, match=reason):
        parse_start(word, offsets, topics=["a", "b"])


@pytest.mark.parametrize("content", [None, b"", b"-- nothing\n", b"\xff\xfe\x00"])
def test_schema_file_that_says_nothing_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "schema.ddl"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(OperatorError, match=f"--schema {file}"):
        read_schema(file)


def test_a_run_does_not_write_two_tables_to_one_place() -> None:
    def of(topic: str, dead: str | None = None) -> LakeOptions:
        return options(topics=(topic,), table=f"/lake/{topic}", dead_letters=dead)

    check_apart([of("a", "/dead/a"), of("b", "/dead/b")])
    with pytest.raises(OperatorError, match=r"/lake/a_gaps .*table of gaps of a and the table of"):
        check_apart([of("a"), of("a_gaps")])
    with pytest.raises(OperatorError, match=r"/lake/b would be .*dead letters of a"):
        check_apart([of("a", "/lake/b"), of("b")])
    with pytest.raises(OperatorError, match="--dead-letters: name another table"):
        of("a", "/lake/a_gaps")


@pytest.mark.parametrize(("words", "hint"), [((), "lake TOPIC TABLE"), (("t",), "lake t TABLE")])
def test_a_command_without_its_table_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    hint: str,
) -> None:
    monkeypatch.setattr("sys.argv", ["strandline pipeline", "lake", *words])
    with pytest.raises(SystemExit):
        main()
    told = capsys.readouterr().err
    assert told.startswith("error: name at least one topic, and ") and told.endswith(f"{hint}\n")


def test_properties_are_read_as_kafkas_tools_read_them(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# a\n! b\n\na.b = c=d\ne: f:g\nlong=one \\\n   two;\nempty=\n")
    assert read_properties(file) == {"a.b": "c=d", "e": "f:g", "long": "one two;", "empty": ""}
    file.write_text("a=b\nno sign, but a pa55word\n")
    with pytest.raises(OperatorError, match="line 2: expected KEY=VALUE") as refused:
        read_properties(file)
    assert "pa55word" not in str(refused.value)


def test_no_text_of_a_job_shows_a_secret() -> None:
    login = 'PlainLoginModule required username="me" password="pa55word";'
    kafka = {
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": login,
        "ssl.key.password": "k3y",
        "client.id": "mine",
    }
    made = options(source="kafka", kafka=kafka)
    assert made.is_secure and "pa55word" not in repr(made) and "k3y" not in repr(made)
    told = without_secrets(f"cannot log in by {login} nor pa55word nor k3y as mine", kafka)
    assert told == "cannot log in by [hidden] nor [hidden] nor [hidden] as mine"
    assert not options().is_secure
