"""DeleteTopics: by name, or by id from version 6.

Source: KIP-516."""

from strandline.base.errors import ApiError
from strandline.broker.access.requirements import REFUSED
from strandline.broker.context import RequestContext
from strandline.broker.quotas.mutations import spend_mutations
from strandline.controller.commands import (
    DeleteTopics,
    TopicResult,
    TopicResults,
    TopicToDelete,
)
from strandline.model.access import CLUSTER_NAME, Kind, Operation
from strandline.protocol.errors import Error
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
    wanted, refused = _split_forbidden(context, wanted)
    wanted, throttled = _split_throttled(context, wanted)
    refused += throttled
    answered: tuple[TopicResult, ...] = ()
    if wanted or not refused:
        try:
            answered = (await context.services.obtain(DeleteTopics(wanted), TopicResults)).topics
        except ApiError as error:
            answered = tuple(_refused(one, error.code, error.message) for one in wanted)
    names_may_be_null = context.api_version >= STATES_SINCE_VERSION
    return DeleteTopicsResponse(
        responses=[
            _result(one, names_may_be_null=names_may_be_null) for one in (*answered, *refused)
        ]
    )


def _split_forbidden(
    context: RequestContext, wanted: tuple[TopicToDelete, ...]
) -> tuple[tuple[TopicToDelete, ...], list[TopicResult]]:
    """The topics that the client may delete, and the answers for the others: a right to the cluster
    is about all topics, and only a client that may describe a topic learns that there is none, or
    the name of an id. With rules in force, an id that is not known here is of no topic: the
    controller may know it, but not its rules."""
    topics, names = context.services.cluster.topics, context.services.cluster.topic_names
    is_enforced = context.services.access.is_enforced
    deletes_any = context.sees(Operation.DELETE, Kind.CLUSTER, CLUSTER_NAME)
    allowed: list[TopicToDelete] = []
    refused: list[TopicResult] = []
    for one in wanted:
        name = names.get(one.id) if one.name is None else one.name
        if name is None and is_enforced:
            refused.append(_refused(one, Error.UNKNOWN_TOPIC_ID, ""))
        elif name is None or deletes_any or context.may(Operation.DELETE, Kind.TOPIC, name):
            allowed.append(one)
        elif not context.sees(Operation.DESCRIBE, Kind.TOPIC, name):
            refused.append(_refused(one, Error.TOPIC_AUTHORIZATION_FAILED, REFUSED))
        elif name not in topics:
            refused.append(_refused(one, Error.UNKNOWN_TOPIC_OR_PARTITION, ""))
        else:
            described = one if one.name else TopicToDelete(name, one.id)
            refused.append(_refused(described, Error.TOPIC_AUTHORIZATION_FAILED, REFUSED))
    return tuple(allowed), refused


def _split_throttled(
    context: RequestContext, wanted: tuple[TopicToDelete, ...]
) -> tuple[tuple[TopicToDelete, ...], list[TopicResult]]:
    """The topics that the client has tokens for, and the answers for the others."""
    cluster = context.services.cluster
    allowed: list[TopicToDelete] = []
    refused: list[TopicResult] = []
    spent: set[str | None] = set()  # A name that is repeated takes its tokens once.
    for one in wanted:
        name = cluster.topic_names.get(one.id) if one.name is None else one.name
        topic = None if name is None else cluster.topics.get(name)
        try:
            if name not in spent:
                spend_mutations(context, 0 if topic is None else len(topic.partitions))
                spent.add(name)
        except ApiError as error:
            refused.append(_refused(one, error.code, error.message))
        else:
            allowed.append(one)
    return tuple(allowed), refused


def _result(result: TopicResult, *, names_may_be_null: bool) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=result.name if names_may_be_null else result.name or "",
        topic_id=result.id,
        error_code=result.error_code,
        error_message=result.message,
    )


def _refused(wanted: TopicToDelete, code: int, message: str) -> TopicResult:
    return TopicResult(name=wanted.name, id=wanted.id, error_code=code, message=message or None)
