"""CreatePartitions: more partitions for topics that exist.

Source: KIP-195."""

from strandline.broker.context import RequestContext
from strandline.broker.coordinators.applied_waiters import make_partitions
from strandline.controller.commands import CreatePartitions, MorePartitions, Refused
from strandline.model.ids import BrokerId
from strandline.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle(
    request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse:
    """Extend the topics, each for itself."""
    command = CreatePartitions(tuple(map(_wanted, request.topics)), request.validate_only)
    answer = await make_partitions(context.services, command, timeout_ms=request.timeout_ms)
    if isinstance(answer, Refused):
        return _refuse_all(request, answer.error_code, answer.message)
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=one.name or "", error_code=one.error_code, error_message=one.message
            )
            for one in answer.topics
        ]
    )


def _wanted(topic: CreatePartitionsTopic) -> MorePartitions:
    assignments = None
    if topic.assignments is not None:
        assignments = tuple(tuple(map(BrokerId, one.broker_ids)) for one in topic.assignments)
    return MorePartitions(topic=topic.name, count=topic.count, assignments=assignments)


def _refuse_all(
    request: CreatePartitionsRequest, code: int, message: str
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=topic.name, error_code=code, error_message=message or None
            )
            for topic in request.topics
        ]
    )
