"""Moves leadership back to the preferred replicas.

Why:    after a broker was away, the brokers that took over keep leading: the load is uneven, and
        leaders are far from the clients that placement put them near.
How:    Every 5 s the leaders here check whether the first replica of their partition is in sync. If
        it has been at every check for the failback delay, it gets the leadership, a few partitions
        at a time. The delay is the policy's, or else `leader.imbalance.check.interval.seconds`, so
        a broker that comes and goes never gets it.
            While the first replica is not in sync, the same goes for a replica that the policy
        prefers to this one.
            A transfer that fails is tried again after the delay, a minute at least, then after
        twice as long each time: producers wait for each transfer.
Owns:   since when preferred replicas have been in sync; which transfers were tried; its timer.
Source: Kafka's auto.leader.rebalance.enable; design section 7 (leaders, failback delay);
        decision 0012."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from strandline.base.clock import Clock
from strandline.broker.leadership.leader_ranks import LeaderRanks
from strandline.broker.leadership.writers import Writers
from strandline.broker.operations.ticker import Ticker
from strandline.config.cluster import ClusterConfig
from strandline.controller.decision import maintained_of
from strandline.model.cluster import Cluster
from strandline.model.ids import BrokerId, GroupId
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica

LOOK_INTERVAL_MS = 5_000
TRANSFERS_PER_LOOK_MAX = 30
RETRY_MS = 60_000
"""After a failed transfer the next one waits at least so long: producers wait for each."""
DOUBLINGS_MAX = 6

LEADER_WAITS = {
    "off": "leaders do not move back by themselves",
    "moving": "the partition's replicas move",
    "writers": "leaders follow the writers, and those are near the present one",
    "maintenance": "the preferred broker is in maintenance",
    "down": "the preferred broker is down",
    "behind": "the preferred replica is not in sync",
    "failed": "a transfer has failed lately",
    "delay": "the preferred replica has not been in sync for long enough",
    "turn": "others are handed over first",
}
"""Why a partition is not led by its preferred replica."""

_log = logging.getLogger("strandline.broker")


@dataclass(slots=True)
class _Tried:
    """Transfers of one group that were tried, though it is led here."""

    count: int
    next_ms: int


class Failback:
    """See the module."""

    def __init__(
        self,
        *,
        clock: Clock,
        replication: Replication,
        cluster: Cluster,
        leader_ranks: LeaderRanks,
        writers: Writers,
    ) -> None:
        self._clock = clock
        self._replication = replication
        self._cluster = cluster
        self._leader_ranks = leader_ranks
        self._writers = writers
        # {(group, broker that should lead it): since when that has been in sync}
        self._since_ms: dict[tuple[GroupId, BrokerId], int] = {}
        self._tried: dict[GroupId, _Tried] = {}
        self._ticker = Ticker(
            clock,
            self._move_back,
            interval_ms=LOOK_INTERVAL_MS,
            log=_log,
            failure="cannot move leadership back to preferred replicas",
        )

    def start(self) -> None:
        """Begin to look."""
        self._ticker.start()

    def stop(self) -> None:
        """End it."""
        self._ticker.stop()

    def _move_back(self) -> None:
        cluster = self._cluster
        config = ClusterConfig.from_values(cluster.cluster_configs)
        if not config.auto_leader_rebalance_enable:
            self._since_ms.clear()
            return
        now = self._clock.monotonic_ms()
        default_ms = config.leader_imbalance_check_interval_seconds * 1_000
        present: dict[tuple[GroupId, BrokerId], int] = {}
        tried: dict[GroupId, _Tried] = {}
        room = TRANSFERS_PER_LOOK_MAX
        spared = maintained_of(cluster)
        for replica in list(self._replication.led.all):
            partition = cluster.groups.get(replica.group)
            # Most partitions are led where they should be, and a look at the lease of each costs
            # time.
            if partition is None or partition.replicas[0] == replica.self_id:
                continue
            written = self._writers.verdicts.get(replica.group)
            if written is not None and written.is_near:
                continue  # If that lasts, this broker should lead.
            policy = self._leader_ranks.of(cluster.topics[partition.topic], cluster)
            last = self._tried.get(replica.group)
            if last is not None:
                tried[replica.group] = last
            ranks = self._leader_ranks.ranks(policy, partition)
            transfer_targets = transfer_targets_of(
                replica, partition.replicas[0], ranks, spared=spared
            )
            for transfer_target in transfer_targets:
                key = replica.group, transfer_target
                present[key] = self._since_ms.get(key, now)
            if not transfer_targets or not room:
                continue
            delay_ms = default_ms if policy.failback_delay_ms is None else policy.failback_delay_ms
            transfer_target = transfer_targets[0]
            is_due = now - present[replica.group, transfer_target] >= delay_ms
            if is_due and (last is None or now >= last.next_ms):
                room -= 1
                count = 0 if last is None else last.count + 1
                wait_ms = max(delay_ms, RETRY_MS) << min(count, DOUBLINGS_MAX)
                tried[replica.group] = _Tried(count, now + wait_ms)
                _log.info("%s: leadership goes back to broker %d", replica.name, transfer_target)
                replica.transfer_leadership(transfer_target)
        self._since_ms, self._tried = present, tried

    def waits(self) -> list["LeaderWait"]:
        """The partitions led here that another broker should lead, with the reason why it does
        not yet."""
        cluster = self._cluster
        config = ClusterConfig.from_values(cluster.cluster_configs)
        found = []
        for replica in list(self._replication.led.all):
            partition = cluster.groups.get(replica.group)
            if partition is None or partition.replicas[0] == replica.self_id:
                continue
            preferred = partition.replicas[0]
            code, text = self._why(replica, preferred, config)
            found.append(LeaderWait(partition.topic, partition.index, preferred, code, text))
        return found

    def _why(self, replica: Replica, preferred: BrokerId, config: ClusterConfig) -> tuple[str, str]:
        """(code, text) for one group that its first replica does not lead."""
        cluster, now = self._cluster, self._clock.monotonic_ms()
        topic = cluster.topics[cluster.groups[replica.group].topic]
        policy = self._leader_ranks.of(topic, cluster)
        if not config.auto_leader_rebalance_enable:
            return "off", "auto.leader.rebalance.enable is false"
        if replica.configuration.is_joint:
            return "moving", "its replicas move"
        written = self._writers.verdicts.get(replica.group)
        if written is not None and written.is_near:
            return "writers", "most of what is written comes from near this broker"
        if preferred in maintained_of(cluster):
            return "maintenance", f"broker {preferred} is in maintenance"
        if not self._replication.is_peer_alive(preferred):
            return "down", f"broker {preferred} is down"
        if preferred not in replica.in_sync():
            return "behind", f"broker {preferred} is behind"
        last = self._tried.get(replica.group)
        if last is not None and now < last.next_ms:
            left_s = (last.next_ms - now + 999) // 1_000
            times = "once" if last.count == 0 else f"{last.count + 1} times"
            text = f"handing over to broker {preferred} failed {times}; the next try is in "
            return "failed", f"{text}{left_s} s"
        delay_ms = policy.failback_delay_ms
        if delay_ms is None:
            delay_ms = config.leader_imbalance_check_interval_seconds * 1_000
        in_sync_ms = now - self._since_ms.get((replica.group, preferred), now)
        if in_sync_ms < delay_ms:
            left_s = (delay_ms - in_sync_ms + 999) // 1_000
            text = f"broker {preferred} leads once it has been in sync for {delay_ms / 1_000:g} s: "
            return "delay", f"{text}{left_s} s are left"
        return "turn", f"{TRANSFERS_PER_LOOK_MAX} are handed over at a time"


@dataclass(frozen=True, slots=True)
class LeaderWait:
    """A partition that is led here, and why not by `preferred`: a code of `LEADER_WAITS` and a
    text."""

    topic: str
    index: int
    preferred: BrokerId
    code: str
    text: str


def transfer_targets_of(
    replica: Replica,
    preferred: BrokerId,
    ranks: Mapping[BrokerId, int],
    *,
    spared: Collection[BrokerId],
) -> list[BrokerId]:
    """The brokers that should lead instead of this replica and can now, the best first: the
    preferred one, or else those of a better rank than this one. No broker in `spared`."""
    if replica.configuration.is_joint or not replica.can_serve_reads:
        return []
    ready = [one for one in replica.in_sync() if one not in spared]
    if preferred in ready:
        return [preferred]
    own = ranks.get(replica.self_id, 0)
    better = [one for one in ready if ranks.get(one, 0) < own]
    # Not all groups to the same of equal brokers.
    return sorted(better, key=lambda one: (ranks.get(one, 0), (one - replica.group) % (1 << 31)))
