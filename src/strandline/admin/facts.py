"""What a broker knows of brokers, topics and outages, for the console and the JSON API.

Why:    one source, so that the console and the API cannot disagree.
How:    each request reads the state of this broker only. Every broker knows roles and which brokers
        it hears; a partition's leader knows the progress of replicas; the controller knows outages.
Owns:   nothing.
Source: decision 0036."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from strandline.admin.pace import Pace
from strandline.admin.partitions import NOT_CAUGHT_UP, UNDER_MIN_ISR, UNDER_REPLICATED, values_of
from strandline.base.errors import ApiError
from strandline.base.json_value import Json
from strandline.broker.broker import Broker
from strandline.broker.context import Services
from strandline.broker.handlers.describe_replica_status import describe as describe_replicas
from strandline.broker.handlers.describe_zones import describe as describe_outages
from strandline.broker.handlers.metadata import offline_replicas
from strandline.broker.partitions import has_given_up, is_alive, present_leader
from strandline.client.operations import replica_status
from strandline.controller.names import is_internal
from strandline.controller.outages.happenings import Kind
from strandline.model.cluster import Partition, Topic
from strandline.model.ids import CONTROLLER_GROUP, NO_BROKER, BrokerId
from strandline.protocol.messages.describe_zones import DescribeZonesResponse

STEP = 20
"""Partitions between two checks of the slice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFacts:
    """A registered broker. `is_heard`: by this one; `round_trip_ms`: from this one, None where that
    is not known; `labels`: all that are said."""

    id: BrokerId
    host: str
    port: int
    region: str | None
    zone: str | None
    rack: str | None
    labels: dict[str, str]
    is_heard: bool
    round_trip_ms: int | None


@dataclass(slots=True)
class Counts:
    """Counts of a topic's partitions, by condition. Fields that end in `_here` count partitions
    led by this broker; other leaders know theirs."""

    without_leader: int = 0
    fewer_voters: int = 0
    observers_voting: int = 0
    offline_replicas: int = 0
    """With a replica on a broker that this broker does not hear."""
    failed_here: int = 0
    led_here: int = 0
    under_replicated_here: int = 0
    under_min_isr_here: int = 0
    not_caught_up_here: int = 0

    def add(self, other: "Counts") -> None:
        """Count these, too."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def is_well(self) -> bool:
        """Whether there is nothing to look at."""
        return not any(getattr(self, name) for name in _AILMENTS)


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic. `id`: as text."""

    name: str
    id: str
    partition_count: int
    is_internal: bool
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """A partition. `voters`, `observers`: as placed; `voting`: current voters by the last
    report; `voting_next`: the next voters while these change. `status`: progress of the
    replicas; None if this broker does not lead."""

    partition: int
    leader: BrokerId | None
    voters: Sequence[BrokerId]
    observers: Sequence[BrokerId]
    voting: Sequence[BrokerId]
    voting_next: Sequence[BrokerId]
    is_fenced: bool
    offline: Sequence[int]
    target_voters: Sequence[BrokerId]
    target_observers: Sequence[BrokerId]
    losses_declared: int
    has_failed_here: bool
    status: replica_status.PartitionStatus | None


@dataclass(frozen=True, slots=True)
class OutageFacts:
    """Outages that the controller knows. `weakened`: {class: partitions in that class}."""

    found: DescribeZonesResponse
    weakened: Mapping[Kind, int]


@dataclass(frozen=True, slots=True)
class NotKnown:
    """Why this broker knows no outages, and the controller, if known."""

    why: str
    controller: BrokerId | None


def outages_of(services: Services) -> OutageFacts | NotKnown:
    """What was found in the controller's last look."""
    try:
        found = describe_outages(services)
    except ApiError:
        controller = controller_of(services)
        if controller is None:
            return NotKnown("this broker knows no controller", None)
        is_here = controller == services.broker_id
        why = "this broker has not checked yet" if is_here else "ask the controller"
        return NotKnown(why, controller)
    return OutageFacts(found, services.balancing.outages.voting.counts)


