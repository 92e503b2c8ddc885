"""A cluster as one broker's metadata describes it.

Owns:   nothing; every view is a snapshot.
Source: Kafka's Metadata API."""

from dataclasses import dataclass, field
from uuid import UUID

from strandline.model.cluster import Address
from strandline.model.ids import BrokerId
from strandline.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A broker, from metadata. `rack` is its region; empty if unknown."""

    id: BrokerId
    address: Address
    rack: str


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition. `leader` is -1 while there is none."""

    index: int
    leader: BrokerId
    epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic; `partitions[i].index == i`. `error_code` is not 0 if the broker has no answer for
    it."""

    name: str
    id: UUID
    is_internal: bool
    error_code: int
    partitions: tuple[PartitionView, ...]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster, from one broker. `controller` is -1 if unknown."""

    cluster_id: str
    controller: BrokerId
    brokers: dict[BrokerId, BrokerView]
    topics: dict[str, TopicView] = field(default_factory=dict)


def read_cluster(answer: MetadataResponse) -> ClusterView:
    """The cluster that a metadata answer describes."""
    brokers = {
        BrokerId(one.node_id): BrokerView(
            BrokerId(one.node_id), Address(one.host, one.port), one.rack or ""
        )
        for one in answer.brokers
    }
    return ClusterView(
        cluster_id=answer.cluster_id or "",
        controller=BrokerId(answer.controller_id),
        brokers=dict(sorted(brokers.items())),
        topics={one.name: _read_topic(one) for one in answer.topics if one.name is not None},
    )


def _read_topic(topic: MetadataResponseTopic) -> TopicView:
    partitions = sorted(topic.partitions, key=lambda one: one.partition_index)
    return TopicView(
        name=topic.name or "",
        id=topic.topic_id,
        is_internal=topic.is_internal,
        error_code=topic.error_code,
        partitions=tuple(
            PartitionView(
                index=one.partition_index,
                leader=BrokerId(one.leader_id),
                epoch=one.leader_epoch,
                replicas=tuple(one.replica_nodes),
                in_sync=tuple(one.isr_nodes),
                offline=tuple(one.offline_replicas),
            )
            for one in partitions
        ),
    )
