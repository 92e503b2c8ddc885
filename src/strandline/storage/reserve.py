"""Space that is kept for what must be written even where the disk is full.

Why:    a broker learns from the controller's log that a replica here has moved, that a topic is
        gone, or that it may keep less: where that log finds no space, nothing ever makes any. The
        same holds for the votes of every group.
How:    a file of zeros --lent (emptied)--> the controller's log, the journal of states
                        --while it is lent--> no other log grows (ENOSPC), but by markers,
                                              which have the half of it (`room`)
                        --as soon as there is more again--> taken back
        So others cannot use up what was lent. Whether it is lent is seen from the disk alone: a
        broker that starts finds the file, or takes it back. It is lent to a start that finds little
        else, too. The file itself stays: there may be none to be had when it is taken back.
Owns:   the file.
Source: decision 0024; ballast files (CockroachDB)."""

import logging
from errno import ENOSPC

from strandline.base.clock import Clock, Timer
from strandline.base.disk import Disk, is_full

NAME = "reserve"
SHARE_MAX = 100
"""At most one part in so many of the file system is kept."""
FREE_RATIO = 2
"""It is taken back when so many times as much is free: what was just lent would be, else."""
RETRY_MS = 500

_log = logging.getLogger("strandline.storage")


class Reserve:
    """See the module. `size_bytes`: at most so much is kept in `directory`; 0: nothing."""

    def __init__(self, clock: Clock, disk: Disk, directory: str, *, size_bytes: int) -> None:
        self._clock = clock
        self._disk = disk
        self._directory = directory
        self._path = f"{directory}/{NAME}"
        self._size_bytes = size_bytes
        self._timer: Timer | None = None
        self._is_kept = False

    @property
    def is_lent(self) -> bool:
        """Whether what is left of the disk is not for everybody."""
        return self._timer is not None

    def start(self) -> None:
        """Take the space, or have it lent where little else is left. Raises OSError where the disk
        cannot tell."""
        total_bytes = self._disk.total_bytes(self._directory)
        self._size_bytes = min(self._size_bytes, total_bytes // SHARE_MAX)
        self._is_kept = self._kept_bytes() > 0
        if not self._size_bytes:
            self._disk.remove(self._path)
            self._is_kept = False
        elif self._free_bytes() < self._size_bytes * (1 if self._is_kept else FREE_RATIO):
            self._lend("it was little when the broker started")
        else:
            self._take()

    def stop(self) -> None:
        """What is lent is taken back by the next start; nothing is lent any more."""
        self._is_kept = False
        if self._timer is not None:
            self._timer.cancel()

    def lend(self, borrower: str) -> bool:
        """Let somebody have the space who found none; whether there is some more now."""
        if not self._is_kept:
            return False
        self._lend(f"{borrower} needs it")
        return True

    def check(self, *, is_marker: bool = False) -> None:
        """Raise OSError (ENOSPC) where what is left is not for whoever asks."""
        if self._timer is None:
            return
        if not is_marker or 2 * self._free_bytes() < self._size_bytes:
            raise OSError(ENOSPC, "No space left but what the controller's log may need")

    def _lend(self, why: str) -> None:
        _log.warning(
            "what is left of the disk of %s is for the controller's log and for votes: %s; "
            "everybody else is refused until there is more",
            self._directory,
            why,
        )
        self._empty()
        self._try_later()

    def _try_later(self) -> None:
        self._timer = self._clock.call_later(RETRY_MS, self._take_back)

    def _take_back(self) -> None:
        self._timer = None
        try:
            has_room = self._free_bytes() >= FREE_RATIO * self._size_bytes
        except OSError as error:
            _log.warning("%s: nobody knows what is left of the disk: %s", self._directory, error)
            has_room = False
        if not has_room:
            self._try_later()
            return
        self._take()
        if self._is_kept:
            _log.warning("the disk of %s has space for everybody again", self._directory)

    def _take(self) -> None:
        """Where the disk fails at it, nothing is kept, and nobody refused: whoever writes next
        hears of it."""
        try:
            file = self._disk.open(self._path, create=True)
            try:
                if file.size() > self._size_bytes:
                    file.truncate(self._size_bytes)
                file.allocate(self._size_bytes)
            finally:
                file.close()
            self._is_kept = True
        except OSError as error:
            self._empty()
            if is_full(error):
                self._try_later()
            else:
                _log.warning("%s: no space can be kept: %s", self._directory, error)

    def _empty(self) -> None:
        self._is_kept = False
        if self._disk.exists(self._path):
            file = self._disk.open(self._path)
            try:
                file.truncate(0)
            finally:
                file.close()

    def _kept_bytes(self) -> int:
        if not self._disk.exists(self._path):
            return 0
        file = self._disk.open(self._path)
        try:
            return file.size()
        finally:
            file.close()

    def _free_bytes(self) -> int:
        return self._disk.free_bytes(self._directory)