def brokers_of(broker: Broker) -> list[BrokerFacts]:
    """All that are registered, by id."""
    services, replication = broker.services, broker.replication
    found = []
    for _, one in sorted(services.cluster.brokers.items()):
        is_heard = is_alive(services, one.id)
        round_trip_ms = replication.round_trip_ms(one.id) if is_heard else None
        found.append(
            BrokerFacts(
                id=one.id,
                host=one.kafka.host,
                port=one.kafka.port,
                region=one.labels.region or None,
                zone=one.labels.zone or None,
                rack=one.labels.rack or None,
                labels=one.labels.as_dict(),
                is_heard=is_heard,
                round_trip_ms=0 if one.id == services.broker_id else round_trip_ms,
            )
        )
    return found


async def topics_of(services: Services, pace: Pace) -> list[TopicFacts]:
    """All topics, by name."""
    topics = sorted(services.cluster.topics.items())
    return [(await topic_of(services, one, pace))[0] for _, one in topics]


async def topic_of(
    services: Services, topic: Topic, pace: Pace
) -> tuple[TopicFacts, list[Partition]]:
    """A topic, its partitions counted, and those of them that are not well."""
    counts = Counts()
    ailing = []
    for position, partition in enumerate(list(topic.partitions)):
        if position % STEP == 0:
            await pace.rest()
        found = _counted(services, partition)
        if not found.is_well:
            ailing.append(partition)
        counts.add(found)
    listed = TopicFacts(
        name=topic.name,
        id=str(topic.id),
        partition_count=len(topic.partitions),
        is_internal=is_internal(topic.name),
        counts=counts,
    )
    return listed, ailing


def _counted(services: Services, partition: Partition) -> Counts:
    """One partition, counted for what it is."""
    voting = partition.voters
    replica = services.replication.replicas.get(partition.group)
    found = Counts(
        without_leader=int(present_leader(services, partition)[0] == NO_BROKER),
        fewer_voters=int(len(voting) < len(partition.replicas)),
        observers_voting=int(any(one in voting for one in partition.observers)),
        offline_replicas=int(bool(offline_replicas(services, partition))),
    )
    if replica is None:
        return found
    found.failed_here = int(replica.failed is not None)
    if replica.is_leader and replica.failed is None:
        values = values_of(replica, partition)
        found.led_here = 1
        found.under_replicated_here = values[UNDER_REPLICATED]
        found.under_min_isr_here = values[UNDER_MIN_ISR]
        found.not_caught_up_here = values[NOT_CAUGHT_UP]
    return found


def partition_of(services: Services, partition: Partition) -> PartitionFacts:
    """Roles, as every broker knows them; how far replicas are, as their leader does."""
    replica = services.replication.replicas.get(partition.group)
    leader, _ = present_leader(services, partition)
    status = None
    if leader == services.broker_id:
        answer = describe_replicas(services, partition.topic, partition.index)
        if not answer.error_code:
            status = replica_status.PartitionStatus(
                partition.topic, partition.index, leader, is_internal(partition.topic), answer
            )
    return PartitionFacts(
        partition=partition.index,
        leader=_known(leader),
        voters=partition.replicas,
        observers=partition.observers,
        voting=partition.voters,
        voting_next=partition.pending,
        is_fenced=partition.is_fenced,
        offline=offline_replicas(services, partition),
        target_voters=partition.target,
        target_observers=partition.target_observers,
        losses_declared=len(partition.losses),
        has_failed_here=replica is not None and replica.failed is not None,
        status=status,
    )


def partition_json(one: PartitionFacts) -> dict[str, Json]:
    """As JSON; replicas in the form of `replica status --json`."""
    told: dict[str, Json] = {name: getattr(one, name) for name in _PARTITION_FIELDS}
    status = one.status
    told["status"] = None if status is None else replica_status.status_json(status, status.replicas)
    return told


def controller_of(services: Services) -> BrokerId | None:
    """The controller, as far as one is known here that lives and has not given up."""
    controller, entry = services.controller.leader_id, services.replication.leaders.controller
    replica = services.replication.replicas.get(CONTROLLER_GROUP)
    if controller == NO_BROKER or not is_alive(services, controller):
        return None
    if replica is not None and entry is not None:
        return None if has_given_up(replica, controller, entry.epoch) else controller
    return controller


def _known(broker: BrokerId) -> BrokerId | None:
    """None if there is no broker."""
    return None if broker == NO_BROKER else broker


_COUNTS = tuple(one.name for one in fields(Counts))
_AILMENTS = tuple(name for name in _COUNTS if name != "led_here")
_PARTITION_FIELDS = tuple(one.name for one in fields(PartitionFacts) if one.name != "status")
