"""Periodic work on every log of this broker: retention, silent producers, members of groups.

Why:    retention, rolling and compaction of thousands of logs must not hold up the loop that
        serves produce and fetch.
How:    A round goes over all replicas, one at a time, and gives the loop back after each. A round
        begins at most every `retention_check_interval_ms` and is spread over that time: with many
        logs one is cleaned every few milliseconds, never many at once.
Owns:   its timer and its place in the round.
Source: design section 4 (retention, compaction)."""

import logging
from collections.abc import Callable

from strandline.base.clock import Clock
from strandline.broker.operations.ticker import Ticker
from strandline.model.ids import GroupId
from strandline.replication.host.replication import Replication

STEP_MS_MIN = 5
STEP_MS_MAX = 1_000

_log = logging.getLogger("strandline.broker")


class MaintenanceLoop:
    """See the module. `adjust` is called once a round."""

    def __init__(
        self,
        *,
        clock: Clock,
        replication: Replication,
        interval_ms: int,
        adjust: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._replication = replication
        self._interval_ms = interval_ms
        self._adjust = adjust
        self._round: list[GroupId] = []
        self._round_began_ms = 0
        self._ticker = Ticker(
            clock,
            self._step,
            interval_ms=interval_ms,
            log=_log,
            failure="log maintenance failed",
        )

    def start(self) -> None:
        """Begin the first round after one interval."""
        self._round_began_ms = self._clock.monotonic_ms()
        self._ticker.start()

    def stop(self) -> None:
        """End it."""
        self._ticker.stop()

    def _step(self) -> None:
        now = self._clock.monotonic_ms()
        try:
            if not self._round:
                self._round_began_ms = now
                self._round = list(self._replication.replicas)
                self._adjust()
            if self._round:
                self._clean(self._round.pop())
        finally:  # An error in one log must not end the loop.
            self._ticker.interval_ms = self._delay_ms(now)

    def _delay_ms(self, now: int) -> int:
        left_ms = self._round_began_ms + self._interval_ms - now
        if not self._round:
            return max(STEP_MS_MIN, left_ms)
        return min(STEP_MS_MAX, max(STEP_MS_MIN, left_ms // (len(self._round) + 1)))

    def _clean(self, group: GroupId) -> None:
        replica = self._replication.replicas.get(group)
        if replica is None or replica.failed is not None:
            return
        replica.clean()
        if len(replica.log.producers):
            expiry_ms = replica.log.config.producer_expiry_ms
            replica.log.producers.expire(self._clock.wall_ms() - expiry_ms)
