"""A snapshot holds all of the controller's state, and bytes that are not right are no snapshot.

Source: decision 0062."""

import random
from dataclasses import fields, is_dataclass
from typing import get_args
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controller.controller_world import World, registration
from tests.controller.test_controller_log import commands

from strandline.base.errors import OperatorError
from strandline.controller import records
from strandline.controller.records import (
    AccessChanged,
    Assignment,
    BrokerRegistered,
    BrokerUnregistered,
    BucketIdentified,
    ClusterNamed,
    ConfigsChanged,
    DomainRuled,
    GrantBegun,
    LeaderAppointed,
    PartitionRecovered,
    PartitionsAdded,
    ProducerIdsAllocated,
    QuotaSet,
    ReassignmentSet,
    Record,
    ReplicasDeclaredLost,
    ReplicasRejoined,
    TopicCreated,
    TopicDeleted,
    VotersGranted,
    VotersStable,
)
from strandline.controller.snapshots import format as snapshot_format
from strandline.controller.snapshots.format import BadSnapshotError, End, Head, frame, read
from strandline.controller.snapshots.image import capture
from strandline.controller.state import ControllerState
from strandline.model.access import (
    Kind,
    Operation,
    PatternType,
    Permission,
    Rule,
    ScramSecret,
)
from strandline.model.cluster import (
    Address,
    BucketRange,
    Cluster,
    Labels,
    Loss,
    LostReplica,
    Outage,
    Partition,
    Ruling,
    Topic,
)
from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset

ADDRESS = Address("host", 1)
EAST = Labels("east", free=(("a", "b"),))
TIERED = {"remote.storage.enable": "true"}
RULE = Rule(
    Kind.TOPIC,
    PatternType.PREFIXED,
    "o",
    "User:alice",
    "region:east",
    Operation.READ,
    Permission.DENY,
)
NOT_STORED = {"_replays"}
"""Fields of `ControllerState` that are no state."""


def bytes_of(state: ControllerState, *, offset: int = 7) -> bytes:
    frames = [snapshot_format.MAGIC, frame(Head(Offset(offset), Epoch(3), "c", 5))]
    frames += map(frame, capture(state).parts())
    return b"".join([*frames, frame(End(len(frames)))])


