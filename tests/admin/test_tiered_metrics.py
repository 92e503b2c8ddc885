"""What a scrape says of tiered storage: what is late, and which bytes crossed regions.

Source: decisions 0023 and 0059."""

import logging

import pytest
from tests.admin.scrapes import Monitor, controller_of
from tests.broker.cluster_world import VOTERS, three_brokers
from tests.broker.test_broker_in_a_cluster import set_config
from tests.broker.test_tiering_in_a_cluster import BUCKETS, REGIONS, has_all, tiered_cluster, write

from strandline.admin.tiered_metrics import TIERED_METRICS
from strandline.controller.outages.voting import BEGUN_MS, OVER_MS


def test_every_metric_of_tiered_storage_is_told_and_none_without_it() -> None:
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        monitor, leader = Monitor(world), world.leader_of("t")
        told = monitor.scrape(leader)
        told.expect_known()
        assert {one.name for one in TIERED_METRICS} - told.series.keys() == {
            "strandline_tiered_full_in_seconds"
        }
        region = REGIONS[leader]
        own = {"from_region": region, "bucket": region}
        assert told.value("strandline_tiered_uploads_total", **own) > 3
        assert told.value("strandline_tiered_requests_total", bucket=region, request="put") > 6
        assert told.value("strandline_tiered_requests_total", bucket=region, request="get") > 3
        assert told.value("strandline_tiered_received_bytes_total", bucket=region) > 0
        sizes = sum(told.of("strandline_tiered_live_bytes").values())
        uploaded = 0.0
        for broker in VOTERS:
            for labels, value in (
                monitor.scrape(broker).of("strandline_tiered_uploaded_bytes_total").items()
            ):
                assert dict(labels)["from_region"] == dict(labels)["bucket"], "none crossed"
                uploaded += value
        assert uploaded == sizes > 0
    with three_brokers() as world:
        told = Monitor(world).scrape(1)
        names = {one for one in told.series if "_tiered_" in one}
        assert names == {
            "strandline_tiered_late_partitions",
            "strandline_tiered_refusing_partitions",
        }


def test_a_bucket_that_lags_is_measured_and_raises_the_alarm(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="strandline.controller")
    with tiered_cluster() as world:
        write(world, 30)
        world.until(has_all(world), every_ms=200)
        world.buckets["west"].faults.is_gone = True
        set_config(world, "t", "remote.copy.lag.max.ms", "5000")
        write(world, 40)
        world.advance(5_000 + BEGUN_MS + 12_000)
        told = Monitor(world).scrape(world.leader_of("t"))
        assert told.value("strandline_tiered_late_partitions") == 1
        assert told.value("strandline_tiered_refusing_partitions") == 0
        assert "strandline_tiered_full_in_seconds" not in told.series, "it has no limit"
        assert told.value("strandline_tiered_pending_bytes", bucket="west") > 2_000
        age_s = told.value("strandline_tiered_oldest_pending_seconds", bucket="west")
        assert 5 < age_s < 60
        here = {"topic": "t", "partition": "0", "bucket": "west"}
        assert told.value("strandline_tiered_partition_oldest_pending_seconds", **here) == age_s
        for bucket in BUCKETS:
            if bucket != "west":
                assert told.value("strandline_tiered_pending_bytes", bucket=bucket) == 0
        judged = Monitor(world).scrape(controller_of(world))
        assert judged.value("strandline_controller_alarms", **{"class": "tiered-lag"}) == 1
        assert any(
            one.startswith("tiered-lag: closed segments are missing") for one in caplog.messages
        )
        world.buckets["west"].faults.is_gone = False
        world.until(has_all(world), every_ms=500)
        world.advance(OVER_MS + 12_000)
        assert "tiered-lag: all buckets have caught up" in caplog.messages
