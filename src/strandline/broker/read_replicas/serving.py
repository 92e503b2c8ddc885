"""Whether a copy may answer a request now.

Why:    a reader never sees less than it saw before, and never older records than its topic allows.
How:    a leader answers once it has looked into the bucket since it leads, or has tried to: the
        last leader may have served a newer export. Errors are those that clients retry, but for a
        source that is gone.
Source: decision 0061."""

from __future__ import annotations

from strandline.broker.context import Services
from strandline.model.cluster import Topic
from strandline.protocol.errors import Error
from strandline.replication.replica.replica import Replica
from strandline.tiered.replicas.view import NEVER_MS, ReplicaView, ViewState

NO_LIMIT = -1


def refusal(services: Services, topic: Topic, replica: Replica, view: ReplicaView) -> Error:
    """Why this copy cannot be read here now; NONE if it can."""
    if view.state is ViewState.DELETED:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    if not view.is_ready:
        return Error.KAFKA_STORAGE_ERROR
    if replica.is_leader and view.tried_ms < replica.leading_since_ms:
        services.read_replicas.refresh_soon()
        return Error.NOT_LEADER_OR_FOLLOWER
    return Error.KAFKA_STORAGE_ERROR if is_too_stale(services, topic, view) else Error.NONE


def is_too_stale(services: Services, topic: Topic, view: ReplicaView) -> bool:
    """Whether the bucket's newest statement is older than the topic allows."""
    config = services.topic_configs.of(topic, services.cluster)
    limit_ms = config.read_replica_max_staleness_ms
    if limit_ms == NO_LIMIT:
        return False
    age_ms = view.staleness_ms(services.clock.wall_ms())
    return age_ms == NEVER_MS or age_ms > limit_ms