def plain(value: object) -> object:
    """All of a state as plain values: a field that is added takes part by itself."""
    if isinstance(value, ControllerState):
        return {name: plain(one) for name, one in vars(value).items() if name not in NOT_STORED}
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, dict):
        return [(key, plain(one)) for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def ids(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


def history() -> list[Record]:
    """Records of every kind, which leave no field of the state at its default."""
    group, lost = GroupId(1), LostReplica(BrokerId(3), "d3", "i3")
    registered = [
        BrokerRegistered(
            BrokerId(one),
            f"i{one}",
            f"d{one}",
            ADDRESS,
            ADDRESS,
            Labels("east", free=(("a", "b"),)),
        )
        for one in range(1, 7)
    ]
    silent = BrokerRegistered(
        BrokerId(5), "i5", "d5", ADDRESS, ADDRESS, Labels("west"), Labels(), 9, 10
    )
    loss = Loss(
        grant=2,
        lost=(lost,),
        survivors=ids(1, 2),
        ends=((Epoch(1), Index(4)), (Epoch(1), Index(5))),
        leader=BrokerId(2),
        committed=3,
        end=4,
        by="someone",
        at_ms=6,
    )
    has = (BucketRange("east", 1, 20),)
    recovered = Loss(
        grant=1,
        lost=(lost,),
        survivors=(),
        ends=(),
        leader=BrokerId(1),
        committed=20,
        end=20,
        by="someone",
        at_ms=6,
        history=has,
    )
    created = TopicCreated(
        "t",
        UUID(int=1),
        tuple(Assignment(GroupId(one), ids(1, 2, 3), ids(4)) for one in (1, 2, 3)),
        {"cleanup.policy": "compact"},
    )
    rejoined = ReplicasRejoined(BrokerId(1), (group,))
    identified = BucketIdentified("eu", "a" * 32, 2)
    down = DomainRuled(("east", "a"), True, Ruling.HOLD, 11, 12)
    access = AccessChanged(
        rules_added=(RULE, msgspec.structs.replace(RULE, name="*")),
        secrets_set=(ScramSecret("alice", "SCRAM-SHA-256", 4_096, b"s", b"k", b"v"),),
        quotas=(QuotaSet((("client-id", None), ("user", "alice")), {"producer_byte_rate": 9.5}),),
    )
    return [
        ClusterNamed("cluster"),
        *registered,
        silent,
        created,
        TopicCreated("u", UUID(int=2), (Assignment(GroupId(4), ids(1, 2, 3)),)),
        TopicCreated("gone", UUID(int=3), (Assignment(GroupId(5), ids(1)),), TIERED),
        PartitionsAdded("t", 3, (Assignment(GroupId(6), ids(2, 1, 4)),)),
        TopicDeleted("gone", UUID(int=3)),
        BrokerUnregistered(BrokerId(6)),
        ConfigsChanged("cluster", "", {"num.partitions": "3"}, (down,), rejoined, identified),
        ConfigsChanged("cluster", "", {}, access=access),
        ConfigsChanged("broker", "5", {"decommission": "true"}),
        ConfigsChanged("topic", "u", {"retention.ms": "7"}),
        ProducerIdsAllocated(BrokerId(2), 0, 1_000),
        GrantBegun(group, 1),
        LeaderAppointed(
            group=group,
            grant=1,
            version=1,
            voters=ids(1, 2, 3),
            observers=ids(4),
            leader=BrokerId(1),
            last_epoch=Epoch(1),
            last_index=Index(2),
        ),
        ReplicasDeclaredLost(group, loss),
        ReassignmentSet(GroupId(2), ids(2, 3, 4), by_balancer=True, observers=ids(1)),
        VotersGranted(GroupId(2), 1, ids(1, 2), ids(3, 4)),
        VotersGranted(GroupId(2), 2, ids(2, 3), ids(1, 4)),
        VotersGranted(GroupId(4), 1, ids(1, 2), ids(3)),
        VotersStable(GroupId(4), 1, 2),
        GrantBegun(GroupId(3), 1),
        LeaderAppointed(
            group=GroupId(3),
            grant=1,
            version=1,
            voters=ids(1, 2),
            observers=ids(3, 4),
            leader=BrokerId(1),
            last_epoch=Epoch(1),
            last_index=Index(2),
        ),
        PartitionRecovered(
            GroupId(6), Assignment(GroupId(7), ids(2, 1, 4), (), 20, 1, has), ids(2), recovered
        ),
    ]


def replayed(some: list[Record]) -> ControllerState:
    state = ControllerState()
    for one in some:
        state.replay(one)
    return state


def test_the_history_has_records_of_every_kind() -> None:
    assert {type(one) for one in history()} == set(get_args(records.Record))


def test_in_the_history_every_field_of_the_state_has_a_value_of_its_own() -> None:
    """Otherwise the next test could miss a field that is not in the snapshot."""
    state = replayed(history())
    cluster = state.cluster
    # What a decommission that began or ended leaves behind.
    cluster.displaced[GroupId(2)] = cluster.groups[GroupId(2)].roles
    cluster.returning[GroupId(3)] = cluster.groups[GroupId(3)].roles
    topics, partitions = list(cluster.topics.values()), list(cluster.groups.values())
    for name in (one.name for one in fields(Cluster)):
        assert getattr(cluster, name) != getattr(Cluster(), name), name
    for name in (one.name for one in fields(Topic)):
        assert any(getattr(one, name) not in ([], {}, 0, False) for one in topics), name
    for name in (one.name for one in fields(Partition)):
        assert any(getattr(one, name) not in ((), 0, False, None) for one in partitions), name
    for name, value in vars(state).items():
        assert value or name in NOT_STORED, name
    assert cluster.outages[("east", "a")] == Outage(True, Ruling.HOLD, 11, 12)
    assert plain(read(bytes_of(state))[1]) == plain(state)


@pytest.mark.parametrize("at", range(len(history()) + 1))
def test_a_snapshot_at_any_record_and_the_records_after_it_make_the_state(at: int) -> None:
    some = history()
    head, state = read(bytes_of(replayed(some[:at]), offset=at))
    assert head == Head(Offset(at), Epoch(3), "c", 5)
    for one in some[at:]:
        state.replay(one)
    assert plain(state) == plain(replayed(some))


@given(
    st.lists(st.one_of(commands(), st.integers(1, 6).map(registration)), max_size=40),
    st.integers(0, 2**32),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_so_it_is_for_whatever_the_controller_decides(
    some: list[object], seed: int, data: st.DataObject
) -> None:
    world = World(seed=seed)
    for one in some:
        world.run(one)  # type: ignore[arg-type]
    at = data.draw(st.integers(0, len(world.log)))
    before, after = world.log[:at], world.log[at:]
    state = ControllerState()
    for value in before:
        state.replay(records.decode_record(value))
    _, state = read(bytes_of(state))
    for value in after:
        state.replay(records.decode_record(value))
    assert plain(state) == plain(world.state)


def test_a_state_that_is_adopted_is_the_other_one_and_keeps_its_cluster() -> None:
    state = replayed(history()[:3])
    cluster = state.cluster
    state.adopt(replayed(history()))
    assert plain(state) == plain(replayed(history()))
    assert state.cluster is cluster


def test_a_copy_is_not_changed_by_what_comes_later() -> None:
    some = history()
    state = replayed(some[:18])
    image = capture(state)
    for one in some[18:]:
        state.replay(one)
    assert image == capture(replayed(some[:18]))


def test_no_damaged_or_torn_bytes_are_a_snapshot() -> None:
    data = bytes_of(replayed(history()))
    rng = random.Random(1)
    for end in range(0, len(data), 7):
        with pytest.raises(BadSnapshotError):
            read(data[:end])
    for position in range(0, len(data), 5):
        damaged = bytearray(data)
        damaged[position] ^= 1 << rng.randrange(8)
        with pytest.raises(BadSnapshotError):
            read(bytes(damaged))
    with pytest.raises(BadSnapshotError):
        read(data + b"\0" * 32)


def test_a_frame_that_is_missing_is_noticed() -> None:
    state = replayed(history())
    frames = [frame(one) for one in capture(state).parts()]
    head = snapshot_format.MAGIC + frame(Head(Offset(7), Epoch(3), "c", 5))
    with pytest.raises(BadSnapshotError, match="frames"):
        read(head + b"".join(frames[:-1]) + frame(End(len(frames) + 2)))


def test_what_a_newer_version_wrote_is_refused_with_a_sentence() -> None:
    head = frame(Head(Offset(7), Epoch(3), "c", 5, format=2))
    with pytest.raises(OperatorError, match=r"format 2.*newer version"):
        read(snapshot_format.MAGIC + head + frame(End(2)))
    head = frame(Head(Offset(7), Epoch(3), "c", 5))
    with pytest.raises(OperatorError, match="newer version"):
        read(snapshot_format.MAGIC + head + frame({"kind": "news"}) + frame(End(3)))


def test_fields_that_a_newer_version_added_are_ignored() -> None:
    head = frame(
        {"kind": "snapshot", "offset": 7, "epoch": 3, "cluster_id": "c", "taken_ms": 5, "new": 1}
    )
    parts = list(map(frame, capture(replayed(history())).parts()))
    end = frame(End(len(parts) + 2))
    assert read(b"".join([snapshot_format.MAGIC, head, *parts, end]))[0].offset == 7
