"""The tail of recent entries, memory units, and the queues of waiters."""

from hypothesis import given
from hypothesis import strategies as st

from strandline.model.ids import Epoch, Index
from strandline.replication.budget import MemoryBudget
from strandline.replication.tail import Chunk, Tail
from strandline.replication.waiters import MarkWaiters, Watchers


def chunk(first: int, last: int, size: int = 10) -> Chunk:
    return Chunk(
        first_index=Index(first),
        last_index=Index(last),
        epoch=Epoch(1),
        buffers=[bytes(size)],
        size_bytes=size,
        configuration=None,
        relaxed=False,
        units_bytes=size,
        hand_overs_left=1,
    )


def test_the_tail_gives_chunks_from_a_batch_boundary_only() -> None:
    tail = Tail(limit_bytes=1000)
    tail.add(chunk(0, 4))
    tail.add(chunk(5, 9))
    assert [c.first_index for c in tail.take(Index(5), 100)] == [5]
    assert [c.first_index for c in tail.take(Index(0), 100)] == [0, 5]
    assert tail.take(Index(3), 100) == []
    assert tail.take(Index(10), 100) == []


def test_the_tail_gives_at_least_one_chunk_and_no_more_than_asked_for() -> None:
    tail = Tail(limit_bytes=1000)
    tail.add(chunk(0, 0, size=500))
    tail.add(chunk(1, 1, size=10))
    assert [c.first_index for c in tail.take(Index(0), 100)] == [0]


def test_the_tail_keeps_to_its_limit_but_always_has_the_newest() -> None:
    tail = Tail(limit_bytes=25)
    for index in range(10):
        tail.add(chunk(index, index))
    assert tail.first_index == 8
    tail.add(chunk(10, 10, size=100))
    assert tail.first_index == 10
    assert tail.size_bytes == 100


def test_units_return_and_wake_whoever_waits_for_room() -> None:
    budget = MemoryBudget(100)
    woken: list[str] = []
    budget.take(120)
    assert not budget.has_room
    budget.wait(lambda: woken.append("reader"))
    budget.give_back(30)
    assert woken == []  # 90 of 100 is room, but not enough of it to bother everybody
    budget.give_back(20)
    assert woken == ["reader"]


@given(st.lists(st.integers(0, 20), max_size=30), st.lists(st.integers(0, 20), max_size=5))
def test_every_waiter_is_called_once_and_never_before_its_commit(
    indexes: list[int], commits: list[int]
) -> None:
    waiters = MarkWaiters()
    called: list[tuple[int, bool, int]] = []
    commit = [-1]
    for number, index in enumerate(indexes):
        waiters.insert(
            Index(index),
            lambda ok, i=index, n=number: called.append((i, ok, n)),  # type: ignore[misc]
        )
    for value in sorted(commits):
        commit[0] = value
        before = len(called)
        waiters.on_mark(Index(value))
        assert all(ok and i <= value for i, ok, _ in called[before:])
    waiters.fail()
    assert sorted(n for _, _, n in called) == list(range(len(indexes)))
    last = max(commits, default=-1)
    assert all(ok == (i <= last) for i, ok, _ in called)


def test_a_cancelled_watch_is_not_called_and_others_are_called_once() -> None:
    watchers = Watchers()
    called: list[int] = []
    first = watchers.add(lambda: called.append(1))
    watchers.add(lambda: called.append(2))
    first.cancel()
    watchers.notify()
    watchers.notify()
    assert called == [2]
