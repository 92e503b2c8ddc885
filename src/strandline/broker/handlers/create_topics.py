"""CreateTopics: asks the controller, then waits until this broker knows the new leaders.

Why:    a client that has created a topic goes on to use it through the same broker.
How:    the command is carried to the controller; the answer gives the topic id and, from version 5,
        the configuration in force. Of a topic that copies another cluster's, the source is looked
        for first (`read_replicas.creating`).
Source: KIP-464, KIP-525, KIP-516."""

from strandline.base.errors import ApiError
from strandline.broker.access.requirements import REFUSED
from strandline.broker.context import RequestContext
from strandline.broker.coordinators.applied_waiters import make_partitions
from strandline.broker.quotas.mutations import default_partitions, spend_mutations
from strandline.broker.read_replicas.creating import with_source
from strandline.config.effective import topic_values
from strandline.config.topic_read_replica import READ_REPLICA_OF
from strandline.controller.commands import CreateTopics, NewTopic, Refused, TopicResult
from strandline.controller.placing.policies import derived_defaults
from strandline.controller.placing.start_offsets import HISTORY, TOPIC_ID
from strandline.model.access import CLUSTER_NAME, Kind, Operation
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

NAME_BUCKETS = frozenset({READ_REPLICA_OF, HISTORY, TOPIC_ID})
"""Keys by which the new topic has records that are in a bucket already."""


async def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    """Create the topics, each for itself."""
    services = context.services
    wanted, refused = [], []
    asked_count = 0
    for topic in map(_new_topic, request.topics):
        try:
            _require_rights(context, topic)
            if not request.validate_only and topic.name not in services.cluster.topics:
                count = _partitions(context, topic)
                spend_mutations(context, count, asked_before=asked_count)
                asked_count += count
            wanted.append(await with_source(services, topic, request.timeout_ms))
        except ApiError as error:
            refused.append(
                TopicResult(name=topic.name, error_code=error.code, message=error.message or None)
            )
    results = refused
    if wanted or not refused:
        command = CreateTopics(tuple(wanted), request.validate_only)
        answer = await make_partitions(services, command, timeout_ms=request.timeout_ms)
        if isinstance(answer, Refused):
            message = answer.message or None
            results = [
                *(
                    TopicResult(name=one.name, error_code=answer.error_code, message=message)
                    for one in wanted
                ),
                *refused,
            ]
        else:
            results = [*answer.topics, *refused]
    return CreateTopicsResponse(topics=[_result(context, result) for result in results])


def _require_rights(context: RequestContext, topic: NewTopic) -> None:
    """Raise ApiError if the client may not create the topic. A copy of another cluster's topic has
    brokers read any bucket with their own credentials; a restored one takes over the objects of any
    topic whose id is given: that takes a right to the cluster."""
    names_bucket = any(name in NAME_BUCKETS for name, _ in topic.configs)
    if names_bucket and not context.may(Operation.ALTER, Kind.CLUSTER, CLUSTER_NAME):
        raise ApiError(Error.CLUSTER_AUTHORIZATION_FAILED, REFUSED)
    creates_any = context.sees(Operation.CREATE, Kind.CLUSTER, CLUSTER_NAME)
    if not creates_any and not context.may(Operation.CREATE, Kind.TOPIC, topic.name):
        raise ApiError(Error.TOPIC_AUTHORIZATION_FAILED, REFUSED)


def _partitions(context: RequestContext, topic: NewTopic) -> int:
    """How many partitions a new topic will have."""
    if topic.assignments:
        return len(topic.assignments)
    return topic.partitions if topic.partitions > 0 else default_partitions(context)


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=tuple(
            (one.partition_index, tuple(map(BrokerId, one.broker_ids))) for one in topic.assignments
        ),
        configs=tuple((config.name, config.value) for config in topic.configs),
    )


def _result(context: RequestContext, result: TopicResult) -> CreatableTopicResult:
    services, name = context.services, result.name or ""
    if result.error_code == Error.NONE and not context.sees(
        Operation.DESCRIBE_CONFIGS, Kind.TOPIC, name
    ):
        return CreatableTopicResult(
            name=name,
            topic_id=result.id,
            error_message=None,
            topic_config_error_code=Error.TOPIC_AUTHORIZATION_FAILED,
            configs=None,
        )
    topic = services.cluster.topics.get(result.name or "")
    overrides = {} if topic is None else topic.configs
    defaults = services.cluster.cluster_configs
    derived = derived_defaults(overrides, defaults)
    configs = [
        CreatableTopicConfigs(
            name=value.key.name, value=value.value, config_source=int(value.source)
        )
        for value in topic_values(defaults, overrides, derived)
    ]
    return CreatableTopicResult(
        name=result.name or "",
        topic_id=result.id,
        error_code=result.error_code,
        error_message=result.message,
        num_partitions=result.partitions,
        replication_factor=result.replication_factor,
        configs=configs if result.error_code == Error.NONE else [],
    )
