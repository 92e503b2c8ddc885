"""Metadata: the live brokers, the topics, the leader of each partition.

Why:    every client finds its way by this answer. It comes from the committed state and from
        announcements of leaders, without a question to another broker.
How:    A partition whose leader is unknown or silent gets LEADER_NOT_AVAILABLE, and clients retry.
        A missing topic is created if the client and the cluster's `auto.create.topics.enable` allow
        it. The answer waits a moment for the first leaders of a new topic; without them the topic
        itself gets LEADER_NOT_AVAILABLE (`leadership.new_topics`).
Source: KIP-516 (topic ids); reliability reference 4 (illegal names)."""

import logging
from uuid import UUID

from strandline.base.errors import ApiError
from strandline.broker.access.changes import audit_created
from strandline.broker.context import RequestContext, Services
from strandline.broker.coordinators.applied_waiters import wait_for_leaders
from strandline.broker.leadership.new_topics import LEADERS_WAIT_MS
from strandline.broker.partitions import (
    NO_EPOCH,
    is_alive,
    known_leader,
    living_brokers,
    may_be_named,
)
from strandline.broker.quotas.mutations import default_partitions, spend_mutations
from strandline.broker.read_replicas.hosting import is_read_replica
from strandline.broker.server.request_limits import distinct
from strandline.config.cluster import ClusterConfig
from strandline.controller.commands import CreateTopics, NewTopic, TopicResults
from strandline.controller.names import check_topic_name, is_internal
from strandline.model.access import CLUSTER_NAME, Kind, Operation
from strandline.model.cluster import Partition, Topic
from strandline.model.ids import CONTROLLER_GROUP, NO_BROKER, BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NO_ID = UUID(int=0)
ALL_TOPICS_IF_EMPTY_UNTIL_VERSION = 0
NAME_MAY_BE_NULL_SINCE_VERSION = 12
LISTENER_NOT_FOUND_SINCE_VERSION = 6
CREATE_TIMEOUT_MS = 5_000

_log = logging.getLogger("strandline.broker")


async def handle(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    """Answer for the topics asked about, or for all."""
    services = context.services
    version = context.api_version
    requested = request.topics
    listener = context.session.listener
    if requested is None or (not requested and version <= ALL_TOPICS_IF_EMPTY_UNTIL_VERSION):
        living = Living(services, listener, version)
        topics = [
            _describe(services, one, living)
            for one in services.cluster.topics.values()
            if context.sees(Operation.DESCRIBE, Kind.TOPIC, one.name)
        ]
    else:
        requested, forbidden = _split_forbidden(context, distinct(requested, _name_of))
        created: dict[str, int] = {}
        if request.allow_auto_topic_creation:
            created = await _create_missing(context, requested)
        await _wait_for_first_leaders(services, requested, created)
        living = Living(services, listener, version)
        topics = [_answer(services, one, version, living, created) for one in requested]
        topics += forbidden
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None and topic.error_code != Error.TOPIC_AUTHORIZATION_FAILED:
                topic.topic_authorized_operations = services.access.operations(
                    context.session, Kind.TOPIC, topic.name
                )
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=one.id,
                host=address.host,
                port=address.port,
                rack=one.labels.kafka_rack(),
            )
            for one in living_brokers(services)
            if (address := one.address_at(listener, context.session.host)) is not None
        ],
        cluster_id=services.cluster.cluster_id,
        controller_id=controller_id(services),
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = services.access.cluster_operations(context.session)
    return response


class Living:
    """The live brokers, collected once for an answer about thousands of partitions. `listener`: the
    one that the client came to; None: a question that is not about addresses."""

    __slots__ = ("alive", "elsewhere", "named", "version")

    def __init__(self, services: Services, listener: str | None = None, version: int = 0) -> None:
        brokers = services.cluster.brokers
        self.version = version
        self.alive = frozenset(one for one in brokers if is_alive(services, one))
        named = frozenset(one for one in self.alive if may_be_named(services, one))
        self.elsewhere = frozenset(
            one
            for one in (named if listener is not None else ())
            if brokers[one].address_at(str(listener)) is None
        )
        """Those that the client cannot reach: they have no listener of this name."""
        self.named = named - self.elsewhere
        """Those that may be named as leaders."""


