"""The producers as they were at places in the active segment, so that a cut finds them again.

Why:    to cut the end of a log means to know who had written what before it; reading all headers of
        a large segment for that takes long.
How:    one at the segment's beginning, and one more after so many bytes; the newest few are kept.
Owns:   the snapshots of the active segment."""

from strandline.storage.producers.producers import ProducerSnapshot, ProducerStates

_INTERVAL_BYTES = 64 << 20
_COUNT_MAX = 4


class Checkpoints:
    """See the module. `producers`: those at the log's end."""

    __slots__ = ("_kept", "_producers")

    def __init__(self, producers: ProducerStates) -> None:
        self._producers = producers
        self._kept: list[tuple[int, ProducerSnapshot]] = []
        """(position in the active segment, the producers there), ascending."""

    def note(self, position: int) -> None:
        """The segment has grown to there."""
        last = self._kept[-1][0] if self._kept else 0
        if len(self._producers) and position - last >= _INTERVAL_BYTES:
            self._kept.append((position, self._producers.checkpoint()))
            del self._kept[:-_COUNT_MAX]

    def begin(self) -> ProducerSnapshot:
        """Another segment is the active one, and empty; the producers before it."""
        snapshot = self._producers.checkpoint()
        self._kept = [(0, snapshot)]
        return snapshot

    def clear(self) -> None:
        """Another segment is the active one, and of its producers nothing is known."""
        self._kept.clear()

    def cut(self, position: int) -> tuple[int, ProducerSnapshot] | None:
        """The segment was cut to end there: the newest one that is left."""
        while self._kept and self._kept[-1][0] > position:
            self._kept.pop()
        return self._kept[-1] if self._kept else None
