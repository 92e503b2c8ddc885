"""Moves leadership to the region that writes most, if the topic's policy says so.

Why:    a producer far from the leader pays the distance with every write, and the region that
        produces most changes with the time of day.
How:    Each second a share of the leaders here looks at who has produced how much (`writers`), and
        each leader decides for itself (`placement.writers`). It asks the controller for a new order
        of the replicas, so that every broker and tool knows it: the transfer target first, the
        others by what their regions produce. Then it hands over.
            If a transfer fails, `failback` tries it again, with growing pauses.
Owns:   a watch for each following partition led here; what was handed over lately; its timer.
Source: decision 0014."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from strandline.base.errors import ApiError, RejectedError
from strandline.broker.context import Services
from strandline.broker.leadership.failback import LOOK_INTERVAL_MS, TRANSFERS_PER_LOOK_MAX
from strandline.broker.leadership.writers import LeaderVerdict
from strandline.broker.operations.single_flight import SingleFlight
from strandline.broker.operations.ticker import Ticker
from strandline.config.cluster import ClusterConfig
from strandline.controller.commands import BalancedReplicas, BalanceNoted, BalanceReplicas
from strandline.controller.decision import leaving_of, maintained_of
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId
from strandline.placement.writers import (
    PERIOD_MS_MIN,
    Departures,
    Hindrance,
    Sight,
    Verdict,
    WriterWatch,
)
from strandline.replication.replica.replica import Replica

ASK_TIMEOUT_MS = 5_000
TURNS = 5
"""The leaders take their looks in so many shares, one after the other."""

_log = logging.getLogger("strandline.broker")


@dataclass(frozen=True, slots=True)
class _Handover:
    """A change of leader that is asked for. `wait_ms`: how long it was considered."""

    replica: Replica
    partition: Partition
    transfer_target: BrokerId
    wait_ms: int
    returns: int
    order: tuple[BrokerId, ...]


class Following:
    """See the module."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._clock = services.clock
        self._watches: dict[GroupId, WriterWatch] = {}
        self._departures = Departures()
        # The topics that follow the writers, as of a version of the cluster.
        self._topics: frozenset[str] = frozenset()
        self._version = -1
        # The replicas that led following groups at the last turn 0; the present turn.
        self._led: list[Replica] = []
        self._turn = 0
        self._ticker = Ticker(
            services.clock,
            self._follow,
            interval_ms=LOOK_INTERVAL_MS // TURNS,
            log=_log,
            failure="cannot find the regions that produce most",
        )
        self._asking = SingleFlight()

    def start(self) -> None:
        """Begin to look."""
        self._ticker.start()

    def stop(self) -> None:
        """End it."""
        self._ticker.stop()
        self._asking.stop()

    def _follow(self) -> None:
        cluster, writers = self._services.cluster, self._services.writers
        turn, self._turn = self._turn, (self._turn + 1) % TURNS
        config = ClusterConfig.from_values(cluster.cluster_configs)
        now = self._clock.monotonic_ms()
        if turn == 0:
            self._begin(config, now)
        handovers = []
        for replica in self._led[turn::TURNS]:
            partition = cluster.groups.get(replica.group)
            if partition is None or not replica.is_leader or partition.topic not in self._topics:
                continue
            outcome = self._step(replica, partition, config, now)
            writers.verdicts[replica.group] = outcome
            if outcome.verdict.code == "goes":
                handovers.append(self._handover(replica, partition, outcome, config))
        if handovers and not self._asking.is_under_way:
            self._asking.begin(partial(self._ask, handovers[:TRANSFERS_PER_LOOK_MAX]))

    def _begin(self, config: ClusterConfig, now: int) -> None:
        """Find the partitions to look at, and to count from now on."""
        cluster, writers = self._services.cluster, self._services.writers
        if cluster.version != self._version:
            self._version = cluster.version
            ranks = self._services.leader_ranks
            topics = cluster.topics.values()
            self._topics = frozenset(
                one.name for one in topics if ranks.of(one, cluster).follows_writers
            )
        self._led = []
        writers.set_networks(config.client_networks)  # Quotas look regions up, too.
        if not self._topics and not writers.verdicts:
            return
        for replica in self._services.replication.led.all:
            partition = cluster.groups.get(replica.group)
            if partition is not None and partition.topic in self._topics:
                self._led.append(replica)
        known = self._led
        if not config.client_networks:
            self._led = []
        watches = self._watches
        self._watches = {
            one.group: watches.get(one.group)
            or WriterWatch(now, returns=self._departures.returns(one.group, now))
            for one in self._led
        }
        writers.count(self._watches)
        if not config.client_networks:
            verdict = Verdict("no-networks", "client.networks of the cluster is empty")
            writers.verdicts = {one.group: LeaderVerdict(verdict) for one in known}

    def _step(
        self, replica: Replica, partition: Partition, config: ClusterConfig, now: int
    ) -> LeaderVerdict:
        produced = self._services.writers.take(replica.group)
        watch = self._watches[replica.group]
        sight = Sight(
            period_ms=self._period_ms(partition, config),
            region=self._region(replica.self_id),
            preferred=self._region(partition.replicas[0]),
            transfer_target_in=lambda region: self._transfer_target_in(
                region, replica, partition, config
            ),
        )
        verdict = watch.step(now, produced, sight)
        return LeaderVerdict(verdict, dict(watch.bytes), is_near=watch.is_ahead(sight.region))

    def _period_ms(self, partition: Partition, config: ClusterConfig) -> int:
        cluster = self._services.cluster
        policy = self._services.leader_ranks.of(cluster.topics[partition.topic], cluster)
        delay_ms = policy.failback_delay_ms
        if delay_ms is None:
            delay_ms = config.leader_imbalance_check_interval_seconds * 1_000
        return max(delay_ms, PERIOD_MS_MIN)

    def _region(self, broker: BrokerId) -> str:
        known = self._services.cluster.brokers.get(broker)
        return "" if known is None else known.labels.region

    def _transfer_target_in(
        self, region: str, replica: Replica, partition: Partition, config: ClusterConfig
    ) -> BrokerId | Hindrance | None:
        """See `Sight`. The first in order of the brokers that could lead, so that a broker that
        handed over gets the partition back."""
        there = [one for one in partition.replicas if self._region(one) == region]
        if not there:
            return None
        hindrance = _hindrance(replica, partition, config)
        if hindrance is not None:
            return hindrance
        if replica.self_id in there:
            return replica.self_id
        cluster = self._services.cluster
        present = [one for one in there if one not in maintained_of(cluster) | leaving_of(cluster)]
        if not present:
            return "spared", f"{_brokers(there)} in maintenance, or to be emptied"
        ready = replica.in_sync()
        able = [one for one in present if one in ready]
        return able[0] if able else ("behind", f"{_brokers(present)} not in sync")

    def _handover(
        self, replica: Replica, partition: Partition, outcome: LeaderVerdict, config: ClusterConfig
    ) -> _Handover:
        transfer_target, watch = outcome.verdict.transfer_target, self._watches[replica.group]
        produced = outcome.bytes
        others = [one for one in partition.replicas if one != transfer_target]
        others.sort(key=lambda one: -produced.get(self._region(one), 0))
        return _Handover(
            replica=replica,
            partition=partition,
            transfer_target=transfer_target,
            wait_ms=watch.wait_ms(self._period_ms(partition, config)),
            returns=watch.returns,
            order=(transfer_target, *others),
        )

    async def _ask(self, handovers: list[_Handover]) -> None:
        """Have the controller record the orders, then hand over."""
        command = BalanceReplicas(
            tuple(
                BalancedReplicas(
                    group=one.partition.group,
                    seen_at=self._services.cluster.version,
                    version=one.partition.version,
                    replicas=one.partition.replicas,
                    observers=one.partition.observers,
                    target=one.order,
                    target_observers=one.partition.observers,
                )
                for one in handovers
            )
        )
        try:
            answer = await self._services.controller.submit(command, timeout_ms=ASK_TIMEOUT_MS)
            done = answer.groups if isinstance(answer, BalanceNoted) else ()
            for one in handovers:
                if one.partition.group in done:
                    self._hand_over(one)
        except ApiError as error:
            _log.info("the controller did not record leaders that follow the writers: %s", error)

    def _hand_over(self, one: _Handover) -> None:
        replica = one.replica
        if one.transfer_target == replica.self_id:
            return
        now = self._clock.monotonic_ms()
        self._departures.note(replica.group, now, wait_ms=one.wait_ms, returns=one.returns)
        _log.info(
            "%s: leadership follows the writers to broker %d", replica.name, one.transfer_target
        )
        try:
            replica.transfer_leadership(one.transfer_target)
        except RejectedError as error:
            _log.info("%s: cannot be handed over: %s", replica.name, error)


def _brokers(some: Sequence[BrokerId]) -> str:
    """ "broker 1 is" or "brokers 1, 2 are"."""
    ids = ", ".join(map(str, some))
    return f"broker {ids} is" if len(some) == 1 else f"brokers {ids} are"


def _hindrance(replica: Replica, partition: Partition, config: ClusterConfig) -> Hindrance | None:
    """Why no leader of this partition is moved now."""
    for key, is_on in (
        ("balancer.enable", config.balancer_enable),
        ("auto.leader.rebalance.enable", config.auto_leader_rebalance_enable),
    ):
        if not is_on:
            return "paused", f"{key} is false"
    if partition.is_moving or replica.configuration.is_joint or not replica.can_serve_reads:
        return "changes", "its replicas or its leadership are being moved"
    return None
