"""Disk space reserved for the writes that must succeed on a full disk.

Why:    the controller's log tells a broker that a replica has moved away, that a topic is deleted,
        or that retention is shorter. If that log has no space, the broker never frees any. The
        votes of every group need space too.
How:    HELD, a file of zeros --a vital write finds the disk full--> RELEASED, the file is empty
        RELEASED              --the disk has free space again-->     HELD
        While it is released, the controller's log and the state journal may use the space; markers
        of other logs may use half of it (`log.space`); other appends fail with ENOSPC.
        The state is on the disk alone: a broker that starts finds the file full, or fills it again.
        It releases the space at once if the disk has little else. The empty file stays, because a
        full disk may have no space for a new one.
Owns:   the file.
Source: decision 0024; ballast files (CockroachDB)."""

import logging
from errno import ENOSPC

from strandline.base.clock import Clock, Timer
from strandline.base.disk import Disk, is_full

NAME = "reserve"
SHARE_MAX = 100
"""The reserve is at most one part in this many of the file system."""
FREE_RATIO = 2
"""The space is reclaimed once this many times as much is free: with 1, a release would end at once.
"""
RETRY_MS = 500

_log = logging.getLogger("strandline.storage")


class Reserve:
    """See the module. `size_bytes`: the most that is reserved in `directory`; 0 for no reserve."""

    def __init__(self, clock: Clock, disk: Disk, directory: str, *, size_bytes: int) -> None:
        self._clock = clock
        self._disk = disk
        self._directory = directory
        self._path = f"{directory}/{NAME}"
        self._size_bytes = size_bytes
        self._timer: Timer | None = None
        self._is_held = False

    @property
    def is_released(self) -> bool:
        """Whether only vital writes may use the rest of the disk."""
        return self._timer is not None

    def start(self) -> None:
        """Allocate the space, or release it if the disk has little else. Raises OSError if the disk
        does not report its free space."""
        total_bytes = self._disk.total_bytes(self._directory)
        self._size_bytes = min(self._size_bytes, total_bytes // SHARE_MAX)
        self._is_held = self._held_bytes() > 0
        if not self._size_bytes:
            self._disk.remove(self._path)
            self._is_held = False
        elif self._free_bytes() < self._size_bytes * (1 if self._is_held else FREE_RATIO):
            self._release("it was little when the broker started")
        else:
            self._allocate()

    def stop(self) -> None:
        """Release nothing any more; the next start reclaims released space."""
        self._is_held = False
        if self._timer is not None:
            self._timer.cancel()

    def release(self, log_name: str) -> bool:
        """Release the space for a log that found none; whether there is more space now."""
        if not self._is_held:
            return False
        self._release(f"{log_name} needs it")
        return True

    def check(self, *, is_marker: bool = False) -> None:
        """Raise OSError (ENOSPC) if an ordinary log may not use the rest of the disk."""
        if self._timer is None:
            return
        if not is_marker or 2 * self._free_bytes() < self._size_bytes:
            raise OSError(ENOSPC, "No space left but the reserve for the controller's log")

    def _release(self, why: str) -> None:
        _log.warning(
            "the rest of the disk of %s is reserved for the controller's log and for votes: %s; "
            "other writes are refused until there is more space",
            self._directory,
            why,
        )
        self._empty()
        self._try_later()

    def _try_later(self) -> None:
        assert self._timer is None, "two timers to reclaim the reserve"
        self._timer = self._clock.call_later(RETRY_MS, self._reclaim)

    def _reclaim(self) -> None:
        self._timer = None
        try:
            has_space = self._free_bytes() >= FREE_RATIO * self._size_bytes
        except OSError as error:
            _log.warning("%s: the free space of the disk is unknown: %s", self._directory, error)
            has_space = False
        if not has_space:
            self._try_later()
            return
        self._allocate()
        if self._is_held:
            _log.warning("the disk of %s has space for all writes again", self._directory)

    def _allocate(self) -> None:
        """Fill the file. If the disk fails, nothing is reserved and no write refused: the next
        write reports the failure."""
        try:
            file = self._disk.open(self._path, create=True)
            try:
                if file.size() > self._size_bytes:
                    file.truncate(self._size_bytes)
                file.allocate(self._size_bytes)
            finally:
                file.close()
            self._is_held = True
        except OSError as error:
            self._empty()
            if is_full(error):
                self._try_later()
            else:
                _log.warning("%s: no space can be reserved: %s", self._directory, error)

    def _empty(self) -> None:
        self._is_held = False
        if self._disk.exists(self._path):
            file = self._disk.open(self._path)
            try:
                file.truncate(0)
            finally:
                file.close()

    def _held_bytes(self) -> int:
        if not self._disk.exists(self._path):
            return 0
        file = self._disk.open(self._path)
        try:
            return file.size()
        finally:
            file.close()

    def _free_bytes(self) -> int:
        return self._disk.free_bytes(self._directory)
