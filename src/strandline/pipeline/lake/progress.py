"""How far a table is: for each of its topics the id, and the next offset of each partition.

Why:    rows and progress in one commit cannot disagree, wherever a job is killed.
How:    each batch is one commit of the table. Its `txn` action holds the batch's number, which
        Delta accepts once; its `userMetadata` is the JSON of a `Batch`:

            {"strandline.lake": 1, "job": "lake-flights", "run": "6f1c...", "batch": 12,
             "cluster": "Qm...", "key": "text", "partition_by": ["date=to_date(timestamp)"],
             "topics": {"flights": {"id": "1b4e28ba-...",
                                    "next": {"0": 5000, "1": 4200},      where batch 13 begins
                                    "read": {"0": [4000, 5000]},         half-open, of this batch
                                    "gaps": [[1, 4000, 4100, "deleted before it was read"]]}}}

        How many records and malformed values a batch has is in the statistics of the files that
        the same commit adds.

        A commit of upkeep or of a replay carries the newest batch on, so that the log may forget
        the batch's own commit:

            {"strandline.carried": 1, "as_of": 40, "batch": {...}}    newest batch up to version 40
Source: decisions/0050."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.delta_log import Commit, LogFiles, newest_commits, versions

APPLICATION_ID = "strandline-lake"
"""`txn.appId` of every lake job: one sequence of batches for a table."""
FORMAT_KEY = "strandline.lake"
FORMAT = 1
CARRIED_KEY = "strandline.carried"
REWOUND = ("RESTORE", "REPLACE TABLE", "CREATE OR REPLACE TABLE")
"""Operations after which a table may lack rows that older commits of the job added."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets [first, end) of a partition that the table will never hold."""

    topic: str
    topic_id: str
    partition: int
    first: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class TopicProgress:
    """One topic. `next`: {partition: the first offset that is not in the table}; `read`:
    {partition: [from, to) of this batch}."""

    id: str
    next: Mapping[int, int]
    read: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """One commit of a lake job: what it read, and where the next one begins."""

    number: int
    """0, 1, 2... : the `txn.version` of the commit."""
    cluster_id: str
    topics: Mapping[str, TopicProgress]
    job: str = ""
    run: str = ""
    """Of the process that made it: tells a job's own commits from those of another job."""
    key: str = ""
    partition_by: tuple[str, ...] = ()
    values: str = ""
    """How values were decoded: equal texts decode equal bytes equally."""
    upsert: bool = False
    """Whether the table has only the newest record of each key."""

    @property
    def offsets(self) -> int:
        """How many offsets it covers; records that compaction removed and transaction markers
        have offsets too."""
        return sum(
            end - first for topic in self.topics.values() for first, end in topic.read.values()
        )

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What it found missing."""
        return tuple(gap for topic in self.topics.values() for gap in topic.gaps)


@dataclass(frozen=True, slots=True)
class CommitId:
    """What makes a commit one that Delta accepts once, and what the commit tells."""

    application: str
    number: int
    metadata: str


def to_json(batch: Batch) -> dict[str, Any]:
    """The `userMetadata` of a batch."""
    return {
        FORMAT_KEY: FORMAT,
        "job": batch.job,
        "run": batch.run,
        "batch": batch.number,
        "cluster": batch.cluster_id,
        "key": batch.key,
        "partition_by": list(batch.partition_by),
        "values": batch.values,
        "upsert": batch.upsert,
        "topics": {
            name: {
                "id": topic.id,
                "next": {str(one): offset for one, offset in sorted(topic.next.items())},
                "read": {str(one): list(ends) for one, ends in sorted(topic.read.items())},
                "gaps": [[gap.partition, gap.first, gap.end, gap.reason] for gap in topic.gaps],
            }
            for name, topic in sorted(batch.topics.items())
        },
    }


def from_json(found: Mapping[str, Any]) -> Batch:
    """The batch of a commit's `userMetadata`; raises OperatorError for a newer format."""
    if found[FORMAT_KEY] != FORMAT:
        raise OperatorError(
            f"the table's progress has format {found[FORMAT_KEY]}, this version reads {FORMAT}: "
            "use the version that wrote it, or a newer one"
        )
    return Batch(
        number=found["batch"],
        cluster_id=found["cluster"],
        topics={name: _topic(name, each) for name, each in found["topics"].items()},
        job=found["job"],
        run=found["run"],
        key=found["key"],
        partition_by=tuple(found["partition_by"]),
        values=found["values"],
        upsert=found.get("upsert", False),
    )


