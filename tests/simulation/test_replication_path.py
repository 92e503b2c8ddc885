"""The replication path of Redpanda's RFC 20220119, sentence by sentence, over simulated links."""

import dataclasses

import pytest
from tests.simulation.full_speed import (
    MS,
    FullSpeedProducer,
    counted,
    leader_of,
    run_for,
    slow_down,
)
from tests.simulation.plain_scenario import plain_scenario, started

from strandline.model.ids import BrokerId, Index
from strandline.protocol.errors import Error
from strandline.records.batch import iterate_headers
from strandline.records.record import Record, build_batch
from strandline.replication.leader.appender import HELD_BYTES_MAX
from strandline.replication.replica.replica import Replica
from strandline.replication.settings import ReplicationSettings
from strandline.simulation.world.world import World
from strandline.storage.config import LogConfig
from strandline.storage.log.log import Log
from strandline.storage.log.reads import Entries

KIB = 1024
MIB = 1024 * KIB
BATCH_BYTES = 32 * KIB
LOG = LogConfig(segment_bytes=2 * MIB, retention_bytes=64 * MIB)
SMALL = ReplicationSettings(
    append_bytes_max=128 * KIB,
    memory_bytes_max=4 * MIB,
    tail_bytes_max=MIB,
    queue_bytes_max=512 * KIB,
    recovery_bytes_per_s=4 * MIB,
)
"""As the defaults, but for an eighth of the memory."""
QUEUED_BYTES_MAX = 2 * (SMALL.queue_bytes_max + SMALL.append_bytes_max + BATCH_BYTES)
"""For two followers: what may wait for a socket, and one append more."""
SLOW_BYTES_PER_MS = 50
"""50 KB/s: a window of it takes minutes."""
CONNECTIONS = 40


def followers(world: World) -> list[BrokerId]:
    leader = leader_of(world).self_id
    return [broker for broker in world.scenario.brokers if broker != leader]


def test_a_link_of_100_ms_is_used_for_nine_tenths_and_more() -> None:
    """Design section 5: "Per follower a window of appends in flight, in requests and bytes, sized
    from the link's measured bandwidth x round trip."""
    world = started(
        plain_scenario(one_way_us=50_000, jitter_ratio=0.02, log=LOG, flush_us=(200, 2_000))
    )
    bytes_per_ms = 10_000
    slow_down(world, *world.scenario.brokers, bytes_per_ms=bytes_per_ms)
    for link in world.fabric._links.values():
        link.buffer_bytes = 16 * MIB
    replica = leader_of(world)
    producer = FullSpeedProducer(world, replica, acks=1, batch_bytes=BATCH_BYTES)
    run_for(world, 2_000)
    before = replica.high_watermark
    run_for(world, 4_000)
    rate = (replica.high_watermark - before) * BATCH_BYTES / 4_000
    assert 0.9 * bytes_per_ms <= rate <= 1.05 * bytes_per_ms
    assert producer.errors == []
    assert world.checker.violation is None


