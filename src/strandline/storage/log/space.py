"""Allocates disk space for the writes of one log.

Why:    a log allocates ahead, so that writes change no file metadata and a full disk shows before
        a write begins. Only some writes may use the reserve.
How:    allocate ahead, twice as much each time, or a whole segment at once
        --the disk has less--> allocate what this write needs
        --it has not even that--> use the reserve, if the write may
        The controller's log may use the whole reserve, markers of any log half of it. Without its
        marker a new leader commits nothing, so no retention, deletion or move frees space.
Owns:   nothing.
Source: design section 4; decision 0024."""

from strandline.base.disk import is_full
from strandline.storage.config import LogConfig
from strandline.storage.log.segment import Segment
from strandline.storage.reserve import Reserve

_AHEAD_BYTES_MIN = 16 << 10
"""The first allocation; each later one is twice as large. Most partitions stay small."""
_AHEAD_BYTES_MAX = 64 << 20


class SpaceAllocator:
    """See the module. `may_use_whole_reserve`: the controller's log. `name`: for log messages."""

    __slots__ = ("_may_use_whole_reserve", "_name", "_reserve")

    def __init__(
        self, reserve: Reserve | None = None, *, name: str = "", may_use_whole_reserve: bool = False
    ) -> None:
        self._reserve = reserve
        self._name = name
        self._may_use_whole_reserve = may_use_whole_reserve

    def make(self, segment: Segment, end: int, *, config: LogConfig, is_marker: bool) -> None:
        """Allocate space for writes up to `end`. After an OSError nothing has changed."""
        assert end > segment.size_bytes, (
            f"space up to {end} in a segment of {segment.size_bytes} bytes"
        )
        is_released = self._reserve is not None and self._reserve.is_released
        if self._reserve is not None and not self._may_use_whole_reserve:
            self._reserve.check(is_marker=is_marker)
        if not config.preallocate and not config.preallocate_segment:
            segment.allocated_bytes = end
            return
        step = min(max(segment.allocated_bytes, _AHEAD_BYTES_MIN), _AHEAD_BYTES_MAX)
        if config.preallocate_segment:
            step = config.segment_bytes
        if is_released:
            step = 0  # Other logs need some of it.
        target = max(end, min(segment.allocated_bytes + step, config.segment_bytes))
        try:
            segment.file.allocate(target)
        except OSError as error:
            if not is_full(error) or target == end:
                raise
            target = end  # A disk is used up to its last byte.
            segment.file.allocate(target)
        segment.allocated_bytes = target

    def use_reserve(self, *, is_marker: bool) -> bool:
        """Ask for the reserve after the disk was full; whether there is more space now."""
        may_ask = self._may_use_whole_reserve or is_marker
        return may_ask and self._reserve is not None and self._reserve.release(self._name)
