"""DeleteTopics: by name, or by id from version 6.

Source: KIP-516."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.controller.commands import (
    DeleteTopics,
    TopicResult,
    TopicResults,
    TopicToDelete,
)
from strandline.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

STATES_SINCE_VERSION = 6


async def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    """Delete the topics, each for itself."""
    if context.api_version >= STATES_SINCE_VERSION:
        wanted = tuple(TopicToDelete(one.name, one.topic_id) for one in request.topics)
    else:
        wanted = tuple(TopicToDelete(name) for name in request.topic_names)
    try:
        answer = await context.services.obtain(DeleteTopics(wanted), TopicResults)
    except ApiError as error:
        return _refuse_all(wanted, error.code, error.message)
    names_may_be_null = context.api_version >= STATES_SINCE_VERSION
    return DeleteTopicsResponse(
        responses=[_result(one, names_may_be_null=names_may_be_null) for one in answer.topics]
    )


def _result(result: TopicResult, *, names_may_be_null: bool) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=result.name if names_may_be_null else result.name or "",
        topic_id=result.id,
        error_code=result.error_code,
        error_message=result.message,
    )


def _refuse_all(wanted: tuple[TopicToDelete, ...], code: int, message: str) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=one.name, topic_id=one.id, error_code=code, error_message=message or None
            )
            for one in wanted
        ]
    )
