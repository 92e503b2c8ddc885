"""A job finds how far its table is behind commits that are not its own.

Source: decisions/0055."""

import json
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.delta_log import LocalLog
from strandline.pipeline.lake.progress import (
    Batch,
    TableState,
    TopicProgress,
    carry_on,
    read_state,
    to_json,
)


def batch(number: int) -> Batch:
    return Batch(number, "cluster", {"fruit": TopicProgress("id", {0: number})}, upsert=True)


def commit(table: Path, version: int, metadata: str, operation: str = "WRITE") -> None:
    log = table / "_delta_log"
    log.mkdir(exist_ok=True)
    told = {"commitInfo": {"operation": operation, "userMetadata": metadata}}
    (log / f"{version:020d}.json").write_text(json.dumps(told))


def own(number: int) -> str:
    return json.dumps(to_json(batch(number)))


def carried(number: int, *, as_of: int) -> str:
    return carry_on(TableState(as_of, batch(number)))


def test_a_carried_batch_counts_though_the_log_forgot_the_commit_of_its_own(tmp_path: Path) -> None:
    for version in (5, 6):
        commit(tmp_path, version, carried(2, as_of=4), "OPTIMIZE")
    assert read_state(LocalLog(tmp_path), "lake") == TableState(6, batch(2))


def test_a_batch_that_was_committed_meanwhile_is_newer_than_the_carried_one(tmp_path: Path) -> None:
    commit(tmp_path, 0, own(0))
    commit(tmp_path, 1, own(1))
    commit(tmp_path, 2, carried(0, as_of=0), "OPTIMIZE")
    assert read_state(LocalLog(tmp_path), "lake") == TableState(2, batch(1))


def test_the_newest_carrying_commit_counts(tmp_path: Path) -> None:
    commit(tmp_path, 3, carried(0, as_of=0), "OPTIMIZE")
    commit(tmp_path, 4, own(1))
    commit(tmp_path, 5, carried(1, as_of=4), "DELETE")
    assert read_state(LocalLog(tmp_path), "lake") == TableState(5, batch(1))


def test_a_table_that_was_rewound_after_the_carrying_commit_is_not_known(tmp_path: Path) -> None:
    commit(tmp_path, 0, own(0))
    commit(tmp_path, 1, carried(0, as_of=0), "OPTIMIZE")
    commit(tmp_path, 2, "", "RESTORE")
    with pytest.raises(OperatorError, match="RESTORE made its version 2"):
        read_state(LocalLog(tmp_path), "lake")


def test_a_table_without_progress_carries_none() -> None:
    assert carry_on(TableState(3, None)) == ""
