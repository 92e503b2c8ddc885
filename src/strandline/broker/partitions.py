"""Finds the replica that a request is about, or the Kafka error that says why there is none here.

Why:    produce, fetch and the offset APIs begin with the same questions: does the topic exist, does
        the partition, is a replica here, does it lead, and does the client know the present epoch?
Source: KIP-320 (leader epochs), KIP-951 (the present leader in the error); reliability reference 1b
        (error codes are part of safety)."""

from __future__ import annotations

from uuid import UUID

from strandline.broker.context import Services
from strandline.model.cluster import Broker, Partition, Topic
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.protocol.errors import Error
from strandline.replication.replica.replica import Replica

_NONE = Error.NONE
NO_EPOCH = -1
"""Stands for an unknown epoch in requests and responses."""

Leader = tuple[BrokerId, int]
"""A leader and its epoch; (-1, -1) if none is known."""


def topic_by_id(services: Services, topic_id: UUID) -> Topic | None:
    """The topic with this id."""
    cluster = services.cluster
    name = cluster.topic_names.get(topic_id)
    return None if name is None else cluster.topics.get(name)


def find_partition(topic: Topic | None, index: int) -> Partition | None:
    """The partition, or None."""
    if topic is None or not 0 <= index < len(topic.partitions):
        return None
    return topic.partitions[index]


def find_replica(services: Services, partition: Partition) -> tuple[Replica | None, Error]:
    """This broker's replica of the partition, whatever its role; or the error."""
    replica = services.replication.replicas.get(partition.group)
    if replica is None:
        return None, Error.NOT_LEADER_OR_FOLLOWER
    if replica.failed is not None:
        return None, Error.KAFKA_STORAGE_ERROR
    return replica, Error.NONE


def find_leader(
    services: Services, partition: Partition, client_epoch: int = NO_EPOCH
) -> tuple[Replica | None, Error]:
    """This broker's replica if it leads and the client knows its epoch; or the error."""
    replica = services.replication.replicas.get(partition.group)
    if replica is None or replica.failed is not None or not replica.is_leader:
        _, error = find_replica(services, partition)
        return None, error or Error.NOT_LEADER_OR_FOLLOWER
    if client_epoch != NO_EPOCH and client_epoch != replica.epoch:
        return None, check_epoch(replica, client_epoch)
    return replica, _NONE


def find_writable(services: Services, partition: Partition) -> tuple[Replica | None, Error]:
    """This broker's replica if it leads, or has just handed over and learns the next leader
    soon; or the error."""
    replica, error = find_leader(services, partition)
    if replica is not None:
        return replica, error
    replica = services.replication.replicas.get(partition.group)
    if replica is not None and replica.transfer.is_under_way:
        return replica, Error.NONE
    return None, error


def check_epoch(replica: Replica, client_epoch: int) -> Error:
    """The error for a client that believes in leader epoch `client_epoch`."""
    if client_epoch == NO_EPOCH or client_epoch == replica.epoch:
        return Error.NONE
    if client_epoch < replica.epoch:
        return Error.FENCED_LEADER_EPOCH
    return Error.UNKNOWN_LEADER_EPOCH


def check_preferred(replica: Replica, partition: Partition) -> Error:
    """Why the preferred replica cannot take over from this one now; NONE if it can."""
    if not replica.can_serve_reads:
        return Error.LEADER_NOT_AVAILABLE
    preferred = partition.replicas[0]
    if preferred == replica.self_id:
        return Error.ELECTION_NOT_NEEDED
    if preferred not in replica.in_sync():
        return Error.PREFERRED_LEADER_NOT_AVAILABLE
    return Error.NONE


def present_leader(services: Services, partition: Partition) -> Leader:
    """The partition's leader as known here, if it is alive.

    A leader that has just hung up is not named: clients without a leader ask more often."""
    leader, epoch = known_leader(services, partition)
    if leader == NO_BROKER or not may_be_named(services, leader):
        return NO_BROKER, epoch
    return leader, epoch


def known_leader(services: Services, partition: Partition) -> Leader:
    """The partition's leader as known here, alive or not."""
    replica = services.replication.replicas.get(partition.group)
    entry = services.replication.leaders.get(partition.group)
    leader, epoch = (NO_BROKER, NO_EPOCH) if entry is None else (entry.leader, entry.epoch)
    if replica is not None and replica.epoch > epoch:
        return replica.leader_id, replica.epoch
    if replica is not None and has_given_up(replica, leader, epoch):
        return NO_BROKER, epoch
    return leader, epoch


def has_given_up(replica: Replica, leader: BrokerId, epoch: int) -> bool:
    """Whether the announced leader of that epoch leads no more, as this replica knows. An
    announcement stays until the next one. A replica that has not met that leader yet does not
    know."""
    if leader == replica.leader_id:
        return False
    if leader == replica.self_id:
        return True
    return replica.failed is None and (replica.epoch > epoch or replica.unheard_epoch >= epoch)


def may_be_named(services: Services, broker: BrokerId) -> bool:
    """Whether clients may be sent to this broker as a leader."""
    return is_alive(services, broker) and not services.replication.has_hung_up(broker)


def is_alive(services: Services, broker: BrokerId) -> bool:
    """Whether this broker hears that one; it always hears itself."""
    return broker == services.broker_id or services.replication.is_peer_alive(broker)


def living_brokers(services: Services) -> list[Broker]:
    """The brokers that clients may be sent to, by id."""
    brokers = services.cluster.brokers
    return [brokers[one] for one in sorted(brokers) if is_alive(services, one)]
