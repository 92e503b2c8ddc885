"""How a read of a bucket fails, and for how long that bucket or object is left alone.

Why:    a bucket that is down must not cost each fetch a time-out if another bucket has the records,
        and must not get a request from each fetch of each consumer.
How:    a bucket:  fine --no answer--> left alone for 0.5 s, doubling to 30 s --an answer--> fine
        an object: fine --absent, or wrong bytes--> left alone for 30 s --> tried again
        Wrong bytes are never served: a reader goes to the next bucket, or gets an error.
Owns:   the times; one per broker.
Source: decision 0060."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence

from strandline.base.clock import Clock
from strandline.tiered.objects.store import ObjectAbsentError, StoreError
from strandline.tiered.reading.counters import ReadCounters

PAUSE_MS_MIN = 500
PAUSE_MS_MAX = 30_000
OBJECT_PAUSE_MS = 30_000
COMPLAINT_MS = 60_000
"""What cannot be read is logged so often, for each partition: clients ask twice a second."""
COMPLAINT_COUNT_MAX = 1_000
OBJECT_COUNT_MAX = 10_000
"""Objects that are remembered as unusable; the oldest is forgotten first."""

_log = logging.getLogger("strandline.tiered")


class WrongBytesError(StoreError):
    """The bucket gave bytes with another checksum than they should have."""


class UnreadableError(Exception):
    """No bucket has usable bytes now."""


class _Pause:
    """A bucket that did not answer."""

    __slots__ = ("length_ms", "until_ms")

    def __init__(self) -> None:
        self.length_ms = 0
        self.until_ms = 0


class Failures:
    """See the module."""

    def __init__(self, clock: Clock, counters: ReadCounters) -> None:
        self._clock = clock
        self._counters = counters
        self._pauses: dict[str, _Pause] = {}
        """{bucket: its pause}; only of those that did not answer last."""
        self.on_unusable: list[Callable[[str, str], None]] = []
        """Called with (bucket, name) of an object that is absent or wrong."""
        self._objects: OrderedDict[tuple[str, str], int] = OrderedDict()
        """{(bucket, name): left alone until}, in the order of the failures."""
        self._complaints: OrderedDict[Hashable, int] = OrderedDict()
        """{partition: when it was logged}, oldest first."""

    @property
    def paused(self) -> Sequence[str]:
        """The buckets that did not answer when they were last asked."""
        return sorted(self._pauses)

    @property
    def unusable_count(self) -> int:
        """Objects that are absent or wrong, as far as is known now."""
        now_ms = self._clock.monotonic_ms()
        return sum(1 for until_ms in self._objects.values() if until_ms > now_ms)

    def may_ask(self, bucket: str, name: str) -> bool:
        """Whether a request for this object may be made now."""
        if not self._pauses and not self._objects:
            return True
        now_ms = self._clock.monotonic_ms()
        pause = self._pauses.get(bucket)
        if pause is not None and now_ms < pause.until_ms:
            return False
        return now_ms >= self._objects.get((bucket, name), now_ms)

    def complain(self, partition: Hashable, error: UnreadableError) -> None:
        """Log that no bucket serves a partition, now and then."""
        now_ms = self._clock.monotonic_ms()
        told_ms = self._complaints.get(partition)
        if told_ms is not None and now_ms - told_ms < COMPLAINT_MS:
            return
        _log.warning("%s: %s; clients try again", partition, error)
        self._complaints.pop(partition, None)
        self._complaints[partition] = now_ms
        if len(self._complaints) > COMPLAINT_COUNT_MAX:
            self._complaints.popitem(last=False)

    def note_answer(self, bucket: str) -> None:
        """The bucket gave bytes."""
        if self._pauses and self._pauses.pop(bucket, None) is not None:
            _log.info("bucket %s answers reads again", bucket)

    def note(self, bucket: str, name: str, error: StoreError) -> None:
        """The bucket did not."""
        counters = self._counters
        if isinstance(error, ObjectAbsentError | WrongBytesError):
            is_wrong = isinstance(error, WrongBytesError)
            counters.wrong_bytes[bucket] += is_wrong
            counters.absent[bucket] += not is_wrong
            self._objects.pop((bucket, name), None)
            self._objects[bucket, name] = self._clock.monotonic_ms() + OBJECT_PAUSE_MS
            if len(self._objects) > OBJECT_COUNT_MAX:
                self._objects.popitem(last=False)
            _log.error(
                "bucket %s: object %s %s: %s; its records are read from another bucket if one has "
                "them; check it with `strandline tiered verify`",
                bucket,
                name,
                "has wrong bytes" if is_wrong else "is missing though the log says it is there",
                error,
            )
            for callback in self.on_unusable:
                callback(bucket, name)
            return
        counters.unanswered[bucket] += 1
        pause = self._pauses.get(bucket)
        if pause is None:
            pause = self._pauses[bucket] = _Pause()
            _log.warning("bucket %s does not answer reads: %s", bucket, error)
        elif self._clock.monotonic_ms() < pause.until_ms:
            return  # One of several that were under way together.
        pause.length_ms = min(max(PAUSE_MS_MIN, 2 * pause.length_ms), PAUSE_MS_MAX)
        pause.until_ms = self._clock.monotonic_ms() + pause.length_ms
