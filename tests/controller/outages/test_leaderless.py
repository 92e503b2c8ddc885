"""Nobody leads what all who have a replica and are heard say so of, twice. Source: design section
8."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from strandline.controller.outages.leaderless import Leaderless
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId

VALID_MS = 15_000
A, B = GroupId(1), GroupId(2)


def brokers(*ids: int) -> frozenset[BrokerId]:
    return frozenset(map(BrokerId, ids))


def partition(group: GroupId, *hosts: int) -> Partition:
    return Partition("flights", int(group), group, tuple(map(BrokerId, hosts)))


class World:
    """Two partitions: of brokers 1, 2, 3, and of 3, 4, 5."""

    def __init__(self) -> None:
        self.known = Leaderless(VALID_MS)
        self.groups = {A: partition(A, 1, 2, 3), B: partition(B, 3, 4, 5)}
        self.now_ms = 5
        self.version = 1
        self.silent = brokers()

    def tell(self, named: dict[int, set[GroupId]], *, after_ms: int = 2_000) -> list[GroupId]:
        self.now_ms += after_ms
        for broker, groups in named.items():
            self.known.note(BrokerId(broker), self.now_ms, groups)
        return self.found()

    def found(self) -> list[GroupId]:
        return self.known.found(self.now_ms, self.groups, version=self.version, silent=self.silent)


def test_it_is_one_when_all_of_its_hosts_have_named_it_twice() -> None:
    world = World()
    named = {1: {A}, 2: {A}, 3: {A}}
    assert world.tell(named) == [] and world.known.is_suspected
    assert world.tell(named) == [A]
    assert world.tell({**named, 2: set()}) == [], "one of them knows a leader"
    assert world.tell(named) == []
    assert world.tell(named) == [A]
    assert world.tell({1: set(), 2: set(), 3: set()}) == [] and not world.known.is_suspected


def test_what_was_named_in_the_middle_of_an_election_is_none_however_late_the_next_answer() -> None:
    world = World()
    assert world.tell({1: {A}, 2: {A}, 3: {A}}) == []
    for _ in range(20):
        assert world.tell({}, after_ms=1_000) == []
    assert world.tell({1: {A}, 2: {A}, 3: {A}}) == [], "the one before is too long ago"


def test_who_has_not_told_may_know_a_leader_and_who_is_silent_does_not() -> None:
    world = World()
    for _ in range(2):
        assert world.tell({1: {A}, 2: {A}}) == []
    world.silent = brokers(3)
    assert world.found() == [A]
    world.now_ms += VALID_MS
    assert world.found() == []


def test_what_only_silent_brokers_have_is_one_as_the_state_changes() -> None:
    world = World()
    world.silent = brokers(3, 4, 5)
    assert world.found() == [B]
    world.groups[B] = replace(world.groups[B], replicas=tuple(brokers(1, 4, 5)))
    world.version += 1
    assert world.found() == []
    world.silent = brokers(1, 2, 3, 4, 5)
    assert world.found() == [A, B]
    world.silent = brokers()
    assert world.found() == []


@given(
    st.lists(
        st.dictionaries(st.integers(1, 5), st.sets(st.sampled_from([A, B, GroupId(9)]))),
        min_size=2,
        max_size=5,
    ),
    st.sets(st.integers(1, 5)),
)
def test_never_one_that_a_host_that_is_heard_did_not_name_in_its_last_two_answers(
    answers: list[dict[int, set[GroupId]]], silent: set[int]
) -> None:
    world = World()
    world.silent = brokers(*silent)
    for one in answers:
        found = world.tell(one)
    said: dict[int, list[set[GroupId]]] = {}
    for one in answers:
        for broker, groups in one.items():
            said.setdefault(broker, []).append(groups)
    for group, partition_ in world.groups.items():
        sure = all(
            host in silent or all(group in told for told in [set(), *said.get(host, [])][-2:])
            for host in map(int, partition_.replicas)
        )
        assert (group in found) == sure
