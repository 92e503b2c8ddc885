"""A stale log that is continued brings no deleted key back (decision 0038).

Source: `raft.follower.stale_log_reset`."""

from collections.abc import Callable, Iterator

import msgspec
import pytest
from tests.broker.cluster_world import DATA_DIRECTORY
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_balancing import TOPIC_SCOPE, alter
from tests.broker.test_declared_losses import declare
from tests.broker.test_old_directories import replace_directory, restore_directory, start, stop
from tests.broker.test_returning_replicas import cut, heal
from tests.simulation.log_resets import watch_beginnings
from tests.simulation.test_compaction import read_all

from strandline.base.errors import ApiError
from strandline.broker.groups.moving import Moving
from strandline.broker.groups.rejoining import Rejoining
from strandline.controller.commands import ReportVoters
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, Index
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.raft.follower import stale_log_reset
from strandline.records.record import Record, build_batch
from strandline.replication.leader.append_sender import AppendSender
from strandline.replication.leader.follower_stream import FollowerStream
from strandline.replication.repair.gap_fetch import EntriesOf
from strandline.replication.replica.entries import cut_before
from strandline.replication.replica.replica import Replica
from strandline.simulation.disk.disk import SimDisk
from strandline.storage.state_journal import read_states

A, B, X, D = 1, 4, 5, 2
KEY = b"deleted"
BRIEF = (
    ("cleanup.policy", "compact"),
    ("internal.segment.bytes", "16384"),
    ("delete.retention.ms", "100"),
)
MAY_BE_ALONE = ("min.insync.replicas", "1")
LOOK_MS = 100


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Voters A, B and X; a producer that supersedes one key all the time."""
    with moving_world(monkeypatch, (A, B, X), configs=BRIEF) as made:
        made.until(lambda: len(made.acked) > 5)
        yield made


def put(world: MovingWorld, value: bytes | None, *, key: bytes = KEY) -> None:
    now = world.broker(world.leader_of(TOPIC)).services.clock.wall_ms()
    batch = build_batch([Record(0, now, key, value)])
    topic = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(records=batch)])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
    answer = world.ask(world.leader_of(TOPIC), request, ProduceResponse, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def has_key(world: MovingWorld, broker: int) -> bool:
    return KEY in dict(read_all(world.replicas_of(TOPIC)[broker]))


def delete_until_it_is_gone(world: MovingWorld, *brokers: int) -> None:
    """The key, and then the tombstone, with these replicas and no others."""
    put(world, None)
    await_without_key(world, *brokers)


def await_without_key(world: MovingWorld, *brokers: int) -> None:
    """Each look reads all that there is: not at every event."""
    world.until(lambda: not any(has_key(world, one) for one in brokers), every_ms=LOOK_MS)


def settle(world: MovingWorld, *replicas: int) -> None:
    """Until all is moved, and all replicas have what was written since."""
    before = len(world.acked)
    world.until(lambda: len(world.acked) > before + 10 and world.is_settled(*replicas))
    assert world.violations == []


def look_at_nothing(patch: pytest.MonkeyPatch) -> None:
    """The planted mistake."""
    patch.setattr(stale_log_reset, "_last_absence", lambda state, joined: None)


def leave_stale_log(world: MovingWorld) -> None:
    """Its replica is moved away and back while it is down; it is down yet."""
    put(world, b"1")
    settle(world, A, B, X)
    assert has_key(world, X)
    stop(world, X)
    world.move(A, B, D)
    world.until(lambda: world.known.version == 1 and not world.known.is_moving)
    delete_until_it_is_gone(world, A, B, D)
    world.move(A, B, X)


def move_away_and_back_while_down(world: MovingWorld) -> None:
    leave_stale_log(world)
    start(world, X)
    settle(world, A, B, X)


def give_an_old_directory_back(world: MovingWorld) -> None:
    put(world, b"1")
    settle(world, A, B, X)
    old = replace_directory(world, X)
    start(world, X)
    settle(world, A, B, X)
    delete_until_it_is_gone(world, A, B, X)
    restore_directory(world, X, old)
    start(world, X)
    settle(world, A, B, X)


WAYS = (move_away_and_back_while_down, give_an_old_directory_back)


@pytest.mark.parametrize("way", WAYS)
def test_a_key_that_was_deleted_meanwhile_does_not_come_back(
    way: Callable[[MovingWorld], None], world: MovingWorld
) -> None:
    way(world)
    assert not has_key(world, X)


@pytest.mark.parametrize("way", WAYS)
def test_a_log_that_is_gone_on_with_is_found(
    way: Callable[[MovingWorld], None], world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_at_nothing(monkeypatch)
    way(world)
    assert has_key(world, X)


# ---- what must not be lost by it -----------------------------------------------------------------


def test_that_nothing_is_remembered_is_durable_before_the_first_file_goes(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else, after a power failure, it votes with an empty log as if nothing had happened."""
    remove_tree = SimDisk.remove_tree
    disk, group = world.hosts[X].disk, world.known.group
    durable: list[bool] = []

    def watched(self: SimDisk, path: str) -> None:
        if TOPIC in path and self.hardware is disk:
            image = disk.tree.find(f"{DATA_DIRECTORY}/state.journal")
            assert image is not None
            data = bytes(image.durable.read(image.durable.size, 0))
            durable.append(read_states("", data)[0][group].lost_state)
        remove_tree(self, path)

    monkeypatch.setattr(SimDisk, "remove_tree", watched)
    move_away_and_back_while_down(world)
    assert durable and all(durable)


