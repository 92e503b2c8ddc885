"""Snapshots of the producers' state at positions in the active segment, for cuts.

Why:    after a cut the log needs the producers' state at its new end; rebuilding that from all
        headers of a large segment takes long.
How:    one snapshot at the segment's base and one every 64 MiB; the newest four are kept.
Owns:   the snapshots of the active segment."""

from strandline.storage.producers.producers import ProducerSnapshot, ProducerStates

_INTERVAL_BYTES = 64 << 20
_COUNT_MAX = 4


class Checkpoints:
    """See the module. `producers`: their state at the log's end."""

    __slots__ = ("_kept", "_producers")

    def __init__(self, producers: ProducerStates) -> None:
        self._producers = producers
        self._kept: list[tuple[int, ProducerSnapshot]] = []
        """(position in the active segment, the producers there), ascending."""

    def note(self, position: int) -> None:
        """The active segment has grown to `position`."""
        last = self._kept[-1][0] if self._kept else 0
        assert position >= last, f"{position} is before the newest checkpoint, {last}"
        if position - last >= _INTERVAL_BYTES and len(self._producers):
            self._kept.append((position, self._producers.checkpoint()))
            del self._kept[:-_COUNT_MAX]

    def begin(self) -> ProducerSnapshot:
        """A new, empty segment became active; returns the producers before it."""
        snapshot = self._producers.checkpoint()
        self._kept = [(0, snapshot)]
        return snapshot

    def clear(self) -> None:
        """Another segment became active, with unknown producers at its positions."""
        self._kept.clear()

    def cut(self, position: int) -> tuple[int, ProducerSnapshot] | None:
        """The active segment was cut to end at `position`: the newest snapshot that is left."""
        while self._kept and self._kept[-1][0] > position:
            self._kept.pop()
        return self._kept[-1] if self._kept else None