@pytest.mark.parametrize("acks", [1, -1])
def test_units_return_when_the_socket_has_the_bytes_not_when_they_are_acknowledged(
    acks: int,
) -> None:
    """RFC: "Replicate batcher memory units are released after the request is handed off to the
    socket". Here an acknowledgement takes 100 ms."""
    world = started(plain_scenario(one_way_us=50_000, jitter_ratio=0.0, log=LOG))
    replica = leader_of(world)
    run_for(world, 500)
    memory = replica.host.memory
    producer = FullSpeedProducer(
        world, replica, acks=acks, batch_bytes=BATCH_BYTES, requests_per_pass=1
    )
    assert memory.used_bytes > BATCH_BYTES, "accepted, and not yet appended"
    producer.is_stopped = True
    run_for(world, 2)
    assert (memory.used_bytes, memory.kept_bytes) == (0, 0)
    assert replica.raft.visible < replica.log.last_index, "nobody has acknowledged anything"
    assert producer.pending_count == (1 if acks == -1 else 0)
    run_for(world, 200)
    assert replica.raft.commit == replica.log.last_index
    assert producer.pending_count == 0


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_one_follower_that_takes_nothing_slows_nobody_and_fills_no_memory(
    acks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RFC: "Replicate batcher memory units are released after the request is handed off to the
    socket so that all the user space buffer can be freed." Here two sockets of three take all."""
    amounts = []
    for is_slow in (False, True):
        world = started(plain_scenario(log=LOG, settings=SMALL))
        replica = leader_of(world)
        slow = followers(world)[0]
        slow_down(world, *world.scenario.brokers, bytes_per_ms=20_000)
        if is_slow:
            slow_down(world, slow, bytes_per_ms=SLOW_BYTES_PER_MS)
        with counted(monkeypatch) as sent:
            producer = FullSpeedProducer(world, replica, acks=acks, batch_bytes=BATCH_BYTES)
            run_for(world, 1_500)
            early = producer.highest_memory_bytes, producer.highest_queued_bytes
            run_for(world, 1_500)
        amounts.append(replica.high_watermark)
        assert producer.errors == []
        assert sent.repeated == []
        assert world.checker.violation is None
        assert producer.highest_memory_bytes <= SMALL.memory_bytes_max
        assert producer.highest_queued_bytes <= QUEUED_BYTES_MAX
        if is_slow:
            # It is behind by more than the tail holds, and everything that is held is bounded.
            behind = replica.raft.commit - replica.raft.progress[slow].match_written
            assert behind * BATCH_BYTES > 2 * SMALL.tail_bytes_max
            assert producer.highest_memory_bytes <= early[0] + MIB
            assert producer.highest_queued_bytes <= early[1] + SMALL.append_bytes_max
    assert amounts[1] >= 0.95 * amounts[0]


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_two_followers_that_take_nothing_stop_the_producer_at_every_acks_level(acks: int) -> None:
    """RFC: "The leader can be an arbitrary large number of entries ahead of followers. [...] In the
    proposed solution, we are going to handle backpressure in the same way for both consistency
    levels. This way there will be a guarantee that followers can always keep up with the
    leader." """
    world = started(plain_scenario(log=LOG, settings=SMALL))
    replica = leader_of(world)
    slow_down(world, *followers(world), bytes_per_ms=SLOW_BYTES_PER_MS)
    producer = FullSpeedProducer(world, replica, acks=acks, batch_bytes=BATCH_BYTES)
    run_for(world, 5_000)
    assert replica.is_leader
    assert producer.errors == []
    assert producer.blocked_grant_count > 4_000
    assert producer.highest_memory_bytes <= SMALL.memory_bytes_max
    # What waits for the sockets, what is in them, and what a window holds.
    lead_max = SMALL.tail_bytes_max + 2 * SMALL.queue_bytes_max + 512 * KIB
    assert producer.highest_lead_count * BATCH_BYTES <= lead_max
    # A quorum takes 50 KB/s, and so does the producer once all that is full.
    before = producer.sent_bytes
    run_for(world, 10_000)
    assert producer.sent_bytes - before <= 10_000 * SLOW_BYTES_PER_MS * 1.5
    assert world.checker.violation is None


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_partitions_that_nobody_takes_share_one_bound_of_memory(acks: int) -> None:
    """RFC: "In future, we may consider a per-shard semaphore that controls the total amount of
    memory used by all the replicate batchers." Here each partition alone stays far below it."""
    world = started(plain_scenario(groups=24, log=LOG, settings=SMALL))
    host, replicas = max(
        (
            (host, [one for one in world.cluster.leading_replicas() if one.host is host])
            for host in {one.host for one in world.cluster.leading_replicas()}
        ),
        key=lambda led: len(led[1]),
    )
    assert len(replicas) * SMALL.tail_bytes_max >= 2 * SMALL.memory_bytes_max
    slow_down(
        world,
        *(broker for broker in world.scenario.brokers if broker != host.self_id),
        bytes_per_ms=SLOW_BYTES_PER_MS,
    )
    producers = [
        FullSpeedProducer(world, one, acks=acks, batch_bytes=BATCH_BYTES, pass_us=10 * MS)
        for one in replicas
    ]
    run_for(world, 5_000)
    assert all(one.errors == [] for one in producers)
    highest = max(one.highest_memory_bytes for one in producers)
    # The request that passes the bound is the last one that is read.
    assert SMALL.memory_bytes_max <= highest < SMALL.memory_bytes_max + BATCH_BYTES + KIB
    assert all(one.blocked_grant_count > 0 and one.sent_bytes > 0 for one in producers)
    assert world.checker.violation is None


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_one_partition_takes_no_more_than_its_share_of_the_memory(acks: int) -> None:
    """Each of many connections has a request in hand before it is held up. What is too much is
    refused, so that producers of other partitions are read on."""
    world = started(plain_scenario(log=LOG))
    replica = leader_of(world)
    memory = replica.host.memory
    slow_down(world, *followers(world), bytes_per_ms=10 * SLOW_BYTES_PER_MS)
    codes: list[int] = []

    def send() -> None:
        batch = build_batch([Record(offset_delta=0, key=None, value=bytes(MIB - KIB))])
        headers = list(iterate_headers(batch))
        replica.replicate(
            [batch], headers, acks=acks, done=lambda result: codes.append(result.error_code)
        )

    process = world.hosts[replica.self_id].process
    assert process is not None
    for _ in range(CONNECTIONS):
        process.run_now(send)
        run_for(world, 5)
    refused = codes.count(Error.NOT_ENOUGH_REPLICAS)
    assert 0 < refused < CONNECTIONS / 2
    assert len(codes) == refused + (codes.count(Error.NONE) if acks != -1 else 0)
    assert HELD_BYTES_MAX - MIB < replica.appender.held_bytes <= HELD_BYTES_MAX
    assert memory.has_room
    run_for(world, 60_000)
    assert codes.count(Error.NONE) == CONNECTIONS - refused
    assert (replica.appender.held_bytes, memory.used_bytes) == (0, 0)
    assert world.checker.violation is None


# ---- recovery ------------------------------------------------------------------------------------


def fall_behind(world: World, replica: Replica, slow: BrokerId, *, duration_ms: int) -> None:
    """Cut the way to a follower for a while; the connection lasts."""
    world.fabric.cut(replica.self_id, slow)
    run_for(world, duration_ms)
    world.fabric.heal(replica.self_id, slow)


def paced(world: World, replica: Replica, *, acks: int) -> FullSpeedProducer:
    """About 5 MB/s."""
    return FullSpeedProducer(
        world,
        replica,
        acks=acks,
        batch_bytes=BATCH_BYTES,
        requests_per_pass=1,
        pass_us=6_000,
    )


@pytest.mark.parametrize("is_killed", [True, False])
@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_follower_that_falls_behind_and_catches_up_under_load_gets_every_entry_once(
    seed: int, acks: int, monkeypatch: pytest.MonkeyPatch, *, is_killed: bool
) -> None:
    """RFC: "Since there is no coordination between the two paths [...] those requests may be
    reordered and cause log truncations and redeliveries [...]. We can introduce the last sent
    offset to raft::follower_index_metadata"; "the replicate_stm will not skip sending a request to
    the follower if it is the next request the follower is supposed to receive"; "the recovery_stm
    will not try to send the same request again"."""
    world = started(plain_scenario(seed=seed, log=LOG, settings=SMALL))
    replica = leader_of(world)
    slow = followers(world)[0]
    slow_down(world, *world.scenario.brokers, bytes_per_ms=20_000)
    recovered = []
    read_entries = Log.read_entries

    def read(log: Log, from_index: Index, max_bytes: int) -> Entries:
        entries = read_entries(log, from_index, max_bytes)
        recovered.append(len(entries.data))
        return entries

    monkeypatch.setattr(Log, "read_entries", read)
    with counted(monkeypatch) as sent:
        first_index = replica.log.last_index + 1
        producer = paced(world, replica, acks=acks)
        run_for(world, 300)
        if is_killed:
            world.hosts[slow].on_down = None
            world.hosts[slow].kill()
            run_for(world, 1_000)
            world.hosts[slow].start()
        else:
            fall_behind(world, replica, slow, duration_ms=1_000)
        run_for(world, 6_000)
        producer.is_stopped = True
        run_for(world, 1_000)
    assert sum(recovered) > 2 * SMALL.tail_bytes_max, "it was really behind"
    progress = replica.raft.progress[slow]
    assert progress.match_flushed == replica.log.last_index
    assert sent.repeated == []
    assert sent.skipped == []
    if not is_killed:  # No connection broke: every entry went to every follower exactly once.
        count = replica.log.last_index - first_index + 1
        assert sent.entry_count == dict.fromkeys(followers(world), count)
    assert producer.errors == []
    assert world.checker.violation is None


def test_recovery_takes_the_configured_rate_and_what_is_appended_meanwhile() -> None:
    """Design section 5: "A replica really behind is served by one recovery reader (throttled, large
    chunks)"."""
    world = started(plain_scenario(log=LOG, settings=SMALL))
    replica = leader_of(world)
    slow = followers(world)[0]
    slow_down(world, *world.scenario.brokers, bytes_per_ms=50_000)
    paced(world, replica, acks=-1)
    run_for(world, 200)
    world.hosts[slow].on_down = None
    world.hosts[slow].kill()
    run_for(world, 6_000)
    world.hosts[slow].start()

    def behind_bytes() -> int:
        progress = replica.raft.progress[slow]
        return (replica.log.last_index - progress.match_written) * BATCH_BYTES

    run_for(world, 1_000)
    begun = behind_bytes()
    run_for(world, 4_000)
    rate = (begun - behind_bytes()) / 4
    assert 0.9 * SMALL.recovery_bytes_per_s <= rate <= 1.1 * SMALL.recovery_bytes_per_s
    run_for(world, 5_000)
    assert behind_bytes() <= SMALL.tail_bytes_max
    assert world.checker.violation is None


def test_a_follower_that_makes_up_the_quorum_is_not_slowed_down() -> None:
    """The throttle protects producers; here they wait for the very replica."""
    settings = dataclasses.replace(SMALL, recovery_bytes_per_s=64 * KIB)
    world = started(plain_scenario(log=LOG, settings=settings))
    replica = leader_of(world)
    away, last = followers(world)
    slow_down(world, *world.scenario.brokers, bytes_per_ms=50_000)
    producer = paced(world, replica, acks=-1)
    run_for(world, 200)
    for broker in (away, last):
        world.hosts[broker].on_down = None
    world.hosts[away].kill()
    run_for(world, 3_000)
    assert replica.is_leader
    world.hosts[away].start()
    run_for(world, 200)
    assert replica.raft.progress[away].match_written < replica.raft.commit, "it is behind"
    world.hosts[last].kill()
    run_for(world, 2_000)
    # 15 MB at 64 KiB/s would be four minutes.
    assert replica.is_leader
    assert replica.raft.progress[away].match_flushed >= replica.raft.commit > 0
    assert producer.pending_count < 10
    assert world.checker.violation is None


@pytest.mark.parametrize("acks", [1, -1])
def test_leadership_is_handed_over_while_a_third_replica_recovers(acks: int) -> None:
    """RFC: "These optimizations make the handling of the recovering follower more complex in other
    scenarios, such as leadership_transfer." Here whoever else is behind delays nothing."""
    settings = dataclasses.replace(SMALL, recovery_bytes_per_s=64 * KIB)
    world = started(plain_scenario(log=LOG, settings=settings))
    replica = leader_of(world)
    slow, target = followers(world)
    slow_down(world, *world.scenario.brokers, bytes_per_ms=50_000)
    paced(world, replica, acks=acks)
    run_for(world, 200)
    world.hosts[slow].on_down = None
    world.hosts[slow].kill()
    run_for(world, 3_000)
    world.hosts[slow].start()
    run_for(world, 1_000)
    assert replica.raft.progress[slow].match_written < replica.raft.commit - 100, "it recovers"
    begun_us = world.scheduler.now_us
    replica.transfer_leadership(target)
    new_leader = next(one for one in world.cluster.replicas() if one.self_id == target)
    assert world.scheduler.run_until_true(
        lambda: new_leader.can_serve_reads, limit_us=begun_us + 10_000 * MS
    )
    # A few round trips of 1 ms, and the flushes of an election.
    assert world.scheduler.now_us - begun_us < 100 * MS
    assert world.checker.violation is None


@pytest.mark.parametrize("acks", [1, -1])
def test_a_follower_that_stood_still_is_asked_and_gets_nothing_twice(
    acks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was sent to it lies in its socket, and arrives when it runs again: it was sent once more
    each `resend_timeout_ms`, over the same connection."""
    world = started(plain_scenario(log=LOG, settings=SMALL))
    replica = leader_of(world)
    stopped = followers(world)[0]
    slow_down(world, *world.scenario.brokers, bytes_per_ms=20_000)
    for link in world.fabric._links.values():
        link.buffer_bytes = 16 * MIB
    with counted(monkeypatch) as sent:
        producer = paced(world, replica, acks=acks)
        run_for(world, 300)
        world.hosts[stopped].pause()
        run_for(world, 4_000)
        world.hosts[stopped].resume()
        run_for(world, 4_000)
        producer.is_stopped = True
        run_for(world, 1_000)
    assert replica.raft.progress[stopped].match_flushed == replica.log.last_index
    assert (sent.repeated, sent.skipped) == ([], [])
    assert producer.errors == []
    assert world.checker.violation is None


def test_a_leader_that_was_alone_for_a_while_hands_on_nothing_with_a_hole_in_it() -> None:
    """What is appended while nobody follows is not kept for handing on; what was kept before then
    is no longer the end of the log."""
    world = started(plain_scenario(log=LOG, settings=SMALL))
    replica = leader_of(world)
    slow = followers(world)[0]
    slow_down(world, slow, bytes_per_ms=SLOW_BYTES_PER_MS)
    everybody = replica.configuration.voters
    producer = FullSpeedProducer(world, replica, acks=1, batch_bytes=BATCH_BYTES)
    run_for(world, 200)
    producer.is_stopped = True
    run_for(world, 100)
    assert replica.leadership is not None
    assert replica.leadership.tail.kept_bytes, "for the slow follower"
    replica.change_configuration(voters=(replica.self_id,), observers=())
    run_for(world, 1_000)
    assert replica.configuration.members == (replica.self_id,)
    alone = FullSpeedProducer(world, replica, acks=1, batch_bytes=BATCH_BYTES)
    run_for(world, 20)
    alone.is_stopped = True
    assert replica.leadership.tail.kept_bytes == 0, "for nobody"
    slow_down(world, slow, bytes_per_ms=20_000)
    replica.change_configuration(voters=everybody, observers=())
    run_for(world, 60_000)
    assert alone.errors == []
    assert replica.host.memory.used_bytes == 0
    assert len(world.cluster.replicas()) == 3
    assert len({(r.log.last_index, r.raft.commit) for r in world.cluster.replicas()}) == 1
    assert world.checker.violation is None
