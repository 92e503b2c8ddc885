"""Every command of the pages of the pipelines runs as it stands, or a table says why it does not.

Source: docs/pipelines.md, docs/pipelines/*.md."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import deltalake
import pytest
from pyspark.sql import SparkSession
from tests.spark.jobs import Jobs, Record
from tests.spark.pages import FLIGHTS, Walk, blocks, inline_commands, open_walk, pages
from tests.spark.standalone import standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SUBMITTED = "--conf spark.executor.memory=512m --conf spark.ui.enabled=false"
EVENTS = "--events 3000"
"""Simulated losses: 100,000 take minutes, and the tests of the plan look at its figures."""
RESIDENT = "residency: {allow: [{label: region, op: in, values: [eu-west]}]}"


@dataclass(frozen=True, slots=True)
class Step:
    """How a block is run. `more`: appended to its last command. `gives`: what later pages find
    prepared by it, as `Walk.once` names it."""

    check: Callable[[Walk, Any], None]
    """Gets what the commands printed, or the names that Python set."""
    prepare: Callable[[Walk], None] | None = None
    more: str = ""
    gives: str = ""


def rows(walk: Walk, table: str) -> int:
    """Rows of a table, by delta-rs."""
    return int(deltalake.DeltaTable(str(walk.directory / table)).to_pyarrow_table().num_rows)


def flights_table(walk: Walk) -> None:
    walk.once("flights table", lambda _: walk.shell(blocks("pipelines.md")[1].text) and None)


def orders(walk: Walk) -> None:
    walk.once("orders", lambda _: walk.shell(blocks("pipelines.md")[0].text) and None)


def residents(walk: Walk) -> None:
    """`orders people logs`: people are to stay in the EU."""
    (walk.directory / "eu.yaml").write_text(RESIDENT)
    walk.shell("strandline topic create people -p 1 -r 1 --policy eu.yaml")
    orders(walk)
    walk.produce("logs", Record(None, b"line"))
    walk.shell("echo a | strandline produce people")


def lie_where_they_may(walk: Walk, _: object) -> None:
    found = [rows(walk, table) for table in ("eu/lake/people", "data/lake/logs")]
    assert found == [1, 1] and not (walk.directory / "data/lake/people").exists()


def dead_letters(walk: Walk) -> None:
    """A flight with a field more went to the dead letters, and the new schema has it."""
    flights_table(walk)
    walk.shell("""echo '{"id":-1,"gate":"B7"}' | strandline produce flights""")
    lake = blocks("pipelines.md")[1].text.rstrip()
    walk.shell(lake, more="--dead-letters /data/lake/flights_dead".replace("/data", str(walk.data)))
    assert rows(walk, "data/lake/flights_dead") == 1
    schema = (walk.directory / "demo/flights.ddl").read_text()
    (walk.directory / "flights-2.ddl").write_text(f"{schema.rstrip()},\ngate STRING\n")


def customers(walk: Walk) -> None:
    (walk.directory / "customers.ddl").write_text("name STRING")
    values = [(b"a", b'{"name":"A"}'), (b"b", b'{"name":"B"}'), (b"a", b'{"name":"AA"}')]
    records = [Record(*each) for each in [*values, (b"b", None)]]
    walk.produce("customers", *records)


def by_hour(walk: Walk) -> None:
    walk.shell("strandline topic create flights-by-hour -p 1 -r 1")


def by_day(walk: Walk) -> None:
    walk.produce("flights-by-day", *map(Record, (b"k", None), (b"1", b"2")))


def written(walk: Walk, topic: str) -> int:
    read = walk.spark.read.format("strandline").option("subscribe", topic)
    return read.option("kafka.bootstrap.servers", walk.cluster.bootstrap).load().count()


def batch_is_written(walk: Walk, _: object) -> None:
    assert written(walk, "flights") == FLIGHTS + 2


def stream_is_written(walk: Walk, names: dict[str, Any]) -> None:
    names["query"].processAllAvailable()
    names["query"].stop()
    assert written(walk, "flights-by-hour") == 2


def stream_is_read(walk: Walk, names: dict[str, Any]) -> None:
    names["query"].awaitTermination()
    found = walk.spark.read.parquet(str(walk.data / "flights"))
    assert found.where("topic = 'flights-by-day'").count() == 2


def has_all_flights(_: Walk, names: dict[str, Any]) -> None:
    """No bucket has records of the topic, so that brokers give all."""
    assert names["rows"].count() >= FLIGHTS


def sql_view(walk: Walk, _: object) -> None:
    assert walk.spark.table("flights").count() >= FLIGHTS


def query_of_the_connector(walk: Walk, _: object) -> None:
    """The lines of the difference that are added or stay, as a query."""
    lines = blocks("pipelines/from-the-kafka-connector.md")[0].text.splitlines()
    code = "".join(line[2:].strip() for line in lines if not line.startswith("-"))
    assert walk.python(f"frame = {code}.load()")["frame"].isStreaming


def prints(*words: str) -> Callable[[Walk, Any], None]:
    def check(_: Walk, told: str) -> None:
        for word in words:
            assert word in told, told

    return check


def has_rows(table: str, count: int) -> Callable[[Walk, Any], None]:
    def check(walk: Walk, _: object) -> None:
        assert rows(walk, table) == count

    return check


def wrote(file: str) -> Callable[[Walk, Any], None]:
    def check(walk: Walk, _: object) -> None:
        assert (walk.directory / file).stat().st_size > 10_000

    return check


def nothing_else(_walk: Walk, _told: object) -> None:
    """It ran."""


STEPS: dict[tuple[str, int], Step] = {
    ("pipelines.md", 0): Step(has_rows("lake/orders", 1), gives="orders"),
    ("pipelines.md", 1): Step(has_rows("data/lake/flights", FLIGHTS)),
    ("pipelines.md", 2): Step(prints("UA"), flights_table),
    ("pipelines.md", 3): Step(nothing_else, flights_table),
    ("pipelines.md", 4): Step(has_rows("bucket/flights", FLIGHTS)),
    ("pipelines/audit.md", 0): Step(prints("equal: ")),
    ("pipelines/from-the-kafka-connector.md", 0): Step(query_of_the_connector),
    ("pipelines/lake.md", 1): Step(lie_where_they_may, residents),
    ("pipelines/plan.md", 0): Step(wrote("plan.html"), more=EVENTS),
    ("pipelines/plan.md", 1): Step(prints("2+2+0+0+1o"), more=EVENTS),
    ("pipelines/plan.md", 3): Step(prints('"outlooks"')),
    ("pipelines/sink.md", 0): Step(batch_is_written),
    ("pipelines/sink.md", 1): Step(stream_is_written, by_hour),
    ("pipelines/source.md", 0): Step(nothing_else),
    ("pipelines/source.md", 1): Step(sql_view),
    ("pipelines/source.md", 2): Step(stream_is_read, by_day),
    ("pipelines/source.md", 3): Step(has_all_flights),
    ("pipelines/upkeep.md", 0): Step(nothing_else, flights_table),
    ("pipelines/upkeep.md", 1): Step(has_rows("data/lake/customers", 1), customers),
    ("pipelines/upkeep.md", 2): Step(has_rows("data/lake/flights_dead", 0), dead_letters),
}
"""{(page, number of the block in it): how it is run}"""

NOT_RUN = {
    ("pipelines/audit.md", 1): "a cluster with rules; tests/integration/test_pipeline_rights.py",
    ("pipelines/audit.md", 2): "what an audit prints; tests/integration/test_audit.py has each",
    ("pipelines/audit.md", 3): "buckets on S3; tests/integration/test_audit_buckets.py has each",
    ("pipelines/audit.md", 4): "what it prints; tests/integration/test_audit_buckets.py has each",
    ("pipelines/source.md", 4): "a cluster with logins; tests/spark/test_secured.py runs it",
    ("pipelines/lake.md", 2): "tests/spark/test_backfill.py runs it where there are buckets",
    ("pipelines/lake.md", 3): "a cluster with logins; tests/integration/test_pipeline_rights.py",
    ("pipelines/lake.md", 0): "the words that the command takes, not a command",
    ("pipelines/plan.md", 2): "defaults; tests/pipeline/plan/test_page.py compares them",
    ("pipelines/values.md", 0): "tests/pipeline/values/test_page.py runs it without Spark",
}

ASKED = {
    "strandline pipeline java": "/",
    "strandline pipeline jars": "delta-spark",
    "strandline pipeline lake --help": "--on-gap",
    "strandline group describe lake-flights": "flights",
}
"""Commands within a sentence that are run: {command: what it prints}. Others that begin with
`strandline` are names of commands: each is there."""
NOT_ASKED = {
    "make demo KEEP=1": "tests/demo",
    "make test": "this is it",
    "make test-long": "this is it",
    "pip install 'strandline[pipeline]'": "is installed",
    "protoc --include_imports --descriptor_set_out=FILE": "tests/pipeline/values/protobuf",
    "python -m bench.run plan": "minutes of measuring",
    "python -m bench.values": "minutes of measuring",
    "spark-submit --files": "an option; tests/spark/test_secure.py",
    "spark-submit --files /etc/strandline/app.conf,/etc/strandline/ca.pem": "the same",
    "strandline policy test --cluster": "an option of a command that is there",
}


@pytest.fixture(scope="module")
def walk(
    jobs: Jobs, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Walk]:
    with open_walk(tmp_path_factory.mktemp("walk"), jobs, spark) as walk:
        yield walk


def names_for(walk: Walk, page: str, number: int) -> dict[str, Any]:
    """What Python on the page takes from the reader's own job."""
    if page != "pipelines/sink.md":
        return {}
    if number == 0:
        return {"frame": walk.spark.range(2)}
    read = walk.spark.readStream.format("strandline").option("startingOffsets", "earliest")
    read = read.option("kafka.bootstrap.servers", walk.cluster.bootstrap)
    return {
        "frame": read.option("subscribe", "flights").load().where("offset < 1").drop("partition")
    }


