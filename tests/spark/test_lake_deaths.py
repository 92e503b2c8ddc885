"""A lake job whose parts are killed in the middle of a batch has each record once.

How:    the table is watched until it has a batch, and a file that is not written yet: a task is at
        work. Then a part of the run is killed by SIGKILL: a Python worker, an executor
        of Java, or the broker that leads the topic.
Source: decisions/0050, decisions/0064."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster
from tests.spark.jobs import Cluster, Jobs, Record, create_topic, produce, read_rows, read_topic

from strandline.client.cluster import Client
from strandline.config.addresses import parse_bootstrap

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

RECORD_COUNT = 400_000
PRODUCED_AT_ONCE = 50_000
"""A client's queue holds twice as many."""
BATCH_RECORDS = 100_000
BEGUN_BYTES_MAX = 100
TIMEOUT_S = 300
PAUSE_S = 0.005


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[DevCluster]:
    """Three brokers for one test that may break them."""
    cluster = start_cluster(tmp_path / "cluster", regions="east=1,west=1,south=1")
    yield cluster
    stop_cluster(cluster)


@pytest.fixture
def topic(own_cluster: DevCluster, topic_name: str) -> str:
    """A topic of RECORD_COUNT records in one partition."""
    cluster = Cluster(own_cluster.bootstrap)
    create_topic(cluster, topic_name, partitions=1)
    for first in range(0, RECORD_COUNT, PRODUCED_AT_ONCE):
        numbers = range(first, first + PRODUCED_AT_ONCE)
        produce(cluster, topic_name, (Record(b"%d" % n, b"v" * 90) for n in numbers))
    return topic_name


def processes_below(pid: int) -> dict[int, str]:
    """{process: its command line} of all that a process has started."""
    found: dict[int, str] = {}
    left = [pid]
    while left:
        try:
            one = left.pop()
            for thread in Path(f"/proc/{one}/task").iterdir():
                for child in map(int, (thread / "children").read_text().split()):
                    found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
                    left.append(child)
        except OSError:
            continue  # It has ended.
    return found


def begun_files(table: Path) -> list[Path]:
    """Files of the table that a task has made and not written yet: less than a footer takes."""
    found: list[Path] = []
    for path in table.rglob("*.parquet"):
        with suppress(FileNotFoundError):  # Files of a task that fails are removed.
            found += [path] if path.stat().st_size < BEGUN_BYTES_MAX else []
    return found


class Run:
    """A job that is at work on a batch, after the table has some."""

    def __init__(self, jobs: Jobs, table: Path, *arguments: str) -> None:
        self.table = table
        self.process = jobs.start(*arguments)

    def wait_in_batch(self) -> None:
        """Until the table has a batch, and files of the next one."""

        deadline = time.monotonic() + TIMEOUT_S
        while not any((self.table / "_delta_log").glob("*.json")) or not begun_files(self.table):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline, "no task was at work"
            time.sleep(PAUSE_S)

    def kill(self, words: str) -> int:
        """SIGKILL to each process of the run whose command line has these words."""
        killed = 0
        for pid, line in processes_below(self.process.pid).items():
            if words in line:
                os.kill(pid, signal.SIGKILL)
                killed += 1
        return killed

    def end(self) -> tuple[int, str]:
        """(exit code, standard error)."""
        try:
            _, err = self.process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        return self.process.returncode, err


def assert_exact(cluster: DevCluster, topic: str, table: Path) -> None:
    """One row for each record."""
    rows = [(row["partition"], row["offset"], row["key"]) for row in read_rows(table)]
    records = read_topic(Cluster(cluster.bootstrap), topic)
    assert len(rows) == len(records) == RECORD_COUNT
    assert sorted(rows) == sorted((*place, record.key) for place, record in records.items())


def arguments(cluster: DevCluster, topic: str, table: Path, master: str) -> tuple[str, ...]:
    return (
        *("lake", topic, str(table), "--bootstrap", cluster.bootstrap, "--master", master),
        *("--batch-records", str(BATCH_RECORDS), "--upkeep", "0"),
    )


WORKER = "pyspark.daemon"
EXECUTOR = "CoarseGrainedExecutorBackend"


@pytest.mark.parametrize(
    ("master", "words", "survives"),
    [
        ("local[2]", WORKER, False),
        ("local[2,4]", WORKER, True),
        ("local-cluster[2,1,1024]", EXECUTOR, True),
    ],
    ids=["a worker", "a worker, of tasks that are tried again", "executors"],
)
def test_a_part_of_spark_is_killed_within_a_batch(
    jobs: Jobs,
    own_cluster: DevCluster,
    topic: str,
    tmp_path: Path,
    master: str,
    words: str,
    survives: bool,
) -> None:
    table = tmp_path / "lake"
    given = arguments(own_cluster, topic, table, master)
    run = Run(jobs, table, *given)
    run.wait_in_batch()
    assert run.kill(words)
    code, err = run.end()
    if not survives:
        assert code == 1, err
        assert err.splitlines()[-1].startswith("error: Spark: "), err
        jobs.run(*given)
    else:
        assert code == 0, err
    assert_exact(own_cluster, topic, table)


def leader_of(cluster: DevCluster, topic: str) -> int:
    with Client(parse_bootstrap(cluster.bootstrap)) as client:
        return int(client.leaders(topic, deadline_ms=client.deadline())[0])


def test_the_leader_is_killed_within_a_batch(
    jobs: Jobs, own_cluster: DevCluster, topic: str, tmp_path: Path
) -> None:
    table = tmp_path / "lake"
    leader = leader_of(own_cluster, topic)
    run = Run(jobs, table, *arguments(own_cluster, topic, table, "local[2]"))
    run.wait_in_batch()
    own_cluster.kill(leader)
    code, err = run.end()
    assert code == 0, err
    assert leader_of(own_cluster, topic) != leader
    own_cluster.start(leader)
    assert_exact(own_cluster, topic, table)
