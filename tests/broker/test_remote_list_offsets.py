"""ListOffsets where old records are in buckets only.

Source: KIP-79, KIP-405, KIP-734, KIP-1005, KIP-1023, KIP-1075; decision 0060."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.broker.broker_world import NOW_MS, ObedientReplica
from tests.broker.remote_world import FAR, NEAR, RemoteWorld
from tests.broker.test_offset_handlers import (
    EARLIEST,
    GREATEST,
    LATEST,
    LOCAL,
    PENDING,
    TIERED,
    list_one,
    only,
    question,
)
from tests.tiered.reading.reading_world import fail

from strandline.broker.handlers.list_offsets import LOOKUP_MS_MAX
from strandline.model.ids import Offset
from strandline.protocol.errors import Error
from strandline.protocol.messages.list_offsets import ListOffsetsResponse

VERSION = 11


@pytest.fixture
def world() -> Iterator[RemoteWorld]:
    made = RemoteWorld()
    yield made
    made.close()


def _times(world: RemoteWorld, *, archived: int = 60) -> ObedientReplica:
    """90 records, 10 ms apart in batches of one; those below `archived` are in a bucket."""
    (replica,) = world.add_topic("t")
    for at in range(90):
        replica.write(b"v" * 40, timestamp=NOW_MS + 10 * at)
    world.archive_below(replica, archived, objects=3)
    return replica


def test_every_time_leads_to_its_record_in_the_bucket_or_the_local_log(world: RemoteWorld) -> None:
    _times(world)
    for at in range(0, 90, 7):
        found = list_one(world, NOW_MS + 10 * at - 3, version=VERSION)
        assert (found.error_code, found.timestamp, found.offset, found.leader_epoch) == (
            Error.NONE,
            NOW_MS + 10 * at,
            at,
            1,
        )
    nothing = list_one(world, NOW_MS + 10_000, version=VERSION)
    assert (nothing.error_code, nothing.offset, nothing.timestamp) == (Error.NONE, -1, -1)


def test_the_ends_need_no_bucket(world: RemoteWorld) -> None:
    _times(world)
    assert list_one(world, EARLIEST, version=VERSION).offset == 0
    assert list_one(world, EARLIEST, version=VERSION).leader_epoch == 1
    assert list_one(world, LOCAL, version=VERSION).offset == 60
    assert list_one(world, LATEST, version=VERSION).offset == 90
    assert world.reader.counters.requests.total() == 0


def test_the_greatest_timestamp_may_be_in_a_bucket(world: RemoteWorld) -> None:
    (replica,) = world.add_topic("t")
    for at in (5, 900, 7, 8, 9):
        replica.write(b"v", timestamp=NOW_MS + at)
    world.archive_below(replica, 3)
    found = list_one(world, GREATEST, version=VERSION)
    assert (found.timestamp, found.offset) == (NOW_MS + 900, 1)
    replica.write(b"v", timestamp=NOW_MS + 901)
    found = list_one(world, GREATEST, version=VERSION)
    assert (found.timestamp, found.offset) == (NOW_MS + 901, 5)


def test_what_a_bucket_does_not_say_in_time_is_retried_by_clients(world: RemoteWorld) -> None:
    _times(world)
    store = world.archive.stores[NEAR]
    store.gate.clear()
    request = question(NOW_MS + 100)
    request.timeout_ms = 700
    pending = world.send(request, VERSION)
    world.advance(699)
    assert not pending.is_answered
    world.advance(1)
    assert only(pending.answer(ListOffsetsResponse)).error_code == Error.REQUEST_TIMED_OUT
    older = world.send(question(NOW_MS + 100), 8)
    world.advance(LOOKUP_MS_MAX)
    assert only(older.answer(ListOffsetsResponse)).error_code == Error.REQUEST_TIMED_OUT
    world.run(store.gate.set)
    world.advance(1)
    assert list_one(world, NOW_MS + 100, version=VERSION).offset == 10


def test_no_bucket_is_an_error_and_no_absence(world: RemoteWorld) -> None:
    _times(world)
    world.archive.stores[NEAR].fault = fail  # type: ignore[assignment]
    found = list_one(world, NOW_MS + 100, version=VERSION)
    assert (found.error_code, found.offset) == (Error.KAFKA_STORAGE_ERROR, -1)
    world.services.remote_log = None
    assert list_one(world, NOW_MS, version=VERSION).error_code == Error.KAFKA_STORAGE_ERROR


def test_a_client_that_goes_ends_its_lookup(world: RemoteWorld) -> None:
    _times(world)
    store = world.archive.stores[NEAR]
    store.gate.clear()
    pending = world.send(question(NOW_MS + 100), VERSION)
    world.advance(5)
    world.run(pending.context.abandon)
    world.run(store.gate.set)
    world.advance(5)
    assert not pending.is_answered


def test_the_last_tiered_record_is_in_as_many_buckets_as_retention_asks(
    world: RemoteWorld,
) -> None:
    replica = _times(world)
    assert list_one(world, TIERED, version=VERSION).offset == -1  # Without remote storage.

    def configure(**settings: object) -> None:
        known = {"remote_storage": True, "remote_buckets": (NEAR, FAR), **settings}
        replica.log.config = replace(replica.log.config, **known)  # type: ignore[arg-type]

    configure(remote_copies_min=1)
    found = list_one(world, TIERED, version=VERSION)
    assert (found.offset, found.timestamp, found.leader_epoch) == (59, -1, 1)
    assert list_one(world, PENDING, version=VERSION).offset == 60
    world.archive_below(replica, 70)
    replica.local_start = Offset(60)
    assert list_one(world, TIERED, version=VERSION).offset == 69
    configure(remote_copies_min=0)  # All of them, and one has nothing yet.
    assert list_one(world, TIERED, version=VERSION).offset == 59
    assert list_one(world, PENDING, version=VERSION).offset == 60


def test_nothing_tiered_yet_has_no_last_record(world: RemoteWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"v")
    replica.log.config = replace(replica.log.config, remote_storage=True, remote_buckets=(NEAR,))
    assert list_one(world, TIERED, version=VERSION).offset == -1
    assert list_one(world, PENDING, version=VERSION).offset == 0


def test_versions_that_do_not_know_a_name_refuse_it(world: RemoteWorld) -> None:
    _times(world)
    for timestamp, since in ((LOCAL, 8), (TIERED, 9), (PENDING, 11)):
        old = list_one(world, timestamp, version=since - 1)
        assert old.error_code == Error.UNSUPPORTED_VERSION
        assert list_one(world, timestamp, version=since).error_code == Error.NONE
