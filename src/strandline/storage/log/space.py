"""Space on the disk for the writes of one log.

Why:    space is taken ahead, so that writes change no metadata and a full disk is met before
        anything is written; and what the disk keeps for few is not for every log.
How:    ahead, twice as much each time --the disk has less--> what this write needs
        --it has not even that--> borrowed from the reserve, where it may be
        Who may have what is kept: the controller's log all of it, markers of any log the half.
        Without a marker a new leader leads nobody, nothing is committed, and retention, deletions
        and moves, which would make room, stand still.
Owns:   nothing.
Source: design section 4; decision 0024."""

from strandline.base.disk import is_full
from strandline.storage.config import LogConfig
from strandline.storage.log.segment import Segment
from strandline.storage.reserve import Reserve

_AHEAD_BYTES_MIN = 16 << 10
"""Taken ahead at first, and twice as much each time: most of many partitions are never large."""
_AHEAD_BYTES_MAX = 64 << 20


class Room:
    """See the module. `is_vital`: this log may have all that is kept. `name`: for the log."""

    __slots__ = ("_is_vital", "_name", "_reserve")

    def __init__(
        self, reserve: Reserve | None = None, *, name: str = "", is_vital: bool = False
    ) -> None:
        self._reserve = reserve
        self._name = name
        self._is_vital = is_vital

    def make(self, segment: Segment, end: int, *, config: LogConfig, is_marker: bool) -> None:
        """Have room for writes up to `end`. Raises OSError; then nothing has changed."""
        is_lent = self._reserve is not None and self._reserve.is_lent
        if self._reserve is not None and not self._is_vital:
            self._reserve.check(is_marker=is_marker)
        if not config.preallocate:
            segment.allocated = end
            return
        step = min(max(segment.allocated, _AHEAD_BYTES_MIN), _AHEAD_BYTES_MAX)
        if is_lent:
            step = 0  # Others need some of it.
        target = max(end, min(segment.allocated + step, config.segment_bytes))
        try:
            segment.file.allocate(target)
        except OSError as error:
            if not is_full(error) or target == end:
                raise
            target = end  # A disk is used up to its last byte.
            segment.file.allocate(target)
        segment.allocated = target

    def borrow(self, *, is_marker: bool) -> bool:
        """Ask for what is kept, after the disk had nothing; whether there is some more now."""
        may_ask = self._is_vital or is_marker
        return may_ask and self._reserve is not None and self._reserve.lend(self._name)
