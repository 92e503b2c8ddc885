"""Rebuilds the producers' state of a log from its newest snapshot and the headers behind it.

Why:    a snapshot is written where a segment ends, and not flushed. After a crash it may be missing
        or old, and the log must still recognise a batch that is sent again.
How:    only verified headers count. If damage hides some, the caller decides: a cut or a compaction
        cannot go on; a start goes on with no known producers.
Owns:   nothing.
Source: Kafka's producer snapshots; decisions 0007 and 0040."""

import logging

from strandline.base.disk import Disk, is_full
from strandline.base.errors import StorageError
from strandline.storage.layout import FIRST_SEGMENT
from strandline.storage.log.sealing import read_producers, write_durably
from strandline.storage.log.segment import Segment
from strandline.storage.producers.producers import ProducerSnapshot, ProducerStates

_log = logging.getLogger("strandline.storage")


def replay_producers(
    disk: Disk,
    directory: str,
    segments: list[Segment],
    *,
    now_ms: int,
    skips_damage: bool = False,
) -> ProducerStates:
    """The producers at the end of `segments`: the newest snapshot and the headers behind it.

    Raises StorageError for damaged headers. With `skips_damage` it goes on behind the damaged
    segment with no known producers: the log must open before another replica can repair it."""
    at = len(segments)
    is_whole = not segments or segments[0].name == FIRST_SEGMENT
    states = ProducerStates(ProducerSnapshot({}, is_incomplete=not is_whole))
    while at > 0:
        at -= 1
        producers = read_producers(disk, directory, segments[at].name)
        if producers is not None:
            states = ProducerStates(producers)
            break
    for segment in segments[at:]:
        try:
            segment.verify(0, segment.size_bytes)
        except StorageError as error:
            if not skips_damage:
                raise
            _log.warning("who wrote up to index %d is forgotten: %s", segment.end_index - 1, error)
            states = ProducerStates(ProducerSnapshot({}, is_incomplete=True))
            continue
        for header in segment.headers(0, segment.size_bytes):
            states.update(header, now_ms)
    return states


def replay_from(
    segment: Segment, checkpoint: tuple[int, ProducerSnapshot], *, now_ms: int
) -> ProducerStates:
    """The producers at the end of `segment`, from those at a position in it. Raises StorageError
    for damaged headers."""
    position, snapshot = checkpoint
    states = ProducerStates(snapshot)
    segment.verify(position, segment.size_bytes)
    for header in segment.headers(position, segment.size_bytes):
        states.update(header, now_ms)
    return states


def producers_before(
    disk: Disk, directory: str, segments: list[Segment], *, now_ms: int
) -> ProducerSnapshot:
    """The producers at the base of the last of these segments. Raises StorageError if there is no
    snapshot and damage hides headers."""
    found = read_producers(disk, directory, segments[-1].name)
    if found is None:
        found = replay_producers(disk, directory, segments[:-1], now_ms=now_ms).checkpoint()
    return found


def keep_producers(
    disk: Disk, directory: str, segments: list[Segment], *, latest: ProducerStates, now_ms: int
) -> None:
    """Write the producers at the base of the last of these segments, durably, before the others are
    removed. `latest`: those at the log's end.

    On a full disk it goes on without, because the removal frees space: only a crash before the next
    segment loses the producers. Raises OSError."""
    name = segments[-1].name
    try:
        known = producers_before(disk, directory, segments, now_ms=now_ms)
    except StorageError:  # Damage hides headers that are about to be removed.
        known = latest.before(name.base_offset)
    try:
        write_durably(disk, directory, name, known)
    except OSError as error:
        if not is_full(error):
            raise
