"""SaslHandshake: the client names the mechanism of its login.

How:    a listener without logins answers ILLEGAL_SASL_STATE, and so does any while a step of a
        login is in work. One without the mechanism names those that it has. A client that logs in
        again keeps its mechanism's kind of user: the principal may not change
        (`sasl_authenticate`).
Source: KIP-43, KIP-152, KIP-368."""

from strandline.broker.context import RequestContext
from strandline.protocol.errors import Error
from strandline.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)


async def handle(request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse:
    """Begin an exchange."""
    logins = context.services.logins
    offered = logins.mechanisms(context.session)
    if not offered or context.sink.is_logging_in:
        return SaslHandshakeResponse(error_code=Error.ILLEGAL_SASL_STATE)
    if request.mechanism not in offered:
        return SaslHandshakeResponse(
            error_code=Error.UNSUPPORTED_SASL_MECHANISM, mechanisms=list(offered)
        )
    context.sink.exchange = logins.begin(request.mechanism)
    return SaslHandshakeResponse(mechanisms=list(offered))