def take(walk: Walk, page: str, number: int) -> None:
    block, step = blocks(page)[number], STEPS[page, number]
    if step.prepare is not None:
        step.prepare(walk)
    told: Any = None
    if block.language == "python":
        told = walk.python(block.text, **names_for(walk, page, number))
    elif block.language == "sql":
        walk.sql(block.text)
    elif not block.language:
        text = block.text.replace("spark-submit ", f"spark-submit {SUBMITTED} ")
        text = text.replace("plan cluster.yaml", "plan docs/pipelines/five-regions.yaml")
        told = walk.shell(text.replace("--events 10000000", EVENTS), more=step.more)
    step.check(walk, told)
    if step.gives:
        walk.done.add(step.gives)


@pytest.mark.parametrize("page", sorted({page for page, _ in STEPS}))
def test_every_block_of_a_page_runs(walk: Walk, page: str, tmp_path: Path) -> None:
    for of, number in STEPS:
        if of != page:
            continue
        if "spark://" in blocks(page)[number].text:
            with standalone_cluster(tmp_path, walk.jobs.environment) as walk.master:
                take(walk, page, number)
        else:
            take(walk, page, number)


def test_commands_within_sentences_are_there(walk: Walk) -> None:
    flights_table(walk)
    found = {command for page in pages() for command in inline_commands(page)}
    for command in sorted(found - NOT_ASKED.keys()):
        assert command.startswith("strandline "), command
        told = walk.shell(command if command in ASKED else f"{command} --help")
        assert ASKED.get(command, "Usage: ") in told, command


def test_each_block_is_run_or_has_a_reason() -> None:
    found = {(page, block.number) for page in pages() for block in blocks(page)}
    assert found == STEPS.keys() | NOT_RUN.keys()
    assert not STEPS.keys() & NOT_RUN.keys()
    inline = {command for page in pages() for command in inline_commands(page)}
    assert ASKED.keys() | NOT_ASKED.keys() <= inline


def test_a_command_that_fails_is_seen(walk: Walk) -> None:
    with pytest.raises(AssertionError, match="no-such-topic"):
        walk.shell("strandline pipeline lake no-such-topic lake/none")
    assert json.dumps(walk.mended("/data/x s3a://b/c")).count(str(walk.directory)) == 2
