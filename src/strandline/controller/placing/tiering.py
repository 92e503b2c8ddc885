"""Whether a topic may have tiered storage: a bucket exists, and its policy allows one.

Why:    a topic whose data has nowhere to go would keep all of it on the brokers' disks, or none
        elsewhere; the client should learn it when it asks.
How:    the buckets are those of the controller's leader: they are the same in every broker's file.
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
    if allowed_buckets(_policy(facts, configs), facts.buckets):
        return None
    return (
        f"{ENABLE} cannot be true: the topic's placement policy allows none of the buckets "
        f"{', '.join(facts.buckets)}; add a bucket in one of its regions to [tiered] buckets"
    )


def _policy(facts: Facts, configs: Mapping[str, str]) -> Policy | None:
    return policy_in_force(configs, facts.state.cluster.cluster_configs)


def _invalid(reason: str) -> ApiError:
    return refuse(Error.INVALID_CONFIG, reason)
