"""Which voters a group led here should have now, while its replicas do not move.

Why:    whether a voter leaves, returns or is replaced by an observer depends on the topic's policy,
        on the group's leader and on the regions that are down: this collects what
        `voter_reconciliation` goes by.
How:    voters may leave (`voters.shrink.enable`)  --> `VoterReconciliation.choose`
        they may not  --> all replicas but those declared lost; an appointed observer while these
                          are too few for acks=all
Owns:   nothing beside the reconciliation.
Source: decisions 0020, 0025 and 0027."""

from strandline.base.clock import Clock
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.groups.voter_reconciliation import (
    Choice,
    Health,
    Lag,
    PromotionInputs,
    VoterReconciliation,
)
from strandline.broker.leadership.leader_ranks import LeaderRanks
from strandline.config.topic import TopicConfig
from strandline.controller.arbitration.promotion import Bounds
from strandline.controller.outages.domains import is_region
from strandline.model.cluster import Cluster, Partition, Ruling
from strandline.replication.host.replication import Replication
from strandline.replication.leader.replica_status import lag_of
from strandline.replication.replica.replica import Replica


class WantedVoters:
    """See the module; one per broker."""

    def __init__(
        self,
        *,
        clock: Clock,
        replication: Replication,
        controller: ControllerHost,
        leader_ranks: LeaderRanks,
    ) -> None:
        self._replication = replication
        self._controller = controller
        self._leader_ranks = leader_ranks
        self.reconciliation = VoterReconciliation(
            clock, patience_ratio=replication.settings.patience_ratio
        )

    def choose(self, replica: Replica, partition: Partition, config: TopicConfig) -> Choice:
        """Which of the brokers that hold the log should vote now."""
        if not config.voters_shrink_enable:
            return self._own_voters(partition, config.min_insync_replicas)
        return self.reconciliation.choose(
            partition,
            replica.self_id,
            self._health(replica),
            min_insync=config.min_insync_replicas,
            is_ready=replica.is_ready_to_vote,
            promotion=self._promotion(replica, partition, config),
        )

    def is_stuck(self, replica: Replica) -> bool:
        """Whether the group cannot commit anything without voters that are lost, not even their
        removal, though a majority is there. Then a majority has to suffice, and acks=all is
        refused meanwhile."""
        return self.reconciliation.is_stuck(
            replica.group, replica.self_id, replica.configuration, self._health(replica)
        )

    def _health(self, replica: Replica) -> Health:
        assert replica.leadership is not None
        return Health(
            keeps_up=replica.may_count,
            is_heard=self._replication.is_peer_alive,
            lacks_ms=replica.leadership.followers.lacks_ms,
            lag_ms=replica.lag_limit_ms,
        )

    def _own_voters(self, partition: Partition, min_insync: int) -> Choice:
        given_up = self._controller.cluster.given_up(partition)
        left = tuple(one for one in partition.replicas if one not in given_up)
        if len(left) < min(max(min_insync, 1), len(partition.replicas)):
            left += tuple(one for one in partition.voters if one in partition.observers)
        return Choice(left or partition.voters, is_settled=not given_up)

    def _promotion(
        self, replica: Replica, partition: Partition, config: TopicConfig
    ) -> PromotionInputs | None:
        """What the promotion of observers goes by; None where the policy promotes none, and no
        observer votes."""
        cluster = self._controller.cluster
        policy = self._leader_ranks.of(cluster.topics[partition.topic], cluster).promotion
        observers = partition.observers
        if not observers or not (policy or any(one in observers for one in partition.voters)):
            return None
        brokers = cluster.brokers
        return PromotionInputs(
            policy=policy,
            min_insync=config.min_insync_replicas,
            bounds=bounds_of(config),
            lag=lambda broker: Lag(*lag_of(replica, broker)),
            levels=self._replication.nearness.levels,
            regions={
                one: brokers[one].labels.region for one in partition.replicas if one in brokers
            },
            regions_down=_regions_down(cluster),
        )


def bounds_of(config: TopicConfig) -> Bounds:
    """What a topic asks of observers that stand in."""
    return Bounds(
        lag_count_max=config.observer_promotion_lag_max_records,
        lag_ms_max=config.observer_promotion_lag_max_ms,
        ready_ms=config.observer_promotion_ready_ms,
        demote_ms=config.observer_demotion_delay_ms,
    )


def _regions_down(cluster: Cluster) -> frozenset[str]:
    return frozenset(
        domain[0]
        for domain, one in cluster.outages.items()
        if is_region(domain) and (one.is_down or one.ruling is Ruling.LOST)
    )
