"""All logs of a partition are given up, and it begins anew with what its buckets have.

Brokers 1 to 3 are the controller's voters; 4 to 6 have the partition, each in a region of its own
with a bucket.

Source: decision 0067."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import ClusterWorld, joined
from tests.broker.test_broker_in_a_cluster import fetch, latest, produce
from tests.broker.test_bucket_identities import replace as replace_bucket
from tests.broker.test_lost_disk import lose_disk
from tests.broker.test_tiering_in_a_cluster import leader, set_configs

from strandline.config.tiered_section import TieredSection
from strandline.controller.commands import CreateTopics, NewTopic, TopicResults
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, grant_of
from strandline.protocol.errors import Error
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from strandline.protocol.messages.recover_partition import (
    RecoverPartitionRequest,
    RecoverPartitionResponse,
    WantedBucket,
)
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.objects.identity import IDENTITY

HOME = (4, 5, 6)
REGIONS = {1: "east", 2: "west", 3: "south", 4: "east", 5: "west", 6: "south"}
BUCKETS = ("east", "west", "south")
SECTION = TieredSection(
    buckets=tuple(f"{name}=file:///{name}" for name in BUCKETS),
    check_interval_ms=200,
    upload_stall_timeout_ms=10_000,
    delete_grace_ms=600_000,
    export_interval_ms=500,
)
RECORDS = 60


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    """Topic t has 60 records, most of them in all three buckets and on no disk any more."""
    with joined(ClusterWorld(range(1, 7), regions=REGIONS, tiered=SECTION)) as made:
        configs = {
            "remote.storage.enable": "true",
            "internal.segment.bytes": "2000",
            "retention.ms": "-1",
            "local.retention.ms": "1",
        }
        topic = NewTopic(
            name="t",
            assignments=((0, tuple(map(BrokerId, HOME))),),
            configs=tuple(configs.items()),
        )
        made.until(lambda: made.broker(1).controller.leader_id > 0)
        made.advance(3_000)
        answer = made.submit(CreateTopics((topic,)))
        assert isinstance(answer, TopicResults) and not answer.topics[0].error_code, answer
        made.until(lambda: made.leader_of("t") > 0)
        write(made, RECORDS)
        until_exported(made)
        yield made


def write(world: ClusterWorld, count: int, *, first: int = 0) -> None:
    for at in range(first, first + count):
        world.until(lambda: world.leader_of("t") > 0)
        assert produce(world, "t", b"%d" % at * 40).error_code == 0


def values(start: int, end: int) -> list[bytes | None]:
    return [b"%d" % at * 40 for at in range(start, end)]


def known(world: ClusterWorld) -> Partition:
    return world.broker(1).controller.cluster.topics["t"].partitions[0]


def until_exported(world: ClusterWorld, *buckets: str) -> None:
    """Until these buckets, or all, have all closed segments, and say so."""

    def is_done() -> bool:
        if not world.leader_of("t"):
            return False
        replica = leader(world)
        exporting = world.broker(world.leader_of("t")).services.exporting
        assert exporting is not None
        ends = {replica.tier.state.live_end(one) for one in buckets or BUCKETS}
        is_up = ends == {replica.log.closed.end_offset} and replica.log.closed.end_offset > 0
        return is_up and (bool(buckets) or exporting.pending_count == 0)

    world.until(is_done, every_ms=200)


def read_all(world: ClusterWorld, end: int, *, start: int = 0) -> list[bytes | None]:
    found: list[bytes | None] = []
    while start + len(found) < end:
        some = fetch(world, "t", offset=start + len(found))
        assert some
        found += some
    return found


def lose_logs(world: ClusterWorld, *brokers: int) -> None:
    """These brokers come back with empty disks."""
    for one in brokers or HOME:
        lose_disk(world, one)
    world.advance(3_000)
    for one in brokers or HOME:
        world.hosts[one].start()
    world.until_started(*(brokers or HOME))


def ask(world: ClusterWorld, **asked: object) -> RecoverPartitionResponse:
    at = world.broker(1).controller.leader_id
    request = RecoverPartitionRequest(
        topic="t", partition=0, grant=known(world).grant, by="a person", **asked
    )
    return world.ask(at, request, RecoverPartitionResponse, 0)


def forecast(world: ClusterWorld, *buckets: str, **asked: object) -> RecoverPartitionResponse:
    wanted = [WantedBucket(one) for one in buckets]
    return ask(world, buckets=wanted, validate_only=True, **asked)


def recover(world: ClusterWorld, *buckets: str, **asked: object) -> RecoverPartitionResponse:
    """Do as the forecast says, once there is one."""
    for _ in range(60):
        found = forecast(world, *buckets, **asked)
        if not found.error_code:
            break
        world.advance(500)
    assert not found.error_code, found.error_message
    wanted = [
        WantedBucket(one.bucket, one.start_offset, one.end_offset)
        for one in found.buckets
        if one.is_wanted
    ]
    done = ask(world, buckets=wanted, logs=found.logs, **asked)
    assert not done.error_code, done.error_message
    world.until(lambda: world.leader_of("t") > 0)
    return done


def until_history(world: ClusterWorld) -> None:
    world.until(lambda: world.leader_of("t") > 0 and not leader(world).tier.awaits_history)


def fetch_error(world: ClusterWorld, at: int, *, offset: int) -> int:
    asked = FetchPartition(fetch_offset=offset, partition_max_bytes=1_000_000)
    request = FetchRequest(max_wait_ms=100, topics=[FetchTopic(topic="t", partitions=[asked])])
    answer = world.ask(at, request, FetchResponse, 12)
    return answer.responses[0].partitions[0].error_code


def end_in_buckets(world: ClusterWorld) -> int:
    return max(leader(world).tier.state.live_end(one) for one in BUCKETS)


def earliest(world: ClusterWorld) -> int:
    asked = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(timestamp=-2)])
    request = ListOffsetsRequest(topics=[asked])
    part = world.ask(world.leader_of("t"), request, ListOffsetsResponse, 7).topics[0].partitions[0]
    assert part.error_code == 0
    return part.offset


def end_of_epoch(world: ClusterWorld, epoch: int) -> tuple[int, int]:
    """(the greatest epoch up to this one, where it ends), as consumers ask."""
    asked = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic("t", [asked])])
    answer = world.ask(world.leader_of("t"), request, OffsetForLeaderEpochResponse, 4)
    (part,) = answer.topics[0].partitions
    assert part.error_code == 0
    return part.leader_epoch, part.end_offset


def test_history_reads_on_and_appends_go_on_behind_it(world: ClusterWorld) -> None:
    end, epoch = end_in_buckets(world), leader(world).epoch
    group = known(world).group
    assert 40 < end <= RECORDS
    lose_logs(world)
    done = recover(world, *BUCKETS)
    assert (done.log_end_offset, known(world).losses[-1].end) == (end, end)
    until_history(world)
    assert earliest(world) == 0
    assert latest(world, "t") == end
    assert read_all(world, end) == values(0, end)
    assert known(world).group != group
    assert end_of_epoch(world, epoch) == (epoch, end)
    assert leader(world).epoch > epoch and grant_of(leader(world).epoch) == known(world).grant == 1
    write(world, 40, first=end)
    assert read_all(world, end + 40) == values(0, end + 40)
    until_exported(world)
    assert end_in_buckets(world) > end
    # Every replica has it, and so has a restart.
    world.until(lambda: len(world.replicas_of("t")) == len(HOME))
    for one in HOME:
        world.lose_power_of(one, for_ms=500)
    world.until(lambda: world.leader_of("t") > 0)
    world.until(lambda: leader(world).tier.is_known)
    assert read_all(world, end + 40) == values(0, end + 40)


def test_a_replica_that_comes_back_with_more_is_removed(world: ClusterWorld) -> None:
    end = end_in_buckets(world)
    for one in HOME:
        world.hosts[one].kill()
    lose_disk(world, 4)
    lose_disk(world, 5)
    world.advance(3_000)
    for one in (4, 5):
        world.hosts[one].start()
    world.until_started(4, 5)
    recover(world, *BUCKETS, broker_ids=[6])
    until_history(world)
    assert latest(world, "t") == end
    # Other records take the offsets of those that only broker 6 has.
    for at in range(RECORDS - end + 5):
        assert produce(world, "t", b"new %d" % at).error_code == 0
    world.hosts[6].start()
    world.until_started(6)
    world.until(
        lambda: 6 in world.replicas_of("t") and world.replicas_of("t")[6].high_watermark > RECORDS
    )
    assert len(world.directories(6)) == 1
    world.until(lambda: set(known(world).voters) == set(HOME), every_ms=500)
    news: list[bytes | None] = [b"new %d" % at for at in range(RECORDS - end + 5)]
    assert fetch(world, "t", at=6, offset=end)[:1] == [b"new 0"]
    assert read_all(world, RECORDS + 5) == values(0, end) + news


def test_a_log_that_is_left_and_ends_further_goes_on_instead(world: ClusterWorld) -> None:
    for one in HOME:
        world.hosts[one].kill()
    world.advance(3_000)
    world.hosts[4].start()
    world.until_started(4)
    world.advance(5_000)
    found = forecast(world, *BUCKETS, broker_ids=[5, 6])
    assert found.error_code == Error.POLICY_VIOLATION
    assert "without --from-bucket" in str(found.error_message)


def test_a_bucket_that_has_more_has_to_be_named(world: ClusterWorld) -> None:
    short = end_in_buckets(world)
    world.buckets["east"].faults.is_gone = True
    write(world, 40, first=RECORDS)
    until_exported(world, "west", "south")
    world.advance(5_000)
    world.buckets["east"].faults.is_gone = False
    end = end_in_buckets(world)
    lose_logs(world)
    world.advance(5_000)
    found = forecast(world, "east")
    assert found.error_code == Error.POLICY_VIOLATION
    assert "west has" in str(found.error_message) and "name it too" in str(found.error_message)
    assert "name one of its buckets" in str(forecast(world).error_message)
    assert "no bucket north" in str(forecast(world, "north").error_message)
    # With both, the longest counts; what the other lacks is filled in.
    recover(world, "east", "west")
    until_history(world)
    assert latest(world, "t") == end > short
    assert leader(world).tier.state.live_end("east") in (short, end)
    assert read_all(world, end) == values(0, end)
    until_exported(world)
    assert {leader(world).tier.state.start(one) for one in BUCKETS} == {0}


def test_a_bucket_that_is_not_the_one_of_its_name_says_nothing(world: ClusterWorld) -> None:
    lose_logs(world)
    world.advance(5_000)
    world.buckets["east"].lose(IDENTITY)
    found = forecast(world, "east")
    assert found.error_code == Error.POLICY_VIOLATION
    assert "bucket east cannot be read" in str(found.error_message)


def test_missing_objects_are_named_and_the_rest_may_be_taken(world: ClusterWorld) -> None:
    end = end_in_buckets(world)
    live = leader(world).tier.state.live("east")
    lost = live[2]
    for bucket in BUCKETS:
        name = leader(world).tier.state.live(bucket)[2].name
        world.buckets[bucket].lose(name)
    lose_logs(world)
    world.advance(5_000)
    found = forecast(world, "east")
    assert found.error_code == Error.POLICY_VIOLATION
    assert lost.name in str(found.error_message)
    recover(world, *BUCKETS, accepts_missing=True)
    until_history(world)
    assert earliest(world) == lost.end_offset
    assert read_all(world, end, start=lost.end_offset) == values(lost.end_offset, end)


def test_objects_after_the_newest_export_count_if_they_line_up(world: ClusterWorld) -> None:
    replica = leader(world)
    end = end_in_buckets(world)
    cluster = world.broker(1).controller.cluster
    place = PartitionPlace(cluster.cluster_id, cluster.topics["t"].id, 0)
    # The exports of the last objects never came.
    bucket = world.buckets["east"]
    newest = max(one for one in bucket.names() if one.startswith(place.exports_prefix))
    count = len(replica.tier.state.live("east"))
    write(world, 40, first=RECORDS)
    until_exported(world)
    later = end_in_buckets(world)
    for name in BUCKETS:
        for one in world.buckets[name].names():
            if one.startswith(place.exports_prefix) and one > newest:
                world.buckets[name].lose(one)
    lose_logs(world)
    done = recover(world, *BUCKETS)
    assert done.log_end_offset == later > end
    (east,) = [one for one in done.buckets if one.bucket == "east"]
    assert east.added_count == east.object_count - count > 0
    until_history(world)
    assert read_all(world, later) == values(0, later)


def test_until_a_bucket_answers_readers_wait_and_producers_go_on(world: ClusterWorld) -> None:
    end = end_in_buckets(world)
    lose_logs(world)
    recover_then_lose_buckets(world, end)
    world.advance(10_000)
    assert leader(world).tier.awaits_history
    asked = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(timestamp=-2)])
    request = ListOffsetsRequest(topics=[asked])
    answer = world.ask(world.leader_of("t"), request, ListOffsetsResponse, 7)
    assert answer.topics[0].partitions[0].error_code == Error.LEADER_NOT_AVAILABLE
    # A follower must not learn that the partition begins at its log.
    follower = next(one for one in HOME if one != world.leader_of("t"))
    for at in (follower, world.leader_of("t")):
        assert fetch_error(world, at, offset=0) == Error.NOT_LEADER_OR_FOLLOWER
    # Nothing says meanwhile that the bucket has nothing.
    for name in BUCKETS:
        world.buckets[name].faults.is_gone = False
    world.until(lambda: not leader(world).tier.awaits_history, every_ms=500)
    assert read_all(world, end + 1) == values(0, end + 1)
    world.until(lambda: world.replicas_of("t")[follower].tier.is_known, every_ms=500)
    assert fetch(world, "t", at=follower, offset=0)[:1] == values(0, 1)


def test_history_out_of_a_bucket_that_was_replaced_is_not_forgotten_again(
    world: ClusterWorld,
) -> None:
    """The first checkpoint says in which of the buckets of that name the objects are."""
    world.buckets["west"].versions = {}
    replace_bucket(world, "west")
    world.until(lambda: "west" in leader(world).tier.state.buckets, every_ms=200)
    world.until(
        lambda: leader(world).tier.state.buckets["west"].generation == 1,
        every_ms=200,
    )
    until_exported(world)
    end = end_in_buckets(world)
    lose_logs(world)
    recover(world, "west")
    until_history(world)
    world.advance(5_000)
    state = leader(world).tier.state
    assert state.buckets["west"].generation == 1
    assert state.start("west") == 0 and state.live_end("west") == end
    assert not state.buckets["west"].counters.retired_count
    assert read_all(world, end) == values(0, end)


def test_a_history_that_never_comes_may_be_given_up(world: ClusterWorld) -> None:
    end = end_in_buckets(world)
    lose_logs(world)
    recover_then_lose_buckets(world, end)
    world.advance(10_000)
    assert leader(world).tier.awaits_history
    keys = {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}
    set_configs(world, "t", keys)
    world.until(lambda: leader(world).tier.is_known, every_ms=500)
    assert earliest(world) == end
    for name in BUCKETS:
        world.buckets[name].faults.is_gone = False
    set_configs(world, "t", {"remote.storage.enable": "true"})
    world.advance(10_000)
    assert earliest(world) == end
    assert fetch(world, "t", offset=end) == values(end, end + 1)


def recover_then_lose_buckets(world: ClusterWorld, end: int) -> None:
    """The partition begins anew, and no bucket answers from then on; one record is written."""
    found = None
    for _ in range(60):
        found = forecast(world, "east")
        if not found.error_code:
            break
        world.advance(500)
    assert found is not None and not found.error_code
    (east,) = [one for one in found.buckets if one.is_wanted]
    wanted = [WantedBucket("east", east.start_offset, east.end_offset)]
    done = ask(world, buckets=wanted, logs=found.logs)
    assert not done.error_code, done.error_message
    for name in BUCKETS:
        world.buckets[name].faults.is_gone = True
    world.until(lambda: world.leader_of("t") > 0)
    answer = produce(world, "t", b"%d" % end * 40)
    assert (answer.base_offset, answer.log_start_offset) == (end, -1)
