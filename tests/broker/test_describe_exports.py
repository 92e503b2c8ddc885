"""Any broker says up to which offset buckets have the records of a partition.

Source: decisions 0027 and 0061."""

from tests.broker.cluster_world import VOTERS, ClusterWorld, joined
from tests.broker.test_tier_exports import CONFIGS, SECTION, until_exported
from tests.broker.tiering_world import BUCKET, upload, write_segments

from strandline.protocol.messages.describe_exports import (
    DescribeExportsRequest,
    DescribeExportsResponse,
    ExportedPartition,
    ExportsTopic,
)


def described(world: ClusterWorld, at: int, *partitions: int) -> list[ExportedPartition]:
    request = DescribeExportsRequest([ExportsTopic("t", list(partitions))], timeout_ms=3_000)
    return world.ask(at, request, DescribeExportsResponse, 0).partitions


def test_a_broker_reads_the_newest_exports_though_the_partition_has_no_leader() -> None:
    with joined(ClusterWorld(VOTERS, tiered=SECTION)) as world:
        world.create_topic("t", configs=CONFIGS)
        write_segments(world, 3)
        upload(world, 0, 10)
        upload(world, 10, 20)
        until_exported(world, 20)
        left = next(one for one in VOTERS if one != world.leader_of("t"))
        for broker in VOTERS:
            if broker != left:
                world.hosts[broker].kill()
        world.advance(30_000)
        (found,) = described(world, left, 0)
        assert (found.bucket, found.start_offset, found.end_offset) == (BUCKET, 0, 20)
        assert (found.high_watermark, found.failure) == (30, "")
        world.buckets[BUCKET].faults.is_gone = True
        (found,) = described(world, left, 0)
        assert (found.export, found.end_offset) == ("", -1)
        assert found.failure
        assert described(world, left) == []


def test_a_broker_without_buckets_has_nothing_to_say() -> None:
    with joined(ClusterWorld(VOTERS)) as world:
        world.create_topic("t")
        assert described(world, 1, 0) == []
