"""A job says where it is, and its records come from the observer of its region; without that one
they come from elsewhere, and the table is the same.

Source: KIP-392; docs/decisions/0031-reading-near.md; docs/pipelines.md."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster
from tests.integration.ports import free_ports
from tests.integration.test_reading_near import BROKERS, POLICY, WEST, served
from tests.spark.jobs import Cluster, Jobs, Record, produce, read_json, read_rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

RECORD_COUNT = 4_000
VALUE_BYTES = 500


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[DevCluster, dict[int, str]]]:
    """Five brokers in three regions, and where each is scraped."""
    base = free_ports(1)[0]
    options = ("--set", f"metrics.port={base}")
    cluster = start_cluster(tmp_path / "cluster", regions="east=2,west=2,south=1", options=options)
    yield cluster, {one: f"http://127.0.0.1:{base + one - 1}" for one in BROKERS}
    stop_cluster(cluster)


def records(first: int) -> list[Record]:
    return [
        Record(b"", json.dumps({"n": n}).encode().ljust(VALUE_BYTES))
        for n in range(first, first + RECORD_COUNT)
    ]


def test_a_job_reads_next_door_and_goes_on_without_its_neighbour(
    watched: tuple[DevCluster, dict[int, str]], jobs: Jobs, topic_name: str, tmp_path: Path
) -> None:
    started, pages = watched
    cluster = Cluster(started.bootstrap)
    near = replace(jobs, cluster=cluster)
    policy, schema, table = tmp_path / "policy.yaml", tmp_path / "schema", tmp_path / "table"
    policy.write_text(POLICY)
    schema.write_text("n BIGINT")
    where = ("--bootstrap", cluster.bootstrap)
    started.run("topic", "create", topic_name, "-p", "1", "--policy", str(policy), *where)

    def run() -> int:
        told = near.run(
            *("lake", topic_name, str(table), *where, "--json"),
            *("--schema", str(schema), "--rack", "west"),
        )
        count = read_json(told)["records"]
        assert isinstance(count, int)
        return count

    produce(cluster, topic_name, records(0))
    assert run() == RECORD_COUNT
    after = served(pages, sum_bytes=RECORD_COUNT * VALUE_BYTES)
    servers = [one for one in BROKERS if after[one]]
    assert len(servers) == 1 and servers[0] in WEST, after
    (observer,) = servers

    started.kill(observer)
    produce(cluster, topic_name, records(RECORD_COUNT))
    assert run() == RECORD_COUNT
    numbers = [row["value"]["n"] for row in read_rows(table)]  # type: ignore[index]
    assert sorted(numbers) == list(range(2 * RECORD_COUNT))
    started.start(observer)
