"""The log alone makes the cluster: whoever replays it knows the same, and everything travels."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controller.controller_world import World, changes, registration

from strandline.base.errors import OperatorError, ProtocolError
from strandline.controller.commands import (
    AllocateProducerIds,
    AlterConfigs,
    Command,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    EnsureInternalTopic,
    MorePartitions,
    NewTopic,
    TopicToDelete,
    decode_answer,
    decode_command,
    encode,
)
from strandline.controller.records import decode_record
from strandline.model.ids import BrokerId

NAMES = st.sampled_from(["a", "b", "c", "../x", "__consumer_offsets"])
COUNTS = st.integers(-1, 7)


def commands() -> st.SearchStrategy[Command]:
    topics = st.builds(NewTopic, name=NAMES, partitions=COUNTS, replication_factor=COUNTS)
    return st.one_of(
        st.builds(
            registration,
            st.integers(1, 6),
            region=st.sampled_from(["east", "west", "south"]),
            incarnation=st.sampled_from(["one", "two"]),
            directory=st.sampled_from(["x", "y"]),
        ),
        st.lists(topics, max_size=3).map(lambda some: CreateTopics(tuple(some))),
        NAMES.map(lambda name: DeleteTopics((TopicToDelete(name),))),
        st.builds(MorePartitions, topic=NAMES, count=COUNTS).map(
            lambda more: CreatePartitions((more,))
        ),
        st.builds(
            lambda name, value: AlterConfigs((changes(2, name, ("retention.ms", 0, value)),)),
            NAMES,
            st.sampled_from(["1", "2", "x"]),
        ),
        st.just(AllocateProducerIds(BrokerId(1))),
        NAMES.map(EnsureInternalTopic),
    )


class GroupsAreUnique:
    """No two partitions, past or present, share a Raft group."""

    def __init__(self) -> None:
        self.owners: dict[int, tuple[str, int]] = {}

    def check(self, world: World) -> None:
        cluster = world.state.cluster
        for topic in cluster.topics.values():
            for partition in topic.partitions:
                owner = (str(topic.id), partition.index)
                assert self.owners.setdefault(partition.group, owner) == owner
                assert cluster.groups[partition.group] is partition
                assert partition.group < cluster.next_group
        assert len(cluster.groups) == sum(len(t.partitions) for t in cluster.topics.values())


class ReplicasAreSound:
    """Every partition has distinct, registered brokers, as many as its siblings."""

    def check(self, world: World) -> None:
        cluster = world.state.cluster
        for topic in cluster.topics.values():
            assert len({len(partition.replicas) for partition in topic.partitions}) == 1
            for partition in topic.partitions:
                assert len(set(partition.replicas)) == len(partition.replicas) > 0
                assert set(partition.replicas) <= set(cluster.brokers)


@settings(max_examples=60, deadline=None)
@given(st.lists(commands(), max_size=25), st.integers(0, 100))
def test_any_commands_keep_the_cluster_sound_and_replay_alike(
    script: list[Command], seed: int
) -> None:
    world = World(seed=seed)
    invariants = (GroupsAreUnique(), ReplicasAreSound())
    for command in script:
        carried = decode_command(encode(command))
        assert carried == command
        answer = world.run(carried)
        assert decode_answer(encode(answer)) == answer
        for invariant in invariants:
            invariant.check(world)
    other = world.replayed()
    assert other.cluster == world.state.cluster
    assert other.cluster.version == len(world.log)
    assert other.directories == world.state.directories


def test_one_seed_decides_alike() -> None:
    logs = []
    for _ in range(2):
        world = World(seed=9)
        world.create_one(partitions=20)
        logs.append(world.log)
    assert logs[0] == logs[1]


def test_a_record_of_a_newer_version_stops_an_older_broker_with_one_line() -> None:
    with pytest.raises(OperatorError, match="start a newer version"):
        decode_record(b'{"kind":"broker_retired","id":3}')


@given(st.binary(max_size=60))
def test_garbage_is_no_command(data: bytes) -> None:
    try:
        decode_command(data)
    except ProtocolError:
        pass


def test_topic_ids_come_from_the_injected_random_numbers() -> None:
    first, second = World(seed=3), World(seed=3)
    assert first.create_one().id == second.create_one().id
    second.rng = random.Random(4)
    assert first.create_one("b").id != second.create_one("b").id
