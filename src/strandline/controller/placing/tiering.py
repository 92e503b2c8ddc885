"""Whether a topic may have tiered storage: a bucket exists, its policy allows one, and no broker
runs a release that cannot read its log.

Why:    a topic whose data has nowhere to go would keep all of it on the brokers' disks, or none
        elsewhere; the client should learn it when it asks.
        A broker of an earlier release would refuse the log of such a topic.
How:    the buckets are those of the controller's leader: they are the same in every broker's file.
        The first such topic of a cluster needs the word of every broker; later ones only need that
        no broker is known to be of an earlier release, so they can be created while some are down.
Source: KIP-405, KIP-950; decision 0058."""

from collections.abc import Mapping

from strandline.base.errors import ApiError
from strandline.config.topic import TopicConfig
from strandline.controller.decision import Facts, refuse
from strandline.controller.placing.policies import policy_in_force
from strandline.placement.buckets import allowed_buckets
from strandline.placement.policy.document import Policy
from strandline.protocol.errors import Error

ENABLE = "remote.storage.enable"
DELETE = "remote.log.delete.on.disable"


def require_bucket(facts: Facts, configs: Mapping[str, str]) -> None:
    """Refuse a topic with tiered storage and these keys of its own if no bucket may hold its data;
    raises ApiError INVALID_CONFIG."""
    reason = _without_bucket(facts, configs)
    if reason is not None:
        raise _invalid(reason)


def require_tiering_change(
    facts: Facts, before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    """Refuse a change of a topic's own keys that leaves a tiered topic without a bucket, or that
    ends tiered storage while objects stay; raises ApiError INVALID_CONFIG."""
    if before.get(ENABLE) != after.get(ENABLE) or _policy(facts, before) != _policy(facts, after):
        require_bucket(facts, after)
    cluster = facts.state.cluster.cluster_configs
    was = TopicConfig.from_overrides(cluster, before).remote_storage_enable
    now = TopicConfig.from_overrides(cluster, after)
    if was and not now.remote_storage_enable and not now.remote_log_delete_on_disable:
        raise _invalid(
            f"{ENABLE} cannot become false while the topic's objects stay: set {DELETE}=true with "
            "it, which deletes them, or keep it true and set remote.log.copy.disable=true"
        )


def _without_bucket(facts: Facts, configs: Mapping[str, str]) -> str | None:
    cluster = facts.state.cluster.cluster_configs
    if not TopicConfig.from_overrides(cluster, configs).remote_storage_enable:
        return None
    if not facts.buckets:
        return (
            f"{ENABLE} cannot be true: this cluster has no tiered storage; give [tiered] buckets "
            "in the brokers' files"
        )
    if not allowed_buckets(_policy(facts, configs), facts.buckets):
        return (
            f"{ENABLE} cannot be true: the topic's placement policy allows none of the buckets "
            f"{', '.join(facts.buckets)}; add a bucket in one of its regions to [tiered] buckets"
        )
    return _without_release(facts)


def _without_release(facts: Facts) -> str | None:
    """Why some broker's release is in the way."""
    earlier = sorted(one for one, is_known in facts.without_tiering.items() if is_known)
    if earlier:
        return (
            f"{ENABLE} cannot be true: the release of broker {', '.join(map(str, earlier))} has no "
            "tiered storage; upgrade it first"
        )
    topics = facts.state.cluster.topics.values()
    if facts.without_tiering and all(one.configs.get(ENABLE) != "true" for one in topics):
        unheard = ", ".join(map(str, sorted(facts.without_tiering)))
        return (
            f"{ENABLE} cannot be true yet: the controller has not heard broker {unheard}, whose "
            "release may have no tiered storage; start it, or remove it from the cluster"
        )
    return None


def _policy(facts: Facts, configs: Mapping[str, str]) -> Policy | None:
    return policy_in_force(configs, facts.state.cluster.cluster_configs)


def _invalid(reason: str) -> ApiError:
    return refuse(Error.INVALID_CONFIG, reason)
