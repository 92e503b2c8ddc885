"""A job's batches cover each offset of its topics once, wherever its process ends.

Source: decisions/0050."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pipeline.lake.scene import FakeCluster, FakeTable, KilledError, options, run

from strandline.base.errors import OperatorError
from strandline.client.errors import CannotConnectError
from strandline.pipeline.lake.delta_log import Commit
from strandline.pipeline.lake.options import read_schema
from strandline.pipeline.lake.progress import Batch, TopicProgress, to_json
from strandline.pipeline.lake.start import Start


def expected(cluster: FakeCluster, *topics: str) -> list[tuple[str, int, int]]:
    return sorted(
        (topic, partition, offset)
        for topic in topics
        for partition, ends in cluster.ends(topic).items()
        for offset in range(*ends)
    )


@pytest.mark.parametrize("seed", range(40))
def test_every_offset_is_in_the_table_once_wherever_the_job_is_killed(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    cluster = FakeCluster(
        a=("id-a", {0: (3, 40), 1: (0, 0)}), b=("id-b", {0: (0, rng.randrange(30))})
    )
    table = FakeTable(tmp_path / "t")
    for _ in range(12):
        table.kill = rng.choice(("before", "after", ""))
        try:
            run(cluster, table, options(table.path, "a", "b", batch_records=rng.randrange(1, 20)))
        except KilledError:
            pass
        first, end = cluster.ends("a")[1]
        cluster.ends("a")[1] = (first, end + rng.randrange(10))
        if rng.random() < 0.2:
            cluster.ends("b")[len(cluster.ends("b"))] = (0, 5)  # A partition was added.
        if table.rows:
            table.commit("of another program", operation="OPTIMIZE")
    table.kill = ""
    run(cluster, table, options(table.path, "a", "b"))
    assert sorted(table.rows) == expected(cluster, "a", "b")
    ends = {one: end for one, (_, end) in cluster.ends("a").items()}
    assert cluster.committed["lake-t"]["a"] == ends


def test_a_job_of_buckets_ends_with_them_and_one_of_brokers_goes_on(tmp_path: Path) -> None:
    cluster = FakeCluster(a=("id-a", {0: (3, 40), 1: (0, 9), 2: (5, 7)}))
    table = FakeTable(tmp_path / "t")
    cluster.limits["a"] = {0: 25, 1: 9, 2: 0}
    run(cluster, table, options(table.path, batch_records=7))
    tiered = [("a", 0, at) for at in range(3, 25)] + [("a", 1, at) for at in range(9)]
    assert sorted(table.rows) == tiered
    cluster.limits.clear()
    run(cluster, table, options(table.path))
    assert sorted(table.rows) == expected(cluster, "a")
    # The table is ahead of the buckets now, and no record was lost.
    cluster.limits["a"] = {0: 30, 1: 9, 2: 0}
    run(cluster, table, options(table.path))
    assert sorted(table.rows) == expected(cluster, "a")


def test_nothing_new_needs_no_spark(tmp_path: Path) -> None:
    cluster, table = FakeCluster(a=("id-a", {0: (0, 5)})), FakeTable(tmp_path / "t")
    run(cluster, table, options(table.path))
    assert run(cluster, table, options(table.path)) == []
    assert table.prepared == 1


def test_another_schema_is_compared_with_the_table_though_nothing_is_new(tmp_path: Path) -> None:
    (tmp_path / "one.ddl").write_text("n BIGINT")
    cluster, table = FakeCluster(a=("id-a", {0: (0, 5)})), FakeTable(tmp_path / "t")
    run(cluster, table, options(table.path))
    schema = read_schema(tmp_path / "one.ddl")
    assert run(cluster, table, options(table.path, schema=schema)) == []
    assert table.prepared == 2


def test_what_a_batch_tells_comes_from_its_commit(tmp_path: Path) -> None:
    cluster, table = FakeCluster(a=("id-a", {0: (0, 7)})), FakeTable(tmp_path / "t")
    told = run(cluster, table, options(table.path, batch_records=5))
    assert [(each.number, each.records, each.left) for each in told] == [(0, 5, 2), (1, 2, 0)]


def test_a_table_knows_its_topics(tmp_path: Path) -> None:
    cluster = FakeCluster(a=("id-a", {0: (0, 5)}), b=("id-b", {0: (0, 2)}))
    table = FakeTable(tmp_path / "t")
    run(cluster, table, options(table.path, "a"))
    with pytest.raises(OperatorError, match=r"holds the records of a, not of b.*--add-topic"):
        run(cluster, table, options(table.path, "b"))
    run(cluster, table, options(table.path, "b", add_topics=True))
    cluster.ends("a")[0] = (0, 9)
    run(cluster, table, options(table.path, "a"))  # Its progress outlived the batches of b.
    assert sorted(table.rows) == expected(cluster, "a", "b")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"key": "text"}, "has keys as raw: use --key raw"),
        ({"partition_by": ()}, "is partitioned by date=to_date"),
        ({"rack": "north"}, "--rack north: no broker is there; racks: east, west"),
    ],
)
def test_what_the_table_cannot_take_is_refused_before_spark_starts(
    tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    cluster, table = FakeCluster(a=("id-a", {0: (0, 5)})), FakeTable(tmp_path / "t")
    run(cluster, table, options(table.path))
    cluster.ends("a")[0] = (0, 9)
    with pytest.raises(OperatorError, match=reason):
        run(cluster, table, options(table.path, **changes))
    assert table.prepared == 1


def test_records_of_another_cluster_need_a_word(tmp_path: Path) -> None:
    cluster, table = FakeCluster(a=("id-a", {0: (0, 5)})), FakeTable(tmp_path / "t")
    run(cluster, table, options(table.path))
    cluster.id = "cluster-2"
    with pytest.raises(OperatorError, match=r"filled from cluster cluster-1, and .* cluster-2"):
        run(cluster, table, options(table.path))


def test_deleted_records_stop_the_job_or_become_a_gap(tmp_path: Path) -> None:
    cluster, table = FakeCluster(a=("id-a", {0: (0, 5)})), FakeTable(tmp_path / "t")
    run(cluster, table, options(table.path))
    cluster.ends("a")[0] = (8, 10)
    with pytest.raises(OperatorError, match=r"a-0: offsets 5 to 7 were deleted .*--on-gap record"):
        run(cluster, table, options(table.path))
    (told,) = run(cluster, table, options(table.path, on_gap="record"))
    assert (told.records, told.gaps, table.gaps) == (2, 1, [(0, 5, 8)])
    assert [offset for _, _, offset in table.rows] == [0, 1, 2, 3, 4, 8, 9]
    assert run(cluster, table, options(table.path)) == []  # It is noted: nothing is missing now.


def test_a_gap_without_records_behind_it_is_noted_too(tmp_path: Path) -> None:
    cluster, table = FakeCluster(a=("id-a", {0: (0, 5)})), FakeTable(tmp_path / "t")
    run(cluster, table, options(table.path))
    cluster.ends("a")[0] = (9, 9)
    (told,) = run(cluster, table, options(table.path, on_gap="record"))
    assert (told.records, table.gaps) == (0, [(0, 5, 9)])


def test_gaps_are_noted_by_the_next_run_if_the_job_was_killed_before(tmp_path: Path) -> None:
    cluster, table = FakeCluster(a=("id-a", {0: (0, 5)})), FakeTable(tmp_path / "t")
    run(cluster, table, options(table.path))
    cluster.ends("a")[0] = (8, 10)
    table.kill = "after"
    with pytest.raises(KilledError):
        run(cluster, table, options(table.path, on_gap="record"))
    cluster.ends("a")[0] = (8, 11)
    run(cluster, table, options(table.path))
    assert table.gaps == [(0, 5, 8)]


def test_a_topic_that_was_made_anew_is_never_taken_for_the_old_one(tmp_path: Path) -> None:
    cluster, table = FakeCluster(a=("id-a", {0: (0, 5)})), FakeTable(tmp_path / "t")
    run(cluster, table, options(table.path))
    cluster.topics["a"] = ("id-b", {0: (0, 50)})
    for choice in ("stop", "record"):
        with pytest.raises(OperatorError, match=r"deleted and made anew.*--on-gap start-anew"):
            run(cluster, table, options(table.path, on_gap=choice))
    run(cluster, table, options(table.path, on_gap="start-anew"))
    assert len(table.rows) == 55
    assert table.gaps == [(0, 5, -1)]
    assert run(cluster, table, options(table.path)) == []


def test_a_log_that_lost_its_end_is_not_read_on_in_silence(tmp_path: Path) -> None:
    cluster, table = FakeCluster(a=("id-a", {0: (0, 5)})), FakeTable(tmp_path / "t")
    run(cluster, table, options(table.path))
    cluster.ends("a")[0] = (0, 3)
    with pytest.raises(OperatorError, match=r"a-0 ends at offset 3, and .* up to 5"):
        run(cluster, table, options(table.path, on_gap="record"))


def test_where_a_topic_begins_is_kept_even_if_nothing_is_there(tmp_path: Path) -> None:
    cluster, table = FakeCluster(a=("id-a", {0: (0, 5)})), FakeTable(tmp_path / "t")
    latest = options(table.path, start=Start("latest"))
    (told,) = run(cluster, table, latest)
    assert told.records == 0
    cluster.ends("a")[0] = (0, 7)
    run(cluster, table, latest)
    assert [offset for _, _, offset in table.rows] == [5, 6]


class FailingOnce(FakeTable):
    """A table whose next batch fails while its records are being read."""

    meanwhile: Callable[[], None] | None = None

    def write(self, batch: Batch, *, after: int) -> Commit:
        if self.meanwhile is not None:
            happen, self.meanwhile = self.meanwhile, None
            happen()
            raise RuntimeError("a task failed")
        return super().write(batch, after=after)


def test_a_batch_is_planned_anew_if_its_records_are_deleted_while_it_is_read(
    tmp_path: Path,
) -> None:
    cluster, table = FakeCluster(a=("id-a", {0: (0, 5)})), FailingOnce(tmp_path / "t")
    run(cluster, table, options(table.path))
    cluster.ends("a")[0] = (0, 9)
    table.meanwhile = lambda: cluster.ends("a").update({0: (7, 9)})
    run(cluster, table, options(table.path, on_gap="record"))
    assert [offset for _, _, offset in table.rows] == [0, 1, 2, 3, 4, 7, 8]
    assert table.gaps == [(0, 5, 7)]


def test_a_job_outlives_an_outage_of_its_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.pipeline.lake.job.RETRY_S", 0)
    cluster, table = FakeCluster(a=("id-a", {0: (0, 5)})), FailingOnce(tmp_path / "t")
    away = [CannotConnectError("cannot reach the cluster")] * 3
    table.meanwhile = lambda: cluster.failures.extend(away)
    run(cluster, table, options(table.path))
    assert sorted(table.rows) == expected(cluster, "a")


def test_a_failure_without_another_plan_is_the_jobs(tmp_path: Path) -> None:
    cluster = FakeCluster(a=("id-a", {0: (0, 5)}))

    class Full(FakeTable):
        def write(self, batch: Batch, *, after: int) -> Commit:
            raise RuntimeError("No space left on device")

    with pytest.raises(RuntimeError, match="No space left"):
        run(cluster, Full(tmp_path / "t"), options(tmp_path / "t"))


def test_progress_is_taken_from_the_rows_when_the_log_does_not_tell_it(tmp_path: Path) -> None:
    cluster, table = FakeCluster(a=("id-a", {0: (0, 5)})), FakeTable(tmp_path / "t")
    run(cluster, table, options(table.path))
    table.commit("{}", operation="RESTORE")
    cluster.ends("a")[0] = (0, 8)
    with pytest.raises(OperatorError, match=r"RESTORE made its version 1.*--recover"):
        run(cluster, table, options(table.path))
    (told,) = run(cluster, table, options(table.path, recover=True))
    assert (told.number, told.records) == (42, 3)
    assert sorted(table.rows) == expected(cluster, "a")


def test_another_jobs_table_is_not_taken_over(tmp_path: Path) -> None:
    table = FakeTable(tmp_path / "t")
    table.commit("written by a person")
    with pytest.raises(OperatorError, match="was not filled by this job"):
        run(FakeCluster(a=("id-a", {0: (0, 5)})), table, options(table.path))


def test_a_newer_format_of_progress_is_refused(tmp_path: Path) -> None:
    table = FakeTable(tmp_path / "t")
    batch = Batch(0, "c", {"a": TopicProgress("id-a", {0: 5})})
    table.commit(json.dumps({**to_json(batch), "strandline.lake": 2}))
    with pytest.raises(OperatorError, match="progress has format 2"):
        run(FakeCluster(a=("id-a", {0: (0, 5)})), table, options(table.path))
