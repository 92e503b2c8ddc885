"""CreatePartitions: more partitions for topics that exist.

How:    a copy of another cluster's topic gets partitions when its source does, and only then.
Source: KIP-195; decision 0061."""

from strandline.base.errors import ApiError
from strandline.broker.access.requirements import REFUSED
from strandline.broker.context import RequestContext
from strandline.broker.coordinators.applied_waiters import make_partitions
from strandline.broker.quotas.mutations import spend_mutations
from strandline.broker.read_replicas.hosting import is_read_replica
from strandline.controller.commands import CreatePartitions, MorePartitions, Refused
from strandline.model.access import Kind, Operation
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

FOLLOWS_SOURCE = (
    "the topic is a copy of another cluster's topic: it gets partitions when its source does"
)


async def handle(
    request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse:
    """Extend the topics, each for itself."""
    topics = context.services.cluster.topics
    allowed: list[CreatePartitionsTopic] = []
    forbidden: list[CreatePartitionsTopic] = []
    for one in request.topics:
        may_alter = context.may(Operation.ALTER, Kind.TOPIC, one.name)
        (allowed if may_alter else forbidden).append(one)
    copies = [one for one in allowed if one.name in topics and is_read_replica(topics[one.name])]
    others = [one for one in allowed if one not in copies]
    results = [
        CreatePartitionsTopicResult(
            name=one.name, error_code=Error.POLICY_VIOLATION, error_message=FOLLOWS_SOURCE
        )
        for one in copies
    ]
    results += [
        CreatePartitionsTopicResult(
            name=one.name, error_code=Error.TOPIC_AUTHORIZATION_FAILED, error_message=REFUSED
        )
        for one in forbidden
    ]
    if not request.validate_only:
        others, throttled = _split_throttled(context, others)
        results += throttled
    if others or not results:
        command = CreatePartitions(tuple(map(_wanted, others)), request.validate_only)
        answer = await make_partitions(context.services, command, timeout_ms=request.timeout_ms)
        if isinstance(answer, Refused):
            results += _refuse_all(others, answer.error_code, answer.message)
            return CreatePartitionsResponse(results=results)
        results += [
            CreatePartitionsTopicResult(
                name=one.name or "", error_code=one.error_code, error_message=one.message
            )
            for one in answer.topics
        ]
    return CreatePartitionsResponse(results=results)


def _split_throttled(
    context: RequestContext, wanted: list[CreatePartitionsTopic]
) -> tuple[list[CreatePartitionsTopic], list[CreatePartitionsTopicResult]]:
    """The topics that the client has tokens for, and the answers for the others."""
    topics = context.services.cluster.topics
    allowed: list[CreatePartitionsTopic] = []
    refused: list[CreatePartitionsTopicResult] = []
    asked_count = 0
    for one in wanted:
        present = len(topics[one.name].partitions) if one.name in topics else one.count
        count = max(0, one.count - present)
        try:
            spend_mutations(context, count, asked_before=asked_count)
            asked_count += count
        except ApiError as error:
            refused += _refuse_all([one], error.code, error.message)
        else:
            allowed.append(one)
    return allowed, refused


def _wanted(topic: CreatePartitionsTopic) -> MorePartitions:
    assignments = None
    if topic.assignments is not None:
        assignments = tuple(tuple(map(BrokerId, one.broker_ids)) for one in topic.assignments)
    return MorePartitions(topic=topic.name, count=topic.count, assignments=assignments)


def _refuse_all(
    topics: list[CreatePartitionsTopic], code: int, message: str
) -> list[CreatePartitionsTopicResult]:
    return [
        CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message or None)
        for topic in topics
    ]
