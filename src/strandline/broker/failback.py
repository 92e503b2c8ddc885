"""Gives leadership back to where it is preferred.

Why:    after a broker was away, its partitions stay with those who took over: the load is uneven,
        and leaders are far from whom they were placed for.
How:    now and then the leaders here look whether the first of their partition's replicas is in
        sync. Who has been so at every look for `leader.imbalance.check.interval.seconds` gets the
        leadership, a few partitions at a time. A broker that comes and goes never stays in sync for
        so long. A transfer that does not succeed is tried again after the same time.
Owns:   since when each preferred replica has been in sync, its timer.
Source: Kafka's auto.leader.rebalance.enable; design section 7 (leaders, failback delay)."""

import logging
from collections.abc import Callable

from strandline.base.clock import Clock, Timer
from strandline.broker.partitions import check_preferred
from strandline.config.cluster import ClusterConfig
from strandline.controller.decision import maintained_of
from strandline.model.cluster import Cluster
from strandline.model.ids import NO_BROKER, BrokerId, GroupId
from strandline.protocol.errors import Error
from strandline.replication.host import Replication
from strandline.replication.replica import Replica

LOOK_INTERVAL_MS = 5_000
TRANSFERS_PER_LOOK_MAX = 30

_log = logging.getLogger("strandline.broker")


class Failback:
    """See the module. `cluster` gives the state as replayed here."""

    def __init__(
        self, *, clock: Clock, replication: Replication, cluster: Callable[[], Cluster]
    ) -> None:
        self._clock = clock
        self._replication = replication
        self._cluster = cluster
        # {group: since when its preferred replica has been in sync}
        self._since_ms: dict[GroupId, int] = {}
        self._timer: Timer | None = None

    def start(self) -> None:
        """Begin to look."""
        self._timer = self._clock.call_later(LOOK_INTERVAL_MS, self._look)

    def stop(self) -> None:
        """End it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        try:
            self._give_back()
        except Exception:  # A task boundary: the next look tries again.
            _log.exception("cannot give leadership back")
        self._timer = self._clock.call_later(LOOK_INTERVAL_MS, self._look)

    def _give_back(self) -> None:
        cluster = self._cluster()
        config = ClusterConfig.from_values(cluster.cluster_configs)
        if not config.auto_leader_rebalance_enable:
            self._since_ms.clear()
            return
        now = self._clock.monotonic_ms()
        delay_ms = config.leader_imbalance_check_interval_seconds * 1_000
        present: dict[GroupId, int] = {}
        room = TRANSFERS_PER_LOOK_MAX
        for replica in list(self._replication.led.all):
            preferred = _heir(replica, cluster)
            if preferred == NO_BROKER:
                continue
            since_ms = self._since_ms.get(replica.group, now)
            if now - since_ms < delay_ms or not room:
                present[replica.group] = since_ms
                continue
            room -= 1
            _log.info("%s: leadership goes back to broker %d", replica.name, preferred)
            replica.transfer_leadership(preferred)
        self._since_ms = present


def _heir(replica: Replica, cluster: Cluster) -> BrokerId:
    """The broker that should lead instead and could now; NO_BROKER for none."""
    partition = cluster.groups.get(replica.group)
    # Most are led where they should be, and asking for the lease of each of them costs.
    if partition is None or partition.replicas[0] == replica.self_id:
        return NO_BROKER
    if replica.configuration.is_joint or partition.replicas[0] in maintained_of(cluster):
        return NO_BROKER
    could = check_preferred(replica, partition) is Error.NONE
    return partition.replicas[0] if could else NO_BROKER
