"""Where replicas are to move, and who votes on the way. Source: KIP-455; design section 6, R2."""

import random

import pytest
from tests.controller.controller_world import brokers, registration
from tests.controller.one_partition import TOPIC, OnePartition

from strandline.controller.commands import (
    AlterReassignments,
    DeleteTopics,
    NewTopic,
    PartitionResults,
    Refused,
    ReportVoters,
    RequestVoters,
    TopicToDelete,
    VotersNoted,
    WantedReplicas,
)
from strandline.controller.records import VotersGranted, decode_record
from strandline.model.cluster import Roles
from strandline.model.ids import BrokerId, GroupId
from strandline.protocol.errors import Error


class Moves(OnePartition):
    """One partition on brokers 1, 2, 3 of 5."""

    def __init__(self) -> None:
        super().__init__()
        self.create(NewTopic(name=TOPIC, assignments=((0, brokers(1, 2, 3)),)))

    def request(self, *ids: int, version: int = 0) -> bool:
        """Whether it was granted."""
        answer = self.run(RequestVoters(self.partition.group, version, brokers(*ids)))
        return isinstance(answer, VotersNoted)

    def shape(self) -> tuple[object, ...]:
        one = self.partition
        assert self.state.cluster.groups[one.group] is one
        assert (one.group in self.state.cluster.moving) == one.is_moving
        return one.replicas, one.version, one.pending, one.target


def test_a_move_goes_from_target_over_grant_to_stable() -> None:
    world = Moves()
    assert world.alter(4, 1, 2).error_code == 0
    assert world.shape() == ((1, 2, 3), 0, (), (4, 1, 2))
    assert world.partition.hosts == (4, 1, 2, 3)
    assert world.partition.adding == (4,)
    assert world.partition.removing == (3,)
    assert world.request(4, 1, 2)
    assert world.shape() == ((1, 2, 3), 0, (4, 1, 2), (4, 1, 2))
    assert world.report(4, 1, 2)
    assert world.shape() == ((4, 1, 2), 1, (), ())
    assert world.partition.hosts == (4, 1, 2)
    assert world.partition.removing == ()


def test_another_order_of_the_same_brokers_is_there_at_once() -> None:
    world = Moves()
    assert world.alter(3, 1, 2).error_code == 0
    assert world.shape() == ((3, 1, 2), 0, (), ())


@pytest.mark.parametrize("ids", [(), (1, 1, 2), (1, 2, 9)])
def test_empty_repeated_and_unknown_brokers_are_refused(ids: tuple[int, ...]) -> None:
    world = Moves()
    assert world.alter(*ids).error_code == Error.INVALID_REPLICA_ASSIGNMENT
    assert world.shape() == ((1, 2, 3), 0, (), ())


def test_another_count_is_refused_where_it_was_not_allowed() -> None:
    """KIP-860. What counts is what is wanted, not who holds the log meanwhile."""
    world = Moves()
    result = world.alter(1, 2, may_change_count=False)
    assert result.error_code == Error.INVALID_REPLICATION_FACTOR
    assert world.alter(4, 5, may_change_count=True).error_code == 0
    assert world.alter(4, 1, may_change_count=False).error_code == 0


def test_partitions_that_are_not_there_are_refused_each_for_itself() -> None:
    world = Moves()
    wanted = [
        WantedReplicas(topic="no", index=0, replicas=brokers(1)),
        WantedReplicas(topic=TOPIC, index=1, replicas=brokers(1)),
        WantedReplicas(topic=TOPIC, index=-1, replicas=None),
        WantedReplicas(topic=TOPIC, index=0, replicas=brokers(1, 2, 4)),
    ]
    answer = world.run(AlterReassignments(tuple(wanted)))
    assert isinstance(answer, PartitionResults)
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    assert [one.error_code for one in answer.partitions] == [unknown, unknown, unknown, 0]
    twice = AlterReassignments((wanted[3], wanted[3]))
    answer = world.run(twice)
    assert isinstance(answer, PartitionResults)
    assert {one.error_code for one in answer.partitions} == {Error.INVALID_REQUEST}


def test_a_cancel_of_nothing_says_so() -> None:
    world = Moves()
    assert world.cancel().error_code == Error.NO_REASSIGNMENT_IN_PROGRESS


def test_a_cancel_before_the_grant_takes_the_target_away() -> None:
    world = Moves()
    world.alter(1, 2, 4)
    assert world.cancel().error_code == 0
    assert world.shape() == ((1, 2, 3), 0, (), ())
    assert not world.request(1, 2, 4)


