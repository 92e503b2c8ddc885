"""Fetch: decodes the request; a `FetchCall` answers it now, or when there is enough to read.

Why:    consumers live on long polls; a fetch that finds too little is parked, not a task.
How:    Every answer carries session 0: this broker keeps no fetch sessions. A client that names a
        session gets FETCH_SESSION_ID_NOT_FOUND and sends a full request. A partition that is named
        twice is answered once, as in Kafka; the check runs only if more partitions are named than
        exist.
Source: KIP-227 (sessions); `broker.fetch.fetching` for the reading."""

from uuid import UUID

from strandline.broker.context import RequestContext
from strandline.broker.fetch.fetching import FetchCall
from strandline.broker.server.request_limits import distinct, require_few
from strandline.protocol.errors import Error
from strandline.protocol.fast_fetch import decode_request, encode_response
from strandline.protocol.messages.fetch import FetchRequest, FetchResponse, FetchTopic

NO_SESSION = 0
NEW_SESSION_EPOCH = 0
FINAL_SESSION_EPOCH = -1


def start(context: RequestContext) -> None:
    """Begin; answers now or later."""
    assert context.frame is not None
    request, _ = decode_request(context.frame, context.position, context.api_version)
    context.frame = None  # A parked fetch needs no memory.
    requested_count = sum([len(topic.partitions) for topic in request.topics])
    require_few(requested_count + len(request.topics))
    if requested_count > len(context.services.cluster.groups):
        _drop_repeated(request)
    if request.session_id != NO_SESSION and request.session_epoch not in (
        NEW_SESSION_EPOCH,
        FINAL_SESSION_EPOCH,
    ):
        response = FetchResponse(error_code=Error.FETCH_SESSION_ID_NOT_FOUND)
        context.respond(encode_response(response, context.api_version))
        return
    FetchCall(context, request).start()


def _drop_repeated(request: FetchRequest) -> None:
    """Drop partitions that are named again."""
    topics: dict[tuple[str, UUID], FetchTopic] = {}
    for topic in request.topics:
        known = topics.setdefault((topic.topic, topic.topic_id), topic)
        if known is not topic:
            known.partitions += topic.partitions
    for topic in topics.values():
        topic.partitions = distinct(topic.partitions, lambda one: one.partition)
    request.topics = list(topics.values())