def controller_id(services: Services) -> BrokerId:
    """The broker for administrators' requests: the controller, if it is known and alive."""
    entry = services.replication.leaders.get(CONTROLLER_GROUP)
    if entry is None or not is_alive(services, entry.leader):
        return NO_BROKER
    return entry.leader


def in_sync_replicas(services: Services, partition: Partition, leader: BrokerId) -> list[int]:
    """The in-sync replicas, if the leader is here; otherwise the live replicas."""
    replica = services.replication.replicas.get(partition.group)
    if replica is not None and leader == services.broker_id:
        return list(replica.in_sync())
    return [one for one in partition.voters if is_alive(services, one)]


def offline_replicas(services: Services, partition: Partition) -> list[int]:
    """The replicas on brokers that are silent."""
    return [one for one in partition.hosts if not is_alive(services, one)]


def _split_forbidden(
    context: RequestContext, requested: list[MetadataRequestTopic]
) -> tuple[list[MetadataRequestTopic], list[MetadataResponseTopic]]:
    """The topics that the client may know of, and the answers for the others: whether those exist
    stays unsaid. Ids are no secret, names are."""
    allowed: list[MetadataRequestTopic] = []
    forbidden: list[MetadataResponseTopic] = []
    for one in requested:
        name = one.name
        if name is None:
            name = context.services.cluster.topic_names.get(one.topic_id)
        if name is None or context.may(Operation.DESCRIBE, Kind.TOPIC, name):
            allowed.append(one)
            continue
        hidden = None if context.api_version >= NAME_MAY_BE_NULL_SINCE_VERSION else ""
        forbidden.append(
            MetadataResponseTopic(
                error_code=Error.TOPIC_AUTHORIZATION_FAILED,
                name=hidden if one.name is None else one.name,
                topic_id=one.topic_id,
            )
        )
    return allowed, forbidden


def _has_tokens(context: RequestContext) -> bool:
    """Whether the client may make one more topic now. Without, the topic is an unknown one: clients
    ask again."""
    try:
        spend_mutations(context, default_partitions(context))
    except ApiError:
        return False
    return True


async def _create_missing(
    context: RequestContext, requested: list[MetadataRequestTopic]
) -> dict[str, int]:
    """Create missing topics that may be created; a topic that fails stays missing.

    Returns {topic: error code} of those that the controller decided about, and of those that the
    client may not create."""
    services = context.services
    config = ClusterConfig.from_values(services.cluster.cluster_configs)
    if not config.auto_create_topics_enable:
        return {}
    missing = {
        one.name: None
        for one in requested
        if one.name is not None
        and one.name not in services.cluster.topics
        and not is_internal(one.name)
        and _name_error(one.name) == Error.NONE
    }
    forbidden: dict[str, int] = {}
    if not context.sees(Operation.CREATE, Kind.CLUSTER, CLUSTER_NAME):
        forbidden = {
            name: int(Error.TOPIC_AUTHORIZATION_FAILED)
            for name in missing
            if not context.may(Operation.CREATE, Kind.TOPIC, name)
        }
        missing = {name: None for name in missing if name not in forbidden}
    missing = {name: None for name in missing if _has_tokens(context)}
    if not missing:
        return forbidden
    topics = tuple(NewTopic(name=name) for name in missing)
    try:
        answer = await services.controller.submit(
            CreateTopics(topics), timeout_ms=CREATE_TIMEOUT_MS
        )
    except ApiError as error:
        _log.warning("could not create %s: %s", ", ".join(missing), error)
        return forbidden
    if not isinstance(answer, TopicResults):
        return forbidden
    for one in answer.topics:
        if one.name is not None and one.error_code == Error.NONE:
            audit_created(context, one.name)
    decided = {one.name: one.error_code for one in answer.topics if one.name is not None}
    return forbidden | decided


