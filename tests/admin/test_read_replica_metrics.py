"""What a scrape says of read replicas: how old they are, and what they lack.

Source: decisions 0023 and 0061."""

from tests.admin.scrapes import Monitor
from tests.broker.cluster_world import VOTERS, ClusterWorld, joined, three_brokers
from tests.broker.test_read_replicas import SECTION, TOPIC, Source, create, until_end
from tests.broker.test_tiering_in_a_cluster import has_all, tiered_cluster, write

PLACE = {"topic": TOPIC, "partition": "0"}
FAILING = "strandline_read_replica_failing_partitions"


def test_a_copy_tells_its_age_and_what_it_lacks() -> None:
    with joined(ClusterWorld(VOTERS, tiered=SECTION)) as world:
        source = Source(world)
        source.upload(0, 10, epoch=2)
        source.export(epoch=2)
        create(world)
        world.until(lambda: world.leader_of(TOPIC) > 0)
        until_end(world, 10)
        world.advance(60_000)
        monitor = Monitor(world)
        told = monitor.scrape(world.leader_of(TOPIC))
        told.expect_known()
        assert 60 <= told.value("strandline_read_replica_staleness_seconds", **PLACE) < 90
        assert told.value("strandline_read_replica_lag_records", **PLACE) == 5
        assert told.value("strandline_read_replica_unreadable_partitions") == 0
        assert told.value(FAILING) == 0
        source.bucket.faults.is_gone = True
        world.advance(60_000)
        assert monitor.scrape(world.leader_of(TOPIC)).value(FAILING) == 1


def test_exports_are_counted_and_without_buckets_there_are_none() -> None:
    with tiered_cluster(export_interval_ms=500) as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        world.advance(5_000)
        told = Monitor(world).scrape(world.leader_of("t"))
        assert told.value("strandline_exports_total") >= 3
        assert told.value("strandline_exports_pending") == 0
    with three_brokers() as world:
        told = Monitor(world).scrape(1)
        assert told.value("strandline_exports_total") == 0
        assert not told.of("strandline_read_replica_staleness_seconds")
