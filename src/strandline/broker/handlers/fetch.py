"""Fetch: decodes the question, lets a `FetchCall` answer it, now or when there is enough to read.

Why:    consumers live on long polls; a fetch that finds too little is parked, not a task.
How:    every answer carries session 0, which is how a broker says that it keeps no fetch sessions;
        a client that names one gets FETCH_SESSION_ID_NOT_FOUND and sends a full request.
Source: KIP-227 (sessions); `broker.fetching` for the reading."""

from strandline.broker.context import RequestContext
from strandline.broker.fetching import FetchCall
from strandline.protocol.errors import Error
from strandline.protocol.fast_fetch import decode_request, encode_response
from strandline.protocol.messages.fetch import FetchResponse

NO_SESSION = 0
NEW_SESSION_EPOCH = 0
FINAL_SESSION_EPOCH = -1


def start(context: RequestContext) -> None:
    """Begin; answers now or later."""
    assert context.frame is not None
    request, _ = decode_request(context.frame, context.position, context.api_version)
    context.frame = None  # A parked fetch needs no memory.
    if request.session_id != NO_SESSION and request.session_epoch not in (
        NEW_SESSION_EPOCH,
        FINAL_SESSION_EPOCH,
    ):
        response = FetchResponse(error_code=Error.FETCH_SESSION_ID_NOT_FOUND)
        context.respond(encode_response(response, context.api_version))
        return
    FetchCall(context, request).start()
