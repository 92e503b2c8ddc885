"""Every bad day of the page about tiered storage has a test; those that a bucket brings are lived
through here: what the page says that an operator sees is in the log.

Source: docs/operating/tiered.md, "Bad days"; reference 2.6 for the faults."""

import logging
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker.cluster_world import VOTERS, ClusterWorld
from tests.broker.test_broker_in_a_cluster import produce
from tests.broker.test_tiering_in_a_cluster import (
    BUCKETS,
    has_all,
    set_configs,
    tiered_cluster,
    write,
)

from strandline.controller.outages.voting import BEGUN_MS
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.simulation.buckets.bucket import BucketFaults

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/operating/tiered.md"
WEST = 2
"""The broker in the region of the bucket that has a bad day."""
LAG_MS = 5_000
Bring = Callable[[ClusterWorld], None]


def brings(faults: BucketFaults) -> Bring:
    def bring(world: ClusterWorld) -> None:
        world.buckets["west"].faults = faults

    return bring


def lose_objects(world: ClusterWorld) -> None:
    """All but the first and the last one, which a leader would look for."""
    store = world.broker(WEST).services.buckets.store("west")
    state = world.replicas_of("t")[world.leader_of("t")].tier.state
    names = [one.name for one in state.live("west")][1:-1]
    assert names
    world.do(WEST, store.delete(names))


LIVED: dict[str, Bring] = {
    "a bucket is slow": brings(BucketFaults(slow_factor=100_000)),
    "a bucket is gone": brings(BucketFaults(is_gone=True)),
    "a bucket throttles (503)": brings(BucketFaults(throttled_share=1.0)),
    "answers break off": brings(BucketFaults(half_body_share=1.0)),
    "answers have wrong bytes": brings(BucketFaults(wrong_bytes_share=1.0)),
    "an object is missing": lose_objects,
    "the store's clock is wrong": brings(BucketFaults(clock_skew_ms=20 * 60_000)),
}
ELSEWHERE = {
    "credentials expire": "tests/tiered/objects/test_faulty_stores.py::test_new_credentials_in",
    "the cache's disk is full, fails or hangs": (
        "tests/tiered/reading/test_hung_disks.py::test_a_disk_that_hangs"
    ),
    "disks fill up meanwhile": "tests/broker/test_full_backlogs.py::test_writes_are_refused",
    "a directory is not mounted": "tests/tiered/objects/test_directories.py::test_",
    "a region is lost": "tests/broker/test_tiering_in_a_cluster.py::test_a_region_that_is_down",
    "a broker dies in an upload": "tests/integration/test_tiered_uploads.py::test_uploads_outlive",
    "all disks of a partition are lost": "tests/broker/test_tier_declared_losses.py::test_",
    "all disks of the cluster are lost": "tests/integration/test_restore.py::test_a_lost_cluster",
    "two buckets are exchanged, or one is new under an old address": (
        "tests/broker/test_bucket_identities.py::test_exchanged_buckets"
    ),
    "objects of a bucket were removed": "tests/integration/test_tiered_page.py::test_the_walk",
    "the bucket is another cluster's": (
        "tests/broker/test_tiering_in_a_cluster.py::test_another_clusters_bucket"
    ),
    "you want to stop uploads": "tests/broker/test_full_backlogs.py::test_an_operator_lets",
    "you want the objects gone": "tests/integration/test_tiered_bad_days.py::test_a_bucket_stays",
}


def rows() -> dict[str, str]:
    """{what happens: what you see}, as the page has it."""
    section = PAGE.read_text().partition("## Bad days\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("| ")][1:]
    cells = [[one.strip() for one in line.strip("|").split(" | ")] for line in table]
    return {one[0]: one[1] for one in cells}


def test_every_bad_day_of_the_page_has_a_test() -> None:
    assert sorted(rows()) == sorted([*LIVED, *ELSEWHERE])
    for place in ELSEWHERE.values():
        path, _, name = place.partition("::")
        assert f"def {name}" in (ROOT / path).read_text(), place


def let_go(world: ClusterWorld) -> bool:
    """Run the retention of every disk; whether all have let old records go."""
    for broker, replica in world.replicas_of("t").items():
        process = world.hosts[broker].process
        assert process is not None
        process.run_now(replica.clean)
    return all(one.log.start_offset for one in world.replicas_of("t").values())


def first_record(world: ClusterWorld, offset: int) -> tuple[int, bytes]:
    """(error, records), of the broker beside the bucket, within half a second."""
    asked = FetchPartition(fetch_offset=offset, partition_max_bytes=1_000_000)
    topics = [FetchTopic(topic="t", partitions=[asked])]
    request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics)
    found = world.ask(WEST, request, FetchResponse, 12).responses[0].partitions[0]
    return found.error_code, bytes(found.records or b"")


@pytest.mark.parametrize("day", LIVED)
def test_a_bad_day_is_lived_through_and_seen(day: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with tiered_cluster() as world:
        write(world, 40)
        world.until(has_all(world), every_ms=200)
        log = world.replicas_of("t")[WEST].log
        whole = log.read_records(log.start_offset, 1 << 20, log.end_offset).bytes()
        lag_ms = {"remote.copy.lag.max.ms": str(LAG_MS)}
        set_configs(world, "t", {"local.retention.ms": "1", **lag_ms})
        world.until(lambda: let_go(world), every_ms=500)

        second = world.replicas_of("t")[WEST].tier.state.live("west")[1].base_offset
        LIVED[day](world)
        for at in range(30):
            assert produce(world, "t", b"%d" % at * 40).error_code == 0, "producing goes on"
        records = b""

        def is_read() -> bool:
            nonlocal records
            _, records = first_record(world, second)
            return bool(records)

        world.until(is_read, every_ms=1_000)
        assert records in whole, "nothing wrong is served"
        world.advance(LAG_MS + BEGUN_MS + 20_000)
        for name in re.findall("`([^`]+)`", rows()[day].partition(", or ")[0]):
            assert any(name in one for one in caplog.messages), (name, set(caplog.messages))
        if "tiered-lag" in rows()[day]:
            let_go(world)
            replicas = world.replicas_of("t")
            has = replicas[world.leader_of("t")].tier.state.live_end("west")
            assert has < replicas[WEST].log.closed.end_offset
            assert all(one.log.start_offset <= has for one in replicas.values()), "they wait"

        world.buckets["west"].faults = BucketFaults()
        world.until(has_all(world), every_ms=500)
        if day != "an object is missing":
            check_objects_from_local(world)
        assert {world.replicas_of("t")[one].failed for one in VOTERS} == {None}


def check_objects_from_local(world: ClusterWorld) -> None:
    """What is live in the bucket is what the other buckets have."""
    state = world.replicas_of("t")[world.leader_of("t")].tier.state
    digests = {
        bucket: [(one.base_offset, one.end_offset, one.digest) for one in state.live(bucket)]
        for bucket in BUCKETS
    }
    assert digests["west"] == digests["east"] == digests["south"]
