"""The leader's stream to one follower: what is in flight, and whether there is room for more.

Why:    several appends are in flight to each follower, so that a long round trip costs latency and
        no throughput; the window keeps a slow follower from swallowing the leader's memory.
How:    appends go out in order; acknowledgements are cumulative. No progress for the resend
        time-out empties the window, and the Raft core probes the follower anew.
Owns:   the window; one per follower of a leading replica.
Source: Redpanda RFC 20220119; design section 5."""

from collections import deque

from strandline.model.ids import Index
from strandline.replication.settings import ReplicationSettings


class FollowerStream:
    """See the module."""

    __slots__ = (
        "_bytes_max",
        "_count_max",
        "inflight",
        "inflight_bytes",
        "is_blocked",
        "progress_ms",
    )

    def __init__(self, settings: ReplicationSettings) -> None:
        self._bytes_max = settings.inflight_bytes_max
        self._count_max = settings.inflight_count_max
        self.inflight: deque[tuple[Index, int]] = deque()
        self.inflight_bytes = 0
        self.progress_ms = 0
        # Whether something was not sent because there was no room.
        self.is_blocked = False

    @property
    def has_room(self) -> bool:
        """Whether another append may be sent."""
        return self.inflight_bytes < self._bytes_max and len(self.inflight) < self._count_max

    def on_sent(self, last_index: Index, size_bytes: int, now_ms: int) -> None:
        """An append up to `last_index` left."""
        if not self.inflight:
            self.progress_ms = now_ms
        self.inflight.append((last_index, size_bytes))
        self.inflight_bytes += size_bytes

    def on_acknowledged(self, match: Index, now_ms: int) -> None:
        """The follower has everything up to `match`."""
        inflight = self.inflight
        self.progress_ms = now_ms
        while inflight and inflight[0][0] <= match:
            self.inflight_bytes -= inflight.popleft()[1]

    def reset(self) -> None:
        """What was in flight no longer counts."""
        self.inflight.clear()
        self.inflight_bytes = 0
