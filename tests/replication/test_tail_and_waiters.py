"""The tail of recent entries, memory units, and the queues of waiters."""

from hypothesis import given
from hypothesis import strategies as st

from strandline.model.ids import Epoch, Index
from strandline.replication.leader.tail import Chunk, Tail
from strandline.replication.memory_budget import MemoryBudget
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
    )


def tail_of(limit_bytes: int, memory_bytes: int = 1 << 20) -> tuple[Tail, MemoryBudget]:
    memory = MemoryBudget(memory_bytes)
    return Tail(limit_bytes, memory), memory


def add(tail: Tail, memory: MemoryBudget, *chunks: Chunk) -> None:
    for one in chunks:
        memory.take(one.size_bytes)
        tail.add(one)


def test_the_tail_gives_chunks_from_a_batch_boundary_only() -> None:
    tail, memory = tail_of(1000)
    add(tail, memory, chunk(0, 4), chunk(5, 9))
    assert [c.first_index for c in tail.take(Index(5), 100)] == [5]
    assert [c.first_index for c in tail.take(Index(0), 100)] == [0, 5]
    assert tail.take(Index(3), 100) == []
    assert tail.take(Index(10), 100) == []


def test_the_tail_gives_at_least_one_chunk_and_no_more_than_asked_for() -> None:
    tail, memory = tail_of(1000)
    add(tail, memory, chunk(0, 0, size=500), chunk(1, 1, size=10))
    assert [c.first_index for c in tail.take(Index(0), 100)] == [0]


def test_what_was_handed_to_enough_followers_is_kept_up_to_the_limit() -> None:
    tail, memory = tail_of(25)
    for index in range(10):
        add(tail, memory, chunk(index, index))
        tail.hand_through(Index(index))
    assert (tail.first_index, tail.kept_bytes) == (8, 20)
    add(tail, memory, chunk(10, 10, size=100))
    assert (tail.first_index, tail.waiting_bytes) == (10, 100)
    assert (memory.used_bytes, memory.kept_bytes) == (100, 0)


def test_what_waits_for_the_followers_sockets_stays_and_keeps_its_units() -> None:
    """Redpanda RFC 20220119: "When replicate_entries stm is unable to acquire follower dispatch
    units, it will wait, holding the replicate_batcher memory reservation lock so that it can not
    accept writes indefinitely"."""
    tail, memory = tail_of(25)
    add(tail, memory, *(chunk(index, index) for index in range(10)))
    assert (tail.first_index, tail.has_room, memory.used_bytes) == (0, False, 100)
    tail.hand_through(Index(8))
    assert (tail.has_room, memory.used_bytes, tail.waiting_bytes) == (True, 10, 10)
    tail.clear()
    assert (memory.used_bytes, memory.kept_bytes) == (0, 0)


def test_what_every_follower_was_sent_goes_when_it_is_in_their_sockets() -> None:
    tail, memory = tail_of(1000)
    add(tail, memory, chunk(0, 0), chunk(1, 1), chunk(2, 2))
    tail.hand_through(Index(0))
    tail.drop_through(Index(1))
    assert (tail.first_index, memory.used_bytes, memory.kept_bytes) == (1, 20, 0)
    tail.hand_through(Index(2))
    assert (tail.first_index, memory.used_bytes, memory.kept_bytes) == (2, 0, 10)


def test_the_log_serves_up_to_where_a_chunk_begins() -> None:
    tail, memory = tail_of(1000)
    assert tail.boundary_after(Index(3)) > 1 << 60
    add(tail, memory, chunk(5, 9), chunk(10, 14))
    tail.hand_through(Index(9))
    boundaries = [tail.boundary_after(Index(index)) for index in (3, 4, 5, 7, 9)]
    assert boundaries == [5, 5, 10, 10, 10]
    assert tail.boundary_after(Index(10)) > 1 << 60


def test_what_is_kept_goes_when_the_broker_needs_the_memory_from_each_group_in_turn() -> None:
    memory = MemoryBudget(100)
    tails = [Tail(1000, memory) for _ in range(3)]
    for tail in tails:
        add(tail, memory, chunk(0, 0), chunk(1, 1), chunk(2, 2))
        tail.hand_through(Index(2))
    assert (memory.used_bytes, memory.kept_bytes) == (0, 90)
    memory.take(40)
    assert (memory.used_bytes, memory.kept_bytes) == (40, 60)
    assert [tail.kept_bytes for tail in tails] == [20, 20, 20]
    memory.take(200)
    assert (memory.kept_bytes, memory.has_room) == (0, False)


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
            lambda error, i=index, n=number: called.append((i, not error, n)),  # type: ignore[misc]
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