@pytest.mark.parametrize("operation", [*range(1, 30, 3)])
def test_whatever_its_power_fails_in_the_middle_of_it_is_whole_in_the_end(
    operation: int, world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed_at: list[int] = []

    def fail_flush(_: Replica) -> None:
        if not failed_at:
            failed_at.append(operation)
            world.hosts[X].dies_of_power_failure = True
            world.hosts[X].disk.faults.die_at_operation = operation

    watch_beginnings(monkeypatch, fail_flush)
    leave_stale_log(world)
    start(world, X)
    world.until(lambda: not world.hosts[X].is_up)
    start(world, X)
    settle(world, A, B, X)
    assert failed_at and not has_key(world, X)


def rejoin(world: MovingWorld) -> None:
    """It loses its directory and takes part again: an earlier one is known from then on."""
    replace_directory(world, X)
    start(world, X)
    settle(world, A, B, X)


def restart_while_it_copies(world: MovingWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is down before and after; no record says meanwhile that it takes part."""
    with monkeypatch.context() as patch:
        patch.setattr(Rejoining, "_on_asked", lambda *_: None)
        for _ in range(3):
            start(world, X)
            world.advance(3_000)
            replica = world.replicas_of(TOPIC)[X]
            assert replica.raft.has_lost_state and replica.log.last_index >= replica.log.start_index
            stop(world, X)


def test_a_copy_is_gone_on_with_after_a_restart(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it restarts before it has all: else it would never have."""
    begun: list[Replica] = []
    watch_beginnings(monkeypatch, begun.append)
    rejoin(world)
    replace_directory(world, X)
    restart_while_it_copies(world, monkeypatch)
    start(world, X)
    settle(world, A, B, X)
    assert not begun


def test_a_copy_after_a_declared_loss_is_gone_on_with_after_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is a state then, without a word of when it took part: it was declared lost."""
    begun: list[Replica] = []
    watch_beginnings(monkeypatch, begun.append)
    with moving_world(monkeypatch, (A, B, X), configs=(*BRIEF, MAY_BE_ALONE)) as world:
        world.until(lambda: len(world.acked) > 5)
        rejoin(world)
        stop(world, B)
        replace_directory(world, X)
        declare(world, B, X)
        restart_while_it_copies(world, monkeypatch)
        start(world, B, X)
        settle(world, A, B, X)
        assert not begun


def test_a_topic_that_is_compacted_since_its_broker_heard_of_it_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It hears its leader, and nothing of the controller: the leader knows."""
    plain = tuple(one for one in BRIEF if one[0] != "cleanup.policy")
    with moving_world(monkeypatch, (A, B, X), configs=plain) as world:
        world.until(lambda: len(world.acked) > 5)
        put(world, b"1")
        settle(world, A, B, X)
        controller = world.broker(X).replication.replicas[CONTROLLER_GROUP]
        with monkeypatch.context() as patch:
            for heard in ("on_message", "on_append"):
                patch.setattr(controller, heard, lambda *_: None)
            world.move(A, B, D)
            world.until(lambda: world.known.version == 1 and not world.known.is_moving)
            alter(world, TOPIC_SCOPE, TOPIC, "cleanup.policy", "compact")
            delete_until_it_is_gone(world, A, B, D)
            world.move(A, B, X)
            world.until(lambda: X in world.replicas_of(TOPIC))
            await_without_key(world, X)
        world.violations.clear()  # Until it heard of its removal, it stood for election.
        settle(world, A, B, X)
        assert not has_key(world, X)


def test_a_topic_that_is_compacted_again_lacks_what_it_has_let_go_of_before(
    world: MovingWorld,
) -> None:
    """Its policy is another one while a replica comes back."""
    leave_stale_log(world)
    alter(world, TOPIC_SCOPE, TOPIC, "cleanup.policy", "delete")
    start(world, X)
    settle(world, A, B, X)
    alter(world, TOPIC_SCOPE, TOPIC, "cleanup.policy", "compact")
    settle(world, A, B, X)
    assert not has_key(world, X)


def test_who_is_appointed_with_a_log_of_before_goes_on_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A move from 4 and 5 to 1 and 2 has a final configuration that is committed nowhere when 2 and
    5 are lost. 1 is appointed, with 4, which was a voter all the time: the appointment counts on
    it."""
    configs = (*BRIEF, ("voters.shrink.enable", "true"), MAY_BE_ALONE)

    def is_final(one: Replica) -> bool:
        return one.configuration.voters == (A, D) and not one.configuration.is_joint

    with moving_world(monkeypatch, (B, X), configs=configs) as world:
        world.until(lambda: len(world.acked) > 20)
        world.move(A, D)
        world.until(lambda: world.any_replica(is_final))
        for other in world.hosts.keys() - {D}:
            cut(world, D, other)
        world.until(lambda: is_final(world.replicas_of(TOPIC)[A]))
        finals = [one.raft for one in world.replicas_of(TOPIC).values() if is_final(one)]
        assert all(one.configuration_index > one.commit for one in finals)
        stop(world, D, X)
        world.until(lambda: world.known.grant == 1 and not world.known.is_fenced)
        for other in world.hosts.keys() - {D}:
            heal(world, D, other)
        start(world, D, X)
        before = len(world.acked)
        world.until(lambda: len(world.acked) > before + 20)


def test_a_tombstone_stays_until_the_controller_has_noted_who_has_left(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then it may appoint a removed replica, and count on its log as it is."""
    put(world, b"1")
    settle(world, A, B, X)
    stop(world, X)
    ask = Moving._ask
    with monkeypatch.context() as patch:
        patch.setattr(
            Moving,
            "_ask",
            lambda self, command: None if isinstance(command, ReportVoters) else ask(self, command),
        )
        world.move(A, B, D)
        world.until(lambda: world.any_leader(is_removed))
        assert world.known.version == 0
        put(world, None)
        world.until(lambda: not has_value(world, A, B, D), every_ms=LOOK_MS)
        world.advance(10_000)
        assert all(has_key(world, one) for one in (A, B, D))
    await_without_key(world, A, B, D)
    start(world, X)
    settle(world, A, B, D)


def is_removed(leader: Replica) -> bool:
    """Whether it is committed that X is no member."""
    raft = leader.raft
    return X not in leader.configuration.members and raft.configuration_index <= raft.commit


def has_value(world: MovingWorld, *brokers: int) -> bool:
    """Whether what the tombstone deletes is still in one of these logs."""
    replicas = world.replicas_of(TOPIC)
    return any((KEY, b"1") in read_all(replicas[one]) for one in brokers)


def test_a_voter_that_an_appointment_makes_an_observer_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Moved away and back while it was down; then the leader is lost, and another one appointed."""
    configs = (*BRIEF, ("voters.shrink.enable", "true"), MAY_BE_ALONE)
    with moving_world(monkeypatch, (A, X), configs=configs) as world:
        world.until(lambda: len(world.acked) > 5)
        put(world, b"1")
        settle(world, A, X)
        stop(world, X)
        world.move(A, D)
        world.until(lambda: not world.known.is_moving and set(world.known.replicas) == {A, D})
        delete_until_it_is_gone(world, A, D)
        world.move(A, X)
        world.until(lambda: world.any_leader(lambda one: X in one.configuration.members))
        world.advance(1_000)
        grant = world.known.grant
        stop(world, D)
        world.until(lambda: world.known.grant > grant and not world.known.is_fenced)
        world.advance(3_000)
        start(world, X, D)
        settle(world, A, X)
        assert not has_key(world, A)
        assert not has_key(world, X)


def test_where_nothing_can_be_noted_any_more_the_log_stays(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = world.hosts[X].disk
    directories: list[str] = []

    def fail_flush(replica: Replica) -> None:
        directories.append(replica.log.directory)
        disk.faults.fail_flush_of = "state.journal"
        disk.faults.fail_flush_count = 1

    watch_beginnings(monkeypatch, fail_flush)
    leave_stale_log(world)
    start(world, X)
    world.until(lambda: bool(directories))
    world.advance(30_000)
    assert disk.tree.find(directories[0]) is not None


def test_who_is_to_be_the_only_voter_has_first_what_made_it_a_member(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disk is slow: it acknowledges nothing for a while, and then that it begins anew. Were it
    a voter by then, all would wait for it, and it for them."""
    begun: list[Replica] = []
    watch_beginnings(monkeypatch, begun.append)
    put(world, b"1")
    settle(world, A, B, X)
    stop(world, X)
    world.move(A, B)
    world.until(lambda: not world.known.is_moving and X not in world.known.replicas)
    delete_until_it_is_gone(world, A, B)
    world.move(X)
    world.hosts[X].disk.faults.slow_factor = 100
    start(world, X)
    world.until(lambda: bool(begun))
    world.advance(5_000)
    world.hosts[X].disk.faults.slow_factor = 1
    settle(world, X)
    assert not has_key(world, X)


def test_who_may_be_outdated_helps_nobody_to_mend(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds out at the end of what it lacks, and has what a tombstone that is gone deletes."""
    read, ends = AppendSender._read, []

    def read_one_for_x(
        self: AppendSender,
        peer: BrokerId,
        stream: FollowerStream,
        first_index: Index,
        *,
        is_by_peer: bool,
    ) -> object:
        found = read(self, peer, stream, first_index, is_by_peer=is_by_peer)
        if peer != X or self._replica.group != world.known.group or found is None:
            return found
        ends.append(Index(first_index + 1))
        return (cut_before(found[0], ends[0]), found[1]) if first_index < ends[0] else None

    leave_stale_log(world)
    with monkeypatch.context() as patch:
        patch.setattr(AppendSender, "_read", read_one_for_x)
        start(world, X)
        world.until(lambda: bool(ends))
        world.advance(3_000)
        replica = world.replicas_of(TOPIC)[X]
        assert has_key(world, X) and not replica.raft.has_lost_state
        question = msgspec.msgpack.encode(EntriesOf(replica.group, Index(1), replica.raft.commit))
        with pytest.raises(ApiError, match="not known to be up to date"):
            world.do(X, replica.host.repairs.gap_fetch._on_question(BrokerId(A), question))
    settle(world, A, B, X)
    assert not has_key(world, X)
