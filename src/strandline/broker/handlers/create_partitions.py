"""CreatePartitions: more partitions for topics that exist.

Source: KIP-195."""

from strandline.base.errors import ApiError
from strandline.broker.awaiting import wait_for_leaders
from strandline.broker.context import RequestContext
from strandline.controller.commands import CreatePartitions, MorePartitions, TopicResults
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
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
    services = context.services
    command = CreatePartitions(tuple(map(_wanted, request.topics)), request.validate_only)
    try:
        answer = await services.controller.submit(command)
    except ApiError as error:
        return _refuse_all(request, error.code, error.message)
    if not isinstance(answer, TopicResults):
        return _refuse_all(request, answer.error_code, getattr(answer, "message", ""))
    extended = [r.name for r in answer.topics if r.error_code == Error.NONE and r.name is not None]
    if not request.validate_only:
        await wait_for_leaders(services, extended, timeout_ms=request.timeout_ms)
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
