"""What a partition keeps on its disk for buckets that lack it, and the limit of that.

Why:    while a bucket is away the local retention waits, and the disk fills. The operator says how
        much may wait, and whether the partition then refuses writes or keeps everything.
How:    OPEN --held bytes > `remote.copy.lag.max.bytes`--> FULL --held bytes <= it--> OPEN
        FULL refuses writes only if the topic wants that. Retirement and uploads go on, so the
        partition leaves FULL by itself once a bucket takes segments again.
Owns:   one partition's state while this broker leads it.
Source: decision 0059."""

import logging

from strandline.base.rising import RisingLevel
from strandline.broker.tiering.tier_context import LedReplica, TierPlan
from strandline.config.topic_tiering import NO_LIMIT
from strandline.tiered.state.tier import TierState

_log = logging.getLogger("strandline.broker")


class Backlog:
    """See the module."""

    def __init__(self, replica: LedReplica) -> None:
        self._replica = replica
        self._level = RisingLevel()
        self._bytes_max = NO_LIMIT
        self.held_bytes = 0
        """Closed records that the local retention may not remove, for buckets lack them."""
        self.is_full = False
        """Whether they are above the topic's limit."""
        self.is_refusing = False
        """Whether writes are refused for that."""

    def measure(self, plan: TierPlan, now_ms: int) -> None:
        """Compare what waits now with the topic's limit."""
        self.held_bytes = held_bytes(self._replica, plan)
        self._bytes_max = NO_LIMIT if plan.is_copying_off else plan.held_bytes_max
        self._level.note(now_ms, self.held_bytes)
        self.is_full = 0 <= self._bytes_max < self.held_bytes
        self._refuse(is_refusing=self.is_full and plan.is_refusing_when_full)

    def full_in_ms(self, now_ms: int) -> int | None:
        """How long until the limit at the present rate, 0 above it; None if it comes no
        nearer, or there is none."""
        if self.is_full:
            return 0
        if self._bytes_max == NO_LIMIT:
            return None
        return self._level.reaches_in_ms(now_ms, self._bytes_max)

    def stop(self) -> None:
        """This broker no longer leads the partition: the next leader measures for itself."""
        self.is_full = self.is_refusing = False
        self._replica.refuse_writes("")

    def _refuse(self, *, is_refusing: bool) -> None:
        if is_refusing == self.is_refusing:
            return
        self.is_refusing = is_refusing
        name = self._replica.name
        if not is_refusing:
            self._replica.refuse_writes("")
            _log.info("%s: producers are served again: buckets have caught up", name)
            return
        reason = (
            f"{self.held_bytes} bytes of closed segments wait for a bucket, more than "
            f"remote.copy.lag.max.bytes={self._bytes_max} of the topic"
        )
        self._replica.refuse_writes(reason)
        _log.error(
            "%s: producers are refused for now: %s; bring the bucket back, raise the limit, or set "
            "remote.copies.min or remote.copy.lag.max.action=keep",
            name,
            reason,
        )


def held_bytes(replica: LedReplica, plan: TierPlan) -> int:
    """The bytes of closed segments that stay on the disk until enough buckets have them."""
    state: TierState = replica.tier.state
    closed, start = replica.log.closed, replica.log.start_offset
    if not plan.buckets:
        return 0
    covered_end = state.covered_end(plan.copies_min, plan.buckets, from_offset=start)
    if covered_end >= closed.end_offset:
        return 0
    return closed.bytes_from(covered_end) - closed.bytes_from(closed.end_offset)