def test_a_cancel_after_the_grant_is_undone_only_once_that_is_stable() -> None:
    world = Moves()
    world.alter(1, 2, 4)
    world.request(1, 2, 4)
    assert world.cancel().error_code == 0
    assert world.cancel().error_code == 0
    assert world.shape() == ((1, 2, 3), 0, (1, 2, 4), (1, 2, 3))
    assert world.partition.hosts == (1, 2, 3, 4)
    assert not world.request(1, 2, 3)
    assert world.report(1, 2, 4)
    assert world.shape() == ((1, 2, 4), 1, (), (1, 2, 3))
    assert world.partition.hosts == (1, 2, 3, 4)
    assert world.request(1, 2, 3, version=1)
    assert world.report(1, 2, 3, version=2)
    assert world.shape() == ((1, 2, 3), 2, (), ())


def test_another_target_replaces_the_first_and_waits_for_what_was_granted() -> None:
    world = Moves()
    world.alter(1, 2, 4)
    world.request(1, 2, 4)
    world.alter(1, 2, 5)
    assert world.partition.hosts == (1, 2, 5, 4, 3)
    assert not world.request(1, 2, 5)
    world.report(1, 2, 4)
    assert world.shape() == ((1, 2, 4), 1, (), (1, 2, 5))


def test_a_grant_rests_on_the_version_and_on_the_target() -> None:
    world = Moves()
    assert not world.request(1, 2, 4)
    world.alter(1, 2, 4)
    assert not world.request(1, 2, 4, version=1)
    assert not world.request(1, 2, 5)
    assert not world.request()
    assert world.shape() == ((1, 2, 3), 0, (), (1, 2, 4))


def test_one_change_is_granted_at_a_time_and_a_repeated_request_changes_nothing() -> None:
    world = Moves()
    world.alter(1, 2, 4)
    assert world.request(1, 2, 4)
    before = len(world.log)
    assert world.request(1, 2, 4)
    world.alter(1, 2, 5)
    assert not world.request(1, 2, 5)
    assert len(world.log) == before + 1


def test_a_report_rests_on_the_grant() -> None:
    world = Moves()
    assert not world.report(1, 2, 3)
    world.alter(1, 2, 4)
    assert not world.report(1, 2, 4)
    world.request(1, 2, 4)
    assert not world.report(1, 2, 4, version=2)
    assert not world.report(1, 2, 3)
    assert world.report(4, 2, 1)
    before = len(world.log)
    assert world.report(1, 2, 4)
    assert len(world.log) == before


def test_groups_that_are_not_there_are_refused() -> None:
    world = Moves()
    for command in (RequestVoters, ReportVoters):
        answer = world.run(command(GroupId(99), 0, brokers(1)))
        assert isinstance(answer, Refused)
        assert answer.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_may_be_deleted_while_it_moves() -> None:
    world = Moves()
    world.alter(1, 2, 4)
    world.run(DeleteTopics((TopicToDelete(TOPIC),)))
    assert not world.state.cluster.moving


def test_only_who_has_held_the_log_from_the_beginning_begins_as_a_new_replica() -> None:
    world = Moves()
    group = world.partition.group
    has_lost = world.state.has_lost
    assert [has_lost(BrokerId(one), group) for one in (1, 2, 3, 4)] == [False, False, False, True]
    world.alter(1, 2, 4)
    assert not has_lost(BrokerId(3), group)
    world.request(1, 2, 4)
    world.report(1, 2, 4)
    assert has_lost(BrokerId(3), group)
    world.alter(1, 2, 3)  # Added again, under the same data directory.
    assert has_lost(BrokerId(3), group)
    assert has_lost(BrokerId(4), group)
    assert not has_lost(BrokerId(1), group)
    world.alive.discard(BrokerId(1))
    world.run(registration(1, incarnation="second", directory="other"))
    assert has_lost(BrokerId(1), group)
    assert world.state.first_roles(group) == Roles(brokers(1, 2, 3))


def test_records_are_decoded_again_and_replayed_to_the_same_state() -> None:
    """A random history; and with it, that no voter is ever out of `hosts`."""
    rng = random.Random(7)
    world = Moves()
    for _ in range(400):
        ids = rng.sample(range(1, 6), rng.randint(1, 4))
        before = world.partition
        match rng.randrange(5):
            case 0:
                world.alter(*ids)
            case 1:
                world.cancel()
            case 2:
                world.request(*rng.choice([before.target, brokers(*ids)]), version=before.version)
            case 3:
                world.report(*before.pending, version=before.version + rng.randint(0, 1))
            case 4:
                world.request(*before.target, version=before.version + rng.randint(-1, 1))
        after = world.partition
        assert set(after.replicas) | set(after.pending) <= set(after.hosts)
        assert after.target or not after.pending
        assert after.version in (before.version, before.version + 1)
        if after.version > before.version:
            assert set(after.replicas) == set(before.pending)
        else:
            assert set(after.replicas) == set(before.replicas)
        if before.pending and after.version == before.version:
            assert after.pending == before.pending
    assert world.replayed().cluster == world.state.cluster
    assert any(isinstance(decode_record(value), VotersGranted) for value in world.log)
