"""What each topic wants of the buckets, ready for every look.

Owns:   a cache, compared again once the controller's log has moved on.
Source: decisions 0057 to 0059."""

from collections.abc import Mapping

from strandline.broker.coordinators.topic_configs import TopicConfigs
from strandline.broker.tiering.tier_context import CopyLag, TierPlan
from strandline.config.topic_tiering import REFUSE_WRITES
from strandline.controller.placing.policies import policy_in_force
from strandline.model.cluster import Cluster, Labels, Topic
from strandline.model.ids import GroupId
from strandline.placement.buckets import allowed_buckets

_NOTHING = TierPlan()


class TopicPlans:
    """See the module. `labels`: {bucket: where it is}."""

    def __init__(
        self, cluster: Cluster, topic_configs: TopicConfigs, labels: Mapping[str, Labels]
    ) -> None:
        self._cluster = cluster
        self._topic_configs = topic_configs
        self._labels = labels
        self._plans: dict[str, TierPlan] = {}
        self._version = -1

    def of(self, group: GroupId) -> TierPlan:
        """What the partition's topic wants; nothing if it is gone."""
        cluster = self._cluster
        if cluster.version != self._version:
            self._version = cluster.version
            self._plans.clear()
        partition = cluster.groups.get(group)
        if partition is None:
            return _NOTHING
        plan = self._plans.get(partition.topic)
        if plan is None:
            plan = self._plans[partition.topic] = self._made(cluster.topics[partition.topic])
        return plan

    def _made(self, topic: Topic) -> TierPlan:
        config = self._topic_configs.of(topic, self._cluster)
        if not config.remote_storage_enable:
            return TierPlan(is_deleting_all=config.remote_log_delete_on_disable)
        policy = policy_in_force(topic.configs, self._cluster.cluster_configs)
        values = config.tiering
        return TierPlan(
            buckets=allowed_buckets(policy, self._labels),
            copies_min=config.remote_copies_min,
            lag=CopyLag(values.copy_lag_ms, values.copy_lag_bytes),
            lag_max_ms=config.remote_copy_lag_max_ms,
            held_bytes_max=config.remote_copy_lag_max_bytes,
            is_refusing_when_full=config.remote_copy_lag_max_action == REFUSE_WRITES,
            is_copying_off=config.remote_log_copy_disable,
        )
