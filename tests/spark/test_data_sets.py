"""Two real data sets through a topic into a table, read back by delta-rs and DuckDB: flat flights
in many partitions of the table, deeply nested country profiles by their key.

Source: docs/pipelines/lake.md."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pytest
from demo.factbook import load_profiles
from demo.flights import SCHEMA, load_flights, write_json_lines
from pyspark.sql import SparkSession
from tests.spark.jobs import Cluster, Record, create_topic, produce
from tests.spark.lakes import fill, lake_options

from strandline.pipeline.lake.options import ValueSchema, parse_partition_by, read_schema
from strandline.pipeline.lake.table import read_table
from strandline.pipeline.upkeep.options import UpkeepOptions
from strandline.pipeline.upkeep.table import keep_up
from strandline.pipeline.values.inference import infer

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

FLIGHTS = 3_000


def values(table: Path) -> list[tuple[int, Any]]:
    """(offset, value) by delta-rs."""
    read = deltalake.DeltaTable(str(table)).to_pyarrow_table(columns=["offset", "value"])
    return sorted(
        zip(read["offset"].to_pylist(), read["value"].to_pylist(), strict=True),
        key=lambda one: one[0],
    )


def ask(table: Path, query: str) -> list[tuple[Any, ...]]:
    """A question to the table's live files, by DuckDB."""
    files = [str(file.path) for file in read_table(table).files]
    return duckdb.execute(query, [files]).fetchall()


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def plainly_named(value: Any) -> Any:
    """With names that a table can have: the profiles' own have spaces and brackets."""
    if isinstance(value, dict):
        return {
            re.sub(r"[^A-Za-z0-9]", "_", name): plainly_named(one) for name, one in value.items()
        }
    return [plainly_named(one) for one in value] if isinstance(value, list) else value


def test_flights_are_the_same_in_the_table(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str
) -> None:
    lines = tmp_path / "flights.json"
    flights = load_flights().iloc[:: len(load_flights()) // FLIGHTS].head(FLIGHTS)
    write_json_lines(flights, lines)
    sent = lines.read_bytes().splitlines()
    create_topic(cluster, topic_name, partitions=1)
    produce(cluster, topic_name, [Record(b"%d" % n, line) for n, line in enumerate(sent)])
    table = tmp_path / "lake"
    schema = read_schema(SCHEMA)
    options = replace(
        lake_options(cluster, table, topic_name),
        schema=schema,
        key="text",
        batch_records=1_000,
        partition_by=parse_partition_by(["origin", "month", "year=year(timestamp)"], schema=schema),
    )
    fill(spark, options)
    keep_up(spark, str(table), UpkeepOptions(small_files=2), expire=False)
    found = values(table)
    assert [offset for offset, _ in found] == list(range(FLIGHTS))
    for line, (_, value) in zip(sent, found, strict=True):
        expected = json.loads(line)
        moment = expected.pop("time_hour")
        assert value.pop("time_hour").isoformat()[:19] == moment[:19].replace(" ", "T")
        assert value == expected
    live = read_table(table).files
    assert {file.partition["origin"] for file in live} == {"EWR", "JFK", "LGA"}
    assert len(live) == len({tuple(file.partition.items()) for file in live})
    counts = ask(
        table,
        'SELECT "value"."carrier", count(*), sum("value"."distance") FROM read_parquet(?) '
        "GROUP BY ALL ORDER BY ALL",
    )
    grouped = flights.groupby("carrier")["distance"]
    assert counts == [(one, len(each), each.sum()) for one, each in grouped]


def test_country_profiles_keep_their_nesting_and_their_newest_record(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str
) -> None:
    profiles = {
        code: json.dumps(plainly_named(json.loads(profile))).encode()
        for code, profile in load_profiles().items()
    }
    schema = ValueSchema(Path("inferred.ddl"), infer(profiles.values()).type)
    create_topic(cluster, topic_name, partitions=1)
    first = [Record(code.encode(), b"{}") for code in profiles]
    produce(cluster, topic_name, first)
    table = tmp_path / "lake"
    options = replace(
        lake_options(cluster, table, topic_name),
        schema=schema,
        key="text",
        upsert=True,
        partition_by=parse_partition_by(["initial=left(key, 1)"], schema=schema),
    )
    fill(spark, options)
    newest = [Record(code.encode(), profile) for code, profile in profiles.items()]
    produce(cluster, topic_name, newest)
    fill(spark, options)
    found = values(table)
    assert [offset for offset, _ in found] == list(range(len(profiles), 2 * len(profiles)))
    unfit = 0
    for (_, value), profile in zip(found, profiles.values(), strict=True):
        if value is None:
            unfit += 1  # An object without a member, where all others have nothing.
        else:
            assert without_nulls(value) == without_nulls(json.loads(profile))
    assert unfit == 1
    whole = ask(table, 'SELECT count("value"), count("malformed") FROM read_parquet(?)')
    assert whole == [(len(profiles) - 1, 1)]