async def _wait_for_first_leaders(
    services: Services, requested: list[MetadataRequestTopic], created: dict[str, int]
) -> None:
    """Wait a moment for the leaders of requested topics that are new."""
    names = services.cluster.topic_names
    wanted = [names.get(one.topic_id) if one.name is None else one.name for one in requested]
    waits_ms = {name: services.new_topics.wait_ms(name) for name in wanted if name is not None}
    for name, code in created.items():
        if code in (Error.NONE, Error.TOPIC_ALREADY_EXISTS) and name not in services.cluster.topics:
            waits_ms[name] = LEADERS_WAIT_MS  # Its record has yet to come to this broker.
    new = [name for name, wait_ms in waits_ms.items() if wait_ms > 0]
    if new:
        timeout_ms = max(waits_ms[name] for name in new)
        await wait_for_leaders(services, new, timeout_ms=timeout_ms)


def _name_of(requested: MetadataRequestTopic) -> str | UUID:
    return requested.topic_id if requested.name is None else requested.name


def _answer(
    services: Services,
    requested: MetadataRequestTopic,
    version: int,
    living: Living,
    created: dict[str, int],
) -> MetadataResponseTopic:
    if requested.name is not None:
        topic = services.cluster.topics.get(requested.name)
        if topic is not None:
            return _describe(services, topic, living)
        error = _name_error(requested.name) or _missing_error(created.get(requested.name))
        return MetadataResponseTopic(error_code=error, name=requested.name)
    name = services.cluster.topic_names.get(requested.topic_id)
    if name is not None:
        return _describe(services, services.cluster.topics[name], living)
    return MetadataResponseTopic(
        error_code=Error.UNKNOWN_TOPIC_ID,
        name=None if version >= NAME_MAY_BE_NULL_SINCE_VERSION else "",
        topic_id=requested.topic_id,
    )


def _name_error(name: str) -> int:
    try:
        check_topic_name(name)
    except ApiError as error:
        return error.code
    return Error.NONE


def _missing_error(created: int | None) -> int:
    """The error for a topic that is missing here. `created`: the answer to its creation, None if
    nothing asked for that."""
    if created in (Error.NONE, Error.TOPIC_ALREADY_EXISTS):
        return Error.LEADER_NOT_AVAILABLE
    if created in (Error.INVALID_TOPIC_EXCEPTION, Error.TOPIC_AUTHORIZATION_FAILED):
        return created
    return Error.UNKNOWN_TOPIC_OR_PARTITION


def _describe(services: Services, topic: Topic, living: Living) -> MetadataResponseTopic:
    is_copy = is_read_replica(topic)
    partitions = [
        _describe_partition(services, one, living, is_copy=is_copy) for one in topic.partitions
    ]
    is_unready = services.new_topics.is_new(topic.name) and any(
        one.leader_id == NO_BROKER for one in partitions
    )
    return MetadataResponseTopic(
        error_code=Error.LEADER_NOT_AVAILABLE if is_unready else Error.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=partitions,
    )


def _describe_partition(
    services: Services, partition: Partition, living: Living, *, is_copy: bool
) -> MetadataResponsePartition:
    """`is_copy`: of another cluster's topic, whose records have that cluster's epochs. A client
    compares them with the leader's, so it is told none."""
    leader, epoch = known_leader(services, partition)
    error = Error.NONE
    if leader not in living.named:
        is_elsewhere = leader in living.elsewhere
        is_told = is_elsewhere and living.version >= LISTENER_NOT_FOUND_SINCE_VERSION
        error = Error.LISTENER_NOT_FOUND if is_told else Error.LEADER_NOT_AVAILABLE
        leader = NO_BROKER
    replicas: list[int] = list(partition.hosts)
    present: list[int] = [one for one in partition.voters if one in living.alive]
    is_here = leader == services.broker_id
    return MetadataResponsePartition(
        error_code=error,
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=NO_EPOCH if is_copy else epoch,
        replica_nodes=replicas,
        isr_nodes=in_sync_replicas(services, partition, leader) if is_here else present,
        offline_replicas=[]
        if len(present) == len(replicas)
        else [one for one in replicas if one not in living.alive],
    )
