"""A bucket stays away: a partition keeps what it lacks up to the topic's limit, and then refuses
writes, or goes on, as the topic says.

Source: `broker.tiering.backlog`; decision 0059."""

import logging

import pytest
from tests.admin.scrapes import Monitor
from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_broker_in_a_cluster import fetch, produce
from tests.broker.test_tiering_in_a_cluster import (
    check_objects,
    has_all,
    leader,
    set_configs,
    tiered_cluster,
    write,
)

from strandline.controller.outages.voting import BEGUN_MS, OVER_MS
from strandline.protocol.errors import Error

LIMIT = {"remote.copy.lag.max.bytes": "8000", "remote.copy.lag.max.action": "refuse-writes"}
STEPS_MAX = 200
LOOK_MS = 400


def fill(world: ClusterWorld) -> int:
    """Write until the partition refuses it; how many were written."""
    for count in range(STEPS_MAX):
        if produce(world, "t", b"x" * 40).error_code:
            return count
        world.advance(LOOK_MS)
    raise AssertionError("the partition takes everything")


def begin(world: ClusterWorld, **configs: str) -> None:
    """A bucket goes away, and the topic has a limit."""
    write(world, 30)
    world.until(has_all(world), every_ms=200)
    world.buckets["west"].faults.is_gone = True
    set_configs(world, "t", LIMIT | {key.replace("_", "."): one for key, one in configs.items()})


def held_bytes(world: ClusterWorld) -> int:
    tiering = world.broker(world.leader_of("t")).services.tiering
    assert tiering is not None
    return tiering.led[leader(world).group].backlog.held_bytes


def test_writes_are_refused_at_the_limit_and_resume_once_the_bucket_has_caught_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    with tiered_cluster() as world:
        begin(world)
        written = 30 + fill(world)
        told = Monitor(world).scrape(world.leader_of("t"))
        assert told.value("strandline_tiered_refusing_partitions") == 1
        assert told.value("strandline_tiered_late_partitions") == 1
        assert told.value("strandline_tiered_full_in_seconds") == 0
        assert 8_000 < held_bytes(world) <= 8_000 + 2 * 2_000
        for acks in (-1, 1):
            answer = produce(world, "t", b"no", acks=acks)
            assert answer.error_code == Error.KAFKA_STORAGE_ERROR
            assert "remote.copy.lag.max.bytes=8000" in (answer.error_message or "")
        assert len(fetch(world, "t")) == written, "reads go on"
        refused = [one for one in caplog.messages if "producers are refused for now" in one]
        assert len(refused) == 1
        assert "remote.copies.min" in refused[0]

        world.buckets["west"].faults.is_gone = False
        world.until(lambda: produce(world, "t", b"yes").error_code == 0, every_ms=LOOK_MS)
        assert any("producers are served again" in one for one in caplog.messages)
        world.until(has_all(world), every_ms=200)
        write(world, 30)
        world.until(has_all(world), every_ms=200)
        check_objects(world)
        assert len(fetch(world, "t")) == written + 31


def test_the_next_leader_refuses_writes_too() -> None:
    with tiered_cluster() as world:
        begin(world)
        fill(world)
        first = world.leader_of("t")
        world.hosts[first].kill()
        world.until(lambda: world.leader_of("t") not in (0, first))
        world.advance(5_000)
        assert produce(world, "t", b"no").error_code == Error.KAFKA_STORAGE_ERROR
        world.hosts[first].start()
        world.until_started(first)


def test_an_idempotent_producer_goes_on_where_it_was_refused() -> None:
    with tiered_cluster() as world:
        begin(world)
        own = {"producer_id": 77, "producer_epoch": 0}
        assert produce(world, "t", b"first", **own, base_sequence=0).error_code == 0
        fill(world)
        for sequence in (1, 2):
            refused = produce(world, "t", b"later", **own, base_sequence=sequence)
            assert refused.error_code == Error.KAFKA_STORAGE_ERROR
        world.buckets["west"].faults.is_gone = False
        world.until(
            lambda: produce(world, "t", b"again", **own, base_sequence=1).error_code == 0,
            every_ms=LOOK_MS,
        )
        assert produce(world, "t", b"again", **own, base_sequence=2).error_code == 0


@pytest.mark.parametrize(
    "choice",
    [
        {"remote_copy_lag_max_action": "keep"},
        {"remote_copies_min": "2"},
        {"remote_log_copy_disable": "true"},
        {"remote_copy_lag_max_bytes": "-1"},
    ],
    ids=str,
)
def test_an_operator_lets_writes_go_on(choice: dict[str, str]) -> None:
    with tiered_cluster() as world:
        begin(world)
        fill(world)
        set_configs(world, "t", {key.replace("_", "."): one for key, one in choice.items()})
        world.until(lambda: produce(world, "t", b"yes").error_code == 0, every_ms=LOOK_MS)
        for _ in range(60):
            assert produce(world, "t", b"more" * 10).error_code == 0
            world.advance(LOOK_MS)


def test_above_the_limit_segments_are_due_at_once() -> None:
    with tiered_cluster() as world:
        write(world, 10)
        never = {"remote.copy.lag.ms": "-1", "remote.copy.lag.bytes": "1000000"}
        set_configs(world, "t", LIMIT | never)
        for _ in range(100):
            world.until(lambda: produce(world, "t", b"x" * 40).error_code == 0, every_ms=LOOK_MS)
        assert held_bytes(world) <= 8_000 + 2 * 2_000
        assert leader(world).tier.state.live_end("west") > 0


def test_alarms_say_how_long_it_takes_and_that_writes_are_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="strandline.controller")
    with tiered_cluster() as world:
        set_configs(world, "t", {"remote.copy.lag.max.ms": "60000"})
        begin(world, remote_copy_lag_max_bytes="14000")
        while not any("tiered-lag" in one for one in caplog.messages):
            assert produce(world, "t", b"x" * 160).error_code == 0
            world.advance(15_000)
        (lag,) = [one for one in caplog.messages if "tiered-lag" in one]
        assert lag.endswith("min"), lag
        minutes = int(lag.split()[-2])
        began_ms = world.broker(world.leader_of("t")).services.clock.monotonic_ms()
        while not produce(world, "t", b"x" * 160).error_code:
            world.advance(15_000)
        took_ms = world.broker(world.leader_of("t")).services.clock.monotonic_ms() - began_ms
        assert 0.6 * minutes <= took_ms / 60_000 <= 1.5 * (minutes + 1), (minutes, took_ms)
        world.advance(BEGUN_MS + 12_000)
        assert any(one.startswith("tiered-full: writes are refused") for one in caplog.messages)
        world.buckets["west"].faults.is_gone = False
        world.until(has_all(world), every_ms=500)
        world.advance(OVER_MS + 12_000)
        assert "tiered-full: writes are taken again: buckets have caught up" in caplog.messages
