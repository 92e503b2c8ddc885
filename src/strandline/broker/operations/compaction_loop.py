"""Looks every few seconds for logs whose compaction is due.

Why:    a table's readers wait for what a pass removes; the maintenance of all logs comes round only
        every few minutes.
How:    every `log.cleaner.backoff.ms` each compacted log is rolled, shortened and compacted where
        that is due, a few logs at a time. A log that was rolled is looked at again a moment later:
        its closed segment has to be flushed first.
Owns:   its timer, and the logs that it has still to look at.
Source: Kafka's log.cleaner.backoff.ms; design section 4."""

import logging

from strandline.base.clock import Clock
from strandline.broker.operations.ticker import Ticker
from strandline.config.cluster import ClusterConfig
from strandline.model.cluster import Cluster
from strandline.model.ids import GroupId
from strandline.replication.host.replication import Replication

LOGS_PER_STEP_MAX = 50
STEP_MS = 10
ROLLED_MS = 1_000
BACKOFF_MS_MIN = 100

_log = logging.getLogger("strandline.broker")


class CompactionLoop:
    """See the module."""

    def __init__(self, *, clock: Clock, replication: Replication, cluster: Cluster) -> None:
        self._replication = replication
        self._cluster = cluster
        self._left: list[GroupId] = []
        self._rolled: list[GroupId] = []
        self._ticker = Ticker(
            clock,
            self._step,
            interval_ms=ClusterConfig().log_cleaner_backoff_ms,
            log=_log,
            failure="cannot look for logs to compact",
        )

    def start(self) -> None:
        """Look for the first time after one interval."""
        self._ticker.start()

    def stop(self) -> None:
        """End it."""
        self._ticker.stop()

    def _step(self) -> None:
        replicas = self._replication.replicas
        try:
            if not self._left:
                self._left, self._rolled = self._rolled, []
            if not self._left:
                self._left = [one.group for one in replicas.values() if one.log.config.compacted]
            for _ in range(min(len(self._left), LOGS_PER_STEP_MAX)):
                self._look_at(self._left.pop())
        finally:  # An error in one log must not hold up the others.
            self._ticker.interval_ms = self._delay_ms()

    def _look_at(self, group: GroupId) -> None:
        replica = self._replication.replicas.get(group)
        if replica is None or replica.failed is not None:
            return
        had_work = replica.log.has_uncompacted
        replica.clean()
        if replica.log.has_uncompacted and not had_work:
            self._rolled.append(group)

    def _delay_ms(self) -> int:
        if self._left:
            return STEP_MS
        return ROLLED_MS if self._rolled else self._backoff_ms()

    def _backoff_ms(self) -> int:
        config = ClusterConfig.from_values(self._cluster.cluster_configs)
        return max(config.log_cleaner_backoff_ms, BACKOFF_MS_MIN)
