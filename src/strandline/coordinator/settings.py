"""The limits and delays of groups, each from the cluster's configuration.

Source: Kafka's `group.*` and `offsets.*` broker keys; STYLE, rule 5."""

from dataclasses import dataclass

from strandline.config.cluster import DEFAULT_CLUSTER_CONFIG, ClusterConfig

PENDING_MEMBERS_MAX = 10_000
"""Member ids given out in one group to clients that have not come back with them."""

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member may wait for its first assignment before it counts as gone."""

OFFSETS_EXPIRY_INTERVAL_MS = 600_000
"""How often the coordinator looks for expired offsets."""

_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """The part of the cluster's configuration that groups use."""

    session_timeout_min_ms: int
    session_timeout_max_ms: int
    initial_rebalance_delay_ms: int
    members_max: int
    offset_metadata_characters_max: int
    offsets_retention_ms: int

    @classmethod
    def of(cls, config: ClusterConfig) -> "GroupSettings":
        """Read the cluster's configuration."""
        return cls(
            session_timeout_min_ms=config.group_min_session_timeout_ms,
            session_timeout_max_ms=config.group_max_session_timeout_ms,
            initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
            members_max=config.group_max_size,
            offset_metadata_characters_max=config.offset_metadata_max_bytes,
            offsets_retention_ms=config.offsets_retention_minutes * _MINUTE_MS,
        )


DEFAULT_GROUP_SETTINGS = GroupSettings.of(DEFAULT_CLUSTER_CONFIG)
