"""Who wrote what, read from a log: the newest snapshot of producers, and the headers behind it.

Why:    a snapshot is written where a segment ends, and not flushed: after a crash it is missing, or
        behind, and a batch that is sent again has to be known all the same.
How:    only headers that were proved are believed. Where damage hides some, whoever asks says what
        that means: a cut and a compaction cannot go on, a start can, as one that knows nobody.
Owns:   nothing.
Source: Kafka's producer snapshots; decisions 0007 and 0040."""

import logging

from strandline.base.disk import Disk
from strandline.base.errors import StorageError
from strandline.storage.layout import FIRST_SEGMENT
from strandline.storage.log.sealing import read_producers
from strandline.storage.log.segment import Segment
from strandline.storage.producers.producers import ProducerSnapshot, ProducerStates

_log = logging.getLogger("strandline.storage")


def replay_producers(
    disk: Disk,
    directory: str,
    segments: list[Segment],
    *,
    now_ms: int,
    may_forget: bool = False,
) -> ProducerStates:
    """The producers at the end of `segments`: the newest snapshot and the headers behind it.

    Raises StorageError where these are not what was written; who `may_forget` goes on behind that
    segment, as one who knows nobody. That is to be mended, and the log must be open for it."""
    at = len(segments)
    is_whole = not segments or segments[0].name == FIRST_SEGMENT
    states = ProducerStates(ProducerSnapshot({}, has_forgotten=not is_whole))
    while at > 0:
        at -= 1
        producers = read_producers(disk, directory, segments[at].name)
        if producers is not None:
            states = ProducerStates(producers)
            break
    for segment in segments[at:]:
        try:
            segment.verify(0, segment.size)
        except StorageError as error:
            if not may_forget:
                raise
            _log.warning("who wrote up to index %d is forgotten: %s", segment.end_index - 1, error)
            states = ProducerStates(ProducerSnapshot({}, has_forgotten=True))
            continue
        for header in segment.headers(0, segment.size):
            states.update(header, now_ms)
    return states


def producers_before(
    disk: Disk, directory: str, segments: list[Segment], *, now_ms: int
) -> ProducerSnapshot:
    """Who wrote what before the last of these segments. Raises StorageError where damage hides that
    from who has no snapshot."""
    found = read_producers(disk, directory, segments[-1].name)
    if found is None:
        found = replay_producers(disk, directory, segments[:-1], now_ms=now_ms).checkpoint()
    return found