def is_same(one: Batch, other: Batch) -> bool:
    """Whether two batches of the same number are one batch of one job, written by any run."""
    ends = [{name: topic.next for name, topic in each.topics.items()} for each in (one, other)]
    return one.job == other.job and ends[0] == ends[1]


def _topic(name: str, found: Mapping[str, Any]) -> TopicProgress:
    return TopicProgress(
        id=found["id"],
        next={int(one): offset for one, offset in found["next"].items()},
        read={int(one): (ends[0], ends[1]) for one, ends in found["read"].items()},
        gaps=tuple(Gap(name, found["id"], *gap) for gap in found["gaps"]),
    )


@dataclass(frozen=True, slots=True)
class TableState:
    """A table's log as a job finds it."""

    version: int
    """Of the newest commit; -1: there is no table."""
    batch: Batch | None
    """The newest batch in it."""


def read_state(log: LogFiles, table: str) -> TableState:
    """The newest batch of a table. Raises OperatorError if the log cannot tell how far the table
    is."""
    remaining = versions(log)
    if not remaining:
        if any(name.endswith(".parquet") for name in log.names()):
            raise OperatorError(_lost(table, "its log has no commits any more"))
        return TableState(-1, None)
    carried: dict[str, Any] | None = None
    for commit in newest_commits(log):
        if carried is not None and commit.version <= carried["as_of"]:
            break
        metadata: Any = commit.metadata or {}
        if FORMAT_KEY in metadata:
            return TableState(remaining[-1], from_json(metadata))
        if carried is None and CARRIED_KEY in metadata:
            carried = metadata  # A batch that was committed meanwhile is newer.
        if commit.operation in REWOUND:
            raise OperatorError(
                _lost(table, f"{commit.operation} made its version {commit.version}")
            )
    if carried is not None:
        return TableState(remaining[-1], from_json(carried["batch"]))
    if remaining[0] == 0 and len(remaining) == remaining[-1] + 1:
        raise OperatorError(
            f"{table} was not filled by this job, so nothing tells which records it holds: use a "
            "new table; or, if it has a row for each record, begin after its rows with --recover"
        )
    raise OperatorError(_lost(table, "the commit that told it was removed from the table's log"))


def carry_on(state: TableState) -> str:
    """The `userMetadata` of a commit that adds no batch, made of the table's state before it; ""
    for a table without progress."""
    if state.batch is None:
        return ""
    carried = {CARRIED_KEY: FORMAT, "as_of": state.version, "batch": to_json(state.batch)}
    return json.dumps(carried)


def furthest(log: LogFiles) -> dict[tuple[str, str, int], int]:
    """{(topic, its id, partition): the highest next offset that any commit of a log tells}."""
    found: dict[tuple[str, str, int], int] = {}
    for commit in newest_commits(log):
        metadata: Any = commit.metadata or {}
        told = metadata if FORMAT_KEY in metadata else metadata.get("batch")
        if told is None:
            continue
        for name, topic in from_json(told).topics.items():
            for partition, end in topic.next.items():
                place = (name, topic.id, partition)
                found[place] = max(found.get(place, 0), end)
    return found


def _lost(table: str, reason: str) -> str:
    return (
        f"{table}: how far it is cannot be known: {reason}: begin after the newest row of each "
        "partition with --recover"
    )


def own_commit(log: LogFiles, batch: Batch, *, after: int) -> Commit | None:
    """The commit of `batch` by its own run, if it is one of those after version `after`."""
    commit = commit_of(log, batch.number, after=after)
    if commit is None or commit.metadata is None:
        return None
    return commit if from_json(commit.metadata).run == batch.run else None


def commit_of(log: LogFiles, number: int, *, after: int = -1) -> Commit | None:
    """The commit of the batch of this number, by any run, if it comes after version `after`."""
    for commit in newest_commits(log, after=after):
        if commit.metadata is not None and FORMAT_KEY in commit.metadata:
            found = from_json(commit.metadata)
            if found.number <= number:
                return commit if found.number == number else None
    return None
