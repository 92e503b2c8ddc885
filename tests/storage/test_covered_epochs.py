"""The epoch of a batch, which no checksum of Kafka's covers, is covered by those of markers.

Source: `records/marker.py`, `storage/log/scan.py`; reliability reference 3."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.storage.log_world import DIRECTORY, World
from tests.storage.test_flushed_mark import marked, settle

from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.records.batch import read_header, seal
from strandline.records.marker import (
    build_configuration_marker,
    build_deletion_marker,
    build_epoch_marker,
)
from strandline.storage.recovery.verification import verify_log

EPOCH_AT = 15
"""The lowest byte of the epoch in a header."""


def flushed(*, segment_bytes: int = 100_000) -> tuple[World, list[int]]:
    """A log that ended by a kill, so that it is scanned, and where its batches begin."""
    world = World(segment_bytes=segment_bytes)
    sizes = []
    for epoch in (2, 3, 6):
        sizes.append(len(world.mark(epoch)))
        sizes += [len(world.append(epoch=epoch)) for _ in range(3)]
    world.flush()
    settle(world)
    assert max(marked(world)) == world.log.last_index
    world.kill()
    world.disk.sync()
    return world, [sum(sizes[:count]) for count in range(len(sizes))]


@pytest.mark.parametrize("batch", range(12))
@pytest.mark.parametrize("bit", range(8))
def test_an_epoch_that_has_changed_below_the_mark_is_found(batch: int, bit: int) -> None:
    world, places = flushed()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", places[batch] + EPOCH_AT, bit)
    with pytest.raises(StorageError):
        world.open()


@pytest.mark.parametrize("bit", range(8))
def test_so_is_one_in_the_last_segment_where_summaries_spare_the_others(bit: int) -> None:
    world, _ = flushed(segment_bytes=500)
    assert len(world.files(".summary")) >= 2
    last = world.files()[-1]
    world.disk.flip_bit(f"{DIRECTORY}/{last}", EPOCH_AT, bit)
    with pytest.raises(StorageError):
        world.open()


def test_logs_whose_markers_cover_no_epoch_are_read() -> None:
    world = World(segment_bytes=100_000)
    marker = bytearray(build_epoch_marker(Offset(0), Epoch(2), world.clock.wall))
    marker[53:57] = (-1).to_bytes(4, "big", signed=True)
    header = read_header(marker)
    assert header is not None and not header.covers_epoch
    seal(marker, header)
    world.write(bytes(marker))
    world.append(epoch=2)
    world.append(epoch=3)
    world.flush()
    world.kill()
    assert world.open().epochs == [(2, 0), (3, 2)]


def test_every_marker_covers_its_epoch() -> None:
    for marker in (
        build_epoch_marker(Offset(4), Epoch(7), 5),
        build_configuration_marker(Offset(4), Epoch(7), b"{}", 5),
        build_deletion_marker(Offset(4), Epoch(7), Offset(2), 5),
    ):
        header = read_header(marker)
        assert header is not None
        assert (header.covers_epoch, header.base_sequence) == (True, 7)


def shortened() -> World:
    """Retention has let the marker go with which the present epoch began."""
    world = World(segment_bytes=500)
    world.mark(2)
    for _ in range(12):
        world.append(epoch=2)
    world.flush()
    world.log.remove_segments_before(world.log._row.segments[1].name.base_index)
    assert world.log.start_index > 0 and world.log._row.active.size_bytes
    return world


def was_reset() -> World:
    """A new replica of a log that has been shortened in the middle of an epoch."""
    world = World(segment_bytes=100_000)
    world.log.reset_to(Index(21), Offset(20), previous_epoch=Epoch(2))
    for _ in range(4):
        world.append(epoch=2)
    return world


def with_a_wrong_epoch(world: World, *, bit: int, goes_on: bool) -> None:
    """In the last batch of epoch 2, which a marker follows where it `goes_on`. All is marked."""
    last = len(world.append(epoch=2))
    end = world.log._row.active.size_bytes
    if goes_on:
        world.log.config = replace(world.log.config, segment_bytes=100_000)
        world.mark(4)
        world.append(epoch=4)
    world.flush()
    settle(world)
    assert max(marked(world)) == world.log.last_index
    world.kill()
    world.disk.sync()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[-1]}", end - last + 15, bit)


@pytest.mark.parametrize("make", [shortened, was_reset])
@pytest.mark.parametrize("bit", range(8))
def test_where_the_marker_is_gone_the_name_tells_the_epoch(
    make: Callable[[], World], bit: int
) -> None:
    """Else a replica that lags would stand for election as one that is ahead."""
    world = make()
    with_a_wrong_epoch(world, bit=bit, goes_on=False)
    with pytest.raises(StorageError):
        world.open()


@pytest.mark.parametrize("make", [shortened, was_reset])
def test_and_it_is_found_before_a_later_marker_too(make: Callable[[], World]) -> None:
    """There it lies between sound ones, and would be handed on."""
    world = make()
    with_a_wrong_epoch(world, bit=0, goes_on=True)
    assert verify_log(world.disk, DIRECTORY).is_damaged
    with pytest.raises(StorageError):
        world.open()
