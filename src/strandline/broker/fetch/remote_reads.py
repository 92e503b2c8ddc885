"""The partitions of one fetch that are read from buckets, side by side.

Why:    a fetch of ten partitions with old records must not wait ten times.
How:    absent --read--> LOOKING in the cache --> FETCHING from a bucket --> OVER, or failed
        A read begins when its partition is first looked at, and goes on while the fetch is parked.
        What it has found by then is in the answer; downloads go on after it.
Owns:   the reads, until the answer.
Source: decision 0060; KIP-405 for remote fetches that wait."""

from collections.abc import Callable

from strandline.broker.fetch.remote_log import RemoteLog, RemoteSource
from strandline.model.ids import Offset
from strandline.tiered.reading.remote_read import RemoteRead

CACHE_WAIT_MS = 100
"""A fetch that need not wait for records waits so long for the cache's disk, as it does for the
log's. Otherwise a busy local partition would end the reads of an old one before they find it."""
FAILED_WAIT_MS = 500
"""A fetch with a read that failed, and nothing else to say, waits so long: clients ask again at
once."""


class RemoteReads:
    """See the module. Partitions are named by their position in the fetch."""

    def __init__(self, log: RemoteLog | None, *, max_bytes: int, min_bytes: int) -> None:
        self._log = log
        self._max_bytes = max_bytes
        self._min_bytes = min_bytes
        self._reads: dict[int, RemoteRead] = {}

    def read(
        self, position: int, replica: RemoteSource, offset: Offset, *, max_bytes: int
    ) -> RemoteRead:
        """What has been found of a partition so far, from `offset` on; begins the read if it has
        not begun."""
        found = self._reads.get(position)
        if found is None:
            found = self._reads[position] = self._begin(replica, offset, max_bytes)
        return found

    def go_on(
        self, position: int, replica: RemoteSource, offset: Offset, *, max_bytes: int
    ) -> None:
        """Begin another read, at a later offset."""
        self._reads[position] = self._begin(replica, offset, max_bytes)

    def get(self, position: int) -> RemoteRead | None:
        """The read of a partition, if there is one."""
        return self._reads.get(position)

    @property
    def is_looking(self) -> bool:
        """Whether the cache will say in a moment what it has of a partition."""
        return any(one.is_looking for one in self._reads.values())

    @property
    def is_under_way(self) -> bool:
        """Whether more may be found."""
        return any(not one.is_over for one in self._reads.values())

    @property
    def failed(self) -> list[int]:
        """The partitions that no bucket could serve."""
        return [position for position, one in self._reads.items() if one.is_failed]

    def drop(self) -> None:
        """The fetch is answered, or its client is gone."""
        for one in self._reads.values():
            one.drop()

    def _begin(self, replica: RemoteSource, offset: Offset, max_bytes: int) -> RemoteRead:
        if self._log is None:  # The partition's state names buckets, this broker's file has none.
            read = RemoteRead(offset)
            read.is_over = read.is_failed = True
            return read
        return self._log.read(
            replica,
            offset,
            max_bytes=min(max_bytes, self._max_bytes),
            min_bytes=self._min_bytes,
        )


class NeverMoves:
    """Something to watch in the place of a partition that has failed."""

    def watch(self, callback: Callable[[], None]) -> "NeverMoves":
        """Never calls it."""
        return self

    def cancel(self) -> None:
        """Nothing to cancel."""
