"""The source plans from where the partition begins, and tasks read old records out of buckets as
they read new ones.

Source: decision 0060; docs/pipelines/source.md. The source's reader, as a Spark task runs it."""

from collections.abc import Iterator

import pytest
from tests.integration.conftest import stop_cluster
from tests.integration.test_tiered_reading import RECORDS, STEP_MS, Kept, expected
from tests.spark.task_clients import close_task_clients

from strandline.spark.reading.batch_reader import BatchReader
from strandline.spark.reading.options import parse_options

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    made = Kept(tmp_path_factory.mktemp("tiered"))
    yield made
    close_task_clients()
    stop_cluster(made.tiered.cluster)


def read(kept: Kept, **options: str) -> dict[int, list[bytes]]:
    """{partition: values}, of all splits in the order of their offsets."""
    given = {"kafka.bootstrap.servers": kept.bootstrap, "subscribe": "t", **options}
    reader = BatchReader(parse_options(given), ("partition", "offset", "value"))
    found: dict[int, list[tuple[int, bytes]]] = {}
    for split in reader.partitions():
        for batch in reader.read(split):
            for row in batch.to_pylist():
                found.setdefault(row["partition"], []).append((row["offset"], row["value"]))
    for rows in found.values():
        rows.sort()
    assert all(len({at for at, _ in rows}) == len(rows) for rows in found.values())
    return {partition: [value for _, value in rows] for partition, rows in sorted(found.items())}


def test_a_batch_reads_the_whole_history(kept: Kept) -> None:
    assert read(kept, minPartitions="6") == expected()


def test_a_batch_begins_at_a_time_that_only_buckets_have(kept: Kept) -> None:
    at = RECORDS // 5
    found = read(kept, startingTimestamp=str(kept.first_ms + STEP_MS * at))
    assert found == {partition: values[at:] for partition, values in expected().items()}
