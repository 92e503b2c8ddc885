"""A lake job without Spark: topics in memory, and a table that is a Delta log on disk.

How:    `FakeTable` commits as Delta does: a batch whose number its log has already is skipped."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

from strandline.pipeline.lake.cluster import Snapshot, TopicSnapshot
from strandline.pipeline.lake.delta_log import Commit, LocalLog, newest_commits, versions
from strandline.pipeline.lake.job import LakeJob, Watch, Written
from strandline.pipeline.lake.options import LakeOptions
from strandline.pipeline.lake.progress import Batch, own_commit, to_json

CLUSTER_ID = "cluster-1"


class KilledError(BaseException):
    """The job's process is gone."""


class FakeCluster:
    """Topics as {name: (id, {partition: (first offset, end)})}."""

    def __init__(self, **topics: tuple[str, dict[int, tuple[int, int]]]) -> None:
        self.topics = topics
        self.limits: dict[str, dict[int, int]] = {}
        """{topic: {partition: where buckets end}}, for a job that reads nothing else."""
        self.id = CLUSTER_ID
        self.failures: list[Exception] = []
        self.committed: dict[str, dict[str, dict[int, int]]] = {}

    def snapshot(self, names: tuple[str, ...]) -> Snapshot:
        if self.failures:
            raise self.failures.pop(0)
        found = {}
        for name in names:
            topic_id, ends = self.topics[name]
            found[name] = TopicSnapshot(
                topic_id,
                {partition: each[0] for partition, each in ends.items()},
                {partition: each[1] for partition, each in ends.items()},
                self.limits.get(name, {}),
            )
        return Snapshot(self.id, found)

    def offsets_at(self, topic: str, time_ms: int) -> dict[int, int]:
        return {one: time_ms if time_ms < end else -1 for one, (_, end) in self.ends(topic).items()}

    def ends(self, topic: str) -> dict[int, tuple[int, int]]:
        return self.topics[topic][1]

    def racks(self) -> set[str]:
        return {"east", "west"}

    def commit(self, group: str, offsets: dict[str, dict[int, int]]) -> None:
        self.committed[group] = offsets


@dataclass
class FakeTable:
    """See the module. `rows`: every (topic, partition, offset) that its commits added."""

    path: Path
    rows: list[tuple[str, int, int]] = field(default_factory=list)
    gaps: list[tuple[int, int, int]] = field(default_factory=list)
    kill: str = ""
    """"before" or "after" the next commit."""
    prepared: int = 0

    @property
    def log(self) -> LocalLog:
        return LocalLog(self.path)

    def prepare(self, *, exists: bool) -> list[str]:
        self.prepared += 1
        return []

    def write(self, batch: Batch, *, after: int) -> Commit:
        if self.kill == "before":
            self.kill = ""
            raise KilledError
        if not any(commit.metadata and commit.metadata["batch"] >= batch.number
                   for commit in newest_commits(self.log)):  # fmt: skip
            added = [
                (name, partition, offset)
                for name, topic in batch.topics.items()
                for partition, ends in topic.read.items()
                for offset in range(*ends)
            ]
            self.rows += added
            self.commit(json.dumps(to_json(batch)), rows=len(added), number=batch.number)
        if self.kill == "after":
            self.kill = ""
            raise KilledError
        found = own_commit(self.log, batch, after=after)
        assert found is not None
        return found

    def commit(
        self, metadata: str, *, rows: int = 0, number: int = 0, operation: str = "WRITE"
    ) -> None:
        """One more commit in the log."""
        actions: list[dict[str, object]] = [
            {"commitInfo": {"operation": operation, "userMetadata": metadata}},
            {"txn": {"appId": "strandline-lake", "version": number}},
            {
                "add": {
                    "path": "x",
                    "partitionValues": {},
                    "stats": json.dumps({"numRecords": rows}),
                }
            },
        ]
        folder = self.path / "_delta_log"
        folder.mkdir(parents=True, exist_ok=True)
        version = max(versions(self.log), default=-1) + 1
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (folder / f"{version:020d}.json").write_text(text)

    def note_gaps(self, batch: Batch) -> None:
        found = [(gap.partition, gap.first, gap.end) for gap in batch.gaps]
        self.gaps += [gap for gap in found if gap not in self.gaps]

    def dead_letters(self, batch: Batch) -> Commit | None:
        return None

    def problems(self, commits: Sequence[tuple[str, Commit]]) -> dict[str, int]:
        return {}

    def recovered(self) -> dict[str, dict[int, int]]:
        ends: dict[str, dict[int, int]] = {}
        for topic, partition, offset in self.rows:
            each = ends.setdefault(topic, {})
            each[partition] = max(each.get(partition, 0), offset + 1)
        return ends

    def last_number(self) -> int:
        return 41


def options(table: Path, *topics: str, **changes: object) -> LakeOptions:
    plain = LakeOptions(bootstrap="127.0.0.1:9092", topics=topics or ("a",), table=str(table))
    return replace(plain, **changes)  # type: ignore[arg-type]


def run(cluster: FakeCluster, table: FakeTable, chosen: LakeOptions) -> list[Written]:
    """One run of a job, up to the end of now."""
    told: list[Written] = []
    watch = Watch(on_batch=told.append, on_notice=lambda _: None)
    job = LakeJob(chosen, cluster, stop=Event(), watch=watch)  # type: ignore[arg-type]
    job.look(table.log, None)
    if not job.is_idle:
        job.open(table, None)
        while job.step(table):
            pass
    return told
