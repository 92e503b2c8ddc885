"""Fetch: what consumers read, now or when there is enough of it.

Why:    consumers live on long polls; a fetch that finds too little is parked, not a task.
How:    A `FetchCall` answers a client that wants no session; `session_requests` has the others. A
        partition that is named twice is answered once, as in Kafka; the check runs only if more
        partitions are named than exist, or a session is opened.
Source: KIP-227 (sessions); `broker.fetch.fetching` for the reading."""

from uuid import UUID

from strandline.broker.context import RequestContext
from strandline.broker.fetch.fetching import FetchCall
from strandline.broker.fetch.session_requests import answer_throttled, start_in_session
from strandline.broker.fetch.sessions import FINAL_EPOCH, FIRST_EPOCH, NO_SESSION
from strandline.broker.quotas.crossings import judge_fetch
from strandline.broker.server.request_limits import ITEM_COUNT_MAX, distinct
from strandline.protocol.fast_fetch import decode_request
from strandline.protocol.messages.fetch import FetchRequest, FetchTopic


def start(context: RequestContext) -> None:
    """Begin; answers now or later."""
    assert context.frame is not None
    request, _ = decode_request(
        context.frame, context.position, context.api_version, items_max=ITEM_COUNT_MAX
    )
    context.frame = None  # A parked fetch needs no memory.
    judge_fetch(context, request)
    requested_count = sum([len(topic.partitions) for topic in request.topics])
    exist = len(context.services.cluster.groups)
    if requested_count > exist or request.session_epoch == FIRST_EPOCH:
        _drop_repeated(request)
    if request.session_epoch == FINAL_EPOCH and request.session_id == NO_SESSION:
        if context.throttle_ms:
            answer_throttled(context)
            return
        FetchCall(context, request).start()
    else:
        start_in_session(context, request)


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
