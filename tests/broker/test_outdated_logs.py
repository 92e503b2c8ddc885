"""A log that was left, and is gone on with, gives no deleted key back (decision 0038).

Source: `raft.outdated`."""

from collections.abc import Callable, Iterator

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_old_directories import give_back, start, stop, take_out
from tests.simulation.test_compaction import read_all

from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.raft import appends
from strandline.records.record import Record, build_batch

A, B, X, D = 1, 4, 5, 2
KEY = b"deleted"
BRIEF = (
    ("cleanup.policy", "compact"),
    ("segment.bytes", "16384"),
    ("delete.retention.ms", "100"),
)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Voters A, B and X; a producer that supersedes one key all the time."""
    with moving_world(monkeypatch, (A, B, X), configs=BRIEF) as made:
        made.until(lambda: len(made.acked) > 5)
        yield made


def put(world: MovingWorld, value: bytes | None) -> None:
    now = world.broker(world.leader_of(TOPIC)).services.clock.wall_ms()
    batch = build_batch([Record(0, now, KEY, value)])
    topic = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(records=batch)])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
    answer = world.ask(world.leader_of(TOPIC), request, ProduceResponse, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def has_key(world: MovingWorld, broker: int) -> bool:
    return KEY in dict(read_all(world.replicas_of(TOPIC)[broker]))


def delete_until_it_is_gone(world: MovingWorld, *brokers: int) -> None:
    """The key, and then the tombstone, with these replicas and no others."""
    put(world, None)
    world.until(lambda: not any(has_key(world, one) for one in brokers))


def settle(world: MovingWorld, *replicas: int) -> None:
    """Until all is moved, and everybody has what was written since."""
    before = len(world.acked)
    world.until(lambda: len(world.acked) > before + 10 and world.is_settled(*replicas))
    assert world.violations == []


def look_at_nothing(patch: pytest.MonkeyPatch) -> None:
    """The planted mistake."""
    patch.setattr(appends, "look", lambda state: None)


def move_away_and_back_while_down(world: MovingWorld) -> None:
    put(world, b"1")
    settle(world, A, B, X)
    assert has_key(world, X)
    stop(world, X)
    world.move(A, B, D)
    world.until(lambda: world.known.version == 1 and not world.known.is_moving)
    delete_until_it_is_gone(world, A, B, D)
    world.move(A, B, X)
    start(world, X)
    settle(world, A, B, X)


def give_an_old_directory_back(world: MovingWorld) -> None:
    put(world, b"1")
    settle(world, A, B, X)
    old = take_out(world, X)
    start(world, X)
    settle(world, A, B, X)
    delete_until_it_is_gone(world, A, B, X)
    give_back(world, X, old)
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
