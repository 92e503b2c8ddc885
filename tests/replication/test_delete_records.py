"""What a replica takes for deleted: as much as is committed, and it says so when it cannot tell.

Source: docs/decisions/0006-deleting-records.md."""

from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

from strandline.model.ids import Index, Offset
from strandline.replication.replica.delete_records import Deletions
from strandline.replication.replica.replica import Replica
from strandline.replication.settings import ReplicationSettings
from strandline.replication.waiters import MarkWaiters


def deletions(*entries: tuple[int, int]) -> Deletions:
    """Of a log with these deletion markers: (index, before)."""
    found = [(Index(index), Offset(before)) for index, before in entries]
    replica = cast(Replica, SimpleNamespace(log=SimpleNamespace(deletions=found)))
    shared = Mock(settings=ReplicationSettings())
    return Deletions(replica, replica, MarkWaiters(), shared)


def test_what_is_not_committed_deletes_nothing() -> None:
    some = deletions((5, 4), (9, 7))
    seen = []
    for commit in (3, 4, 5, 8, 9, 12):
        some.on_commit(Index(commit))
        seen.append((some.before, some.are_settled))
    assert seen == [(0, False), (0, False), (4, False), (4, False), (7, True), (7, True)]


def test_the_start_never_goes_back() -> None:
    some = deletions((5, 4), (9, 2))
    some.on_commit(Index(9))
    assert (some.before, some.are_settled) == (4, True)


def test_a_log_without_deletions_begins_where_it_begins() -> None:
    some = deletions()
    assert (some.before, some.are_settled) == (0, True)
