"""Requests that open, continue or end a fetch session.

How:    a full request ends the session that it names; with epoch 0 it opens another one with its
        answer. A later request is read as if it named everything in its session, and only the news
        of the answer is sent. A client that is over a quota is answered at once, without records.
Source: KIP-227; `broker.fetch.sessions`."""

from __future__ import annotations

from functools import partial
from weakref import ref

from strandline.broker.context import RequestContext, Services
from strandline.broker.fetch.fetching import TOPIC_IDS_SINCE_VERSION, FetchCall
from strandline.broker.fetch.sessions import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    NO_SESSION,
    FetchSession,
    refusal,
)
from strandline.broker.partitions import topic_by_id
from strandline.protocol.errors import Error
from strandline.protocol.fast_fetch import encode_response
from strandline.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)


def start_in_session(context: RequestContext, request: FetchRequest) -> None:
    """Answer now or later."""
    forgotten = request.forgotten_topics_data
    sessions = context.services.fetch_sessions
    session = sessions.find(request.session_id)
    if session is not None and session.owner != str(context.session.principal):
        session = None
    if request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH):
        if session is not None:
            sessions.close(session.id)
        if context.throttle_ms:
            answer_throttled(context)
        elif request.session_epoch == FINAL_EPOCH:
            FetchCall(context, request).start()
        else:
            FetchCall(context, request, partial(_open, context, request)).start()
        return
    uses_ids = context.api_version >= TOPIC_IDS_SINCE_VERSION
    error = refusal(session, epoch=request.session_epoch, uses_ids=uses_ids)
    if session is not None and error is Error.NONE:
        error = sessions.change(session, request.topics, forgotten)
    if session is None or error is not Error.NONE:
        response = FetchResponse(error_code=error, throttle_time_ms=context.throttle_ms)
        context.respond(encode_response(response, context.api_version))
    elif context.throttle_ms:
        answer_throttled(context, session_id=session.id)
    elif not session.partition_count:
        FetchCall(context, request).start()
    else:
        if uses_ids:
            _name(session, request.topics, context.services)
        request.topics = session.requested()
        call = FetchCall(context, request, partial(_continue, session, session.epoch))
        session.last = ref(call)
        call.start()


def answer_throttled(context: RequestContext, *, session_id: int = NO_SESSION) -> None:
    """Answer at once and without records: the client is over a quota. A full request opens no
    session then."""
    response = FetchResponse(throttle_time_ms=context.throttle_ms, session_id=session_id)
    context.respond(encode_response(response, context.api_version))


def _open(
    context: RequestContext, request: FetchRequest, answers: list[FetchableTopicResponse]
) -> FetchResponse:
    services = context.services
    uses_ids = context.api_version >= TOPIC_IDS_SINCE_VERSION
    session_id = services.fetch_sessions.open(
        answers, request.topics, uses_ids=uses_ids, owner=str(context.session.principal)
    )
    session = services.fetch_sessions.find(session_id)
    if session is not None and uses_ids:
        _name(session, request.topics, services)
    return FetchResponse(session_id=session_id, responses=answers)


def _continue(
    session: FetchSession,
    epoch: int,
    answers: list[FetchableTopicResponse],
) -> FetchResponse:
    """The answer to the request that made this the session's `epoch`."""
    if session.epoch != epoch:
        # Another request has gone on with the session while this one waited.
        return FetchResponse(error_code=Error.INVALID_FETCH_SESSION_EPOCH)
    return FetchResponse(session_id=session.id, responses=session.news(answers))


def _name(session: FetchSession, added: list[FetchTopic], services: Services) -> None:
    """Keep the names of topics: if one is deleted and made again, its old id is inconsistent."""
    for one in added:
        topic = topic_by_id(services, one.topic_id)
        if topic is not None and one.topic_id in session.topics:
            session.names[one.topic_id] = topic.name
