"""Decides at the leader whether a consumer should read from a replica that is nearer to it.

Why:    a byte that crosses a region costs money and time.
How:    the leader names a nearer replica that is expected to serve, and returns no records. Where
        that one sent the consumer back, the leader spares it for a while (`SentOn`).
Source: KIP-392; `nearest_replica` for what near means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.fetch.nearest_replica import is_at, nearest, one_of, path_of
from strandline.broker.partitions import may_be_named
from strandline.controller.decision import maintained_of
from strandline.model.cluster import Partition
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.protocol.messages.fetch import FetchRequest
from strandline.replication.replica.replica import Replica

if TYPE_CHECKING:
    from strandline.broker.context import RequestContext, Services

CONSUMER = -1
"""The replica id that consumers send."""


def nearer_replica(
    context: RequestContext, request: FetchRequest, partition: Partition, leader: Replica
) -> BrokerId:
    """The broker to send this consumer to; NO_BROKER if it stays with the leader."""
    services = context.services
    connection, now_ms = context.sink.number, services.clock.monotonic_ms()
    if (
        request.replica_id != CONSUMER
        or not _may_send_on(services, partition)
        or services.sent_on.is_spared(connection, partition.group, now_ms)
    ):
        return NO_BROKER
    brokers = services.cluster.brokers
    own = brokers.get(services.broker_id)
    if own is not None and is_at(request.rack_id, own.labels):
        return NO_BROKER
    path = path_of(request.rack_id, (one.labels for one in brokers.values()))
    places = {
        one: brokers[one].labels
        for one in leader.configuration.members
        if path
        and one in brokers
        and _will_do(services, leader, one)
        and brokers[one].address_at(context.session.listener) is not None
    }
    candidates = nearest(path, services.broker_id, places)
    if not candidates:
        return NO_BROKER
    client = f"{context.client_host}/{context.client_id}"
    services.sent_on.add(connection, partition.group, now_ms)
    return one_of(candidates, client, partition.group)


def _may_send_on(services: Services, partition: Partition) -> bool:
    topic = services.cluster.topics.get(partition.topic)
    if topic is None:
        return False
    return services.topic_configs.of(topic, services.cluster).fetch_from_nearest_enable


def _will_do(services: Services, leader: Replica, broker: BrokerId) -> bool:
    """Whether this member is expected to serve; the leader always is. Records that it lacks
    arrive in a moment: consumers of the newest records wait for them there."""
    return broker == services.broker_id or (
        leader.may_count(broker)
        and may_be_named(services, broker)
        and broker not in maintained_of(services.cluster)
    )
