"""Whether a topic may be a read-only copy of another cluster's topic, and stay it.

Why:    a copy has no records of its own. A topic that became one would hide its own, and one that
        ended to be one, or had another source, would give other records at the same offsets.
Source: decision 0061."""

from collections.abc import Mapping

from strandline.config.topic_read_replica import READ_REPLICA_OF, SOURCE_ID
from strandline.controller.decision import Facts, refuse
from strandline.protocol.errors import Error


def require_source(facts: Facts, configs: Mapping[str, str]) -> None:
    """Refuse a new copy whose source was not looked for in its bucket, or that a broker of an
    earlier release would serve as a topic of its own; raises ApiError."""
    if not configs.get(READ_REPLICA_OF):
        return
    topics = facts.state.cluster.topics.values()
    is_first = not any(READ_REPLICA_OF in one.configs for one in topics)
    unfit = sorted(
        broker for broker, lacks_it in facts.without_tiering.items() if lacks_it or is_first
    )
    if unfit:
        raise refuse(
            Error.INVALID_CONFIG,
            f"{READ_REPLICA_OF} needs brokers that know it, and broker {unfit[0]} may be of an "
            "earlier release: upgrade or start it, or unregister it",
        )
    if not configs.get(SOURCE_ID):
        raise refuse(
            Error.INVALID_CONFIG,
            f"{READ_REPLICA_OF} needs a broker that looks into the bucket for {SOURCE_ID}: create "
            "the topic through a broker of this release",
        )


def require_same_source(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Refuse a change of a topic's source; raises ApiError INVALID_CONFIG."""
    for name in (READ_REPLICA_OF, SOURCE_ID):
        if before.get(name, "") != after.get(name, ""):
            raise refuse(
                Error.INVALID_CONFIG,
                f"{name} cannot change: offsets would belong to other records; delete the topic "
                "and create it anew",
            )
