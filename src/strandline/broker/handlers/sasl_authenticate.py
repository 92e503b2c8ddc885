"""SaslAuthenticate: one step of a login.

How:    The last step gives the connection its session. After a failure the answer comes late, and
        the connection is closed behind it. Requests that are in work go on while a client logs in
        again; it must be the same user.
Source: KIP-152, KIP-368."""

from dataclasses import replace

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.protocol.errors import Error
from strandline.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from strandline.security.audit.event import EventKind
from strandline.security.sasl.mechanism import Mechanism
from strandline.security.session import Principal

UNKNOWN_USER = "unknown"
CLOSED_AFTER_MS = 100
"""The answer has so long to reach the client before the connection is closed."""


async def handle(
    request: SaslAuthenticateRequest, context: RequestContext
) -> SaslAuthenticateResponse:
    """Go on with the exchange."""
    services, sink = context.services, context.sink
    exchange, sink.exchange = sink.exchange, None
    try:
        if exchange is None or sink.is_logging_in:
            raise ApiError(Error.ILLEGAL_SASL_STATE, "SaslHandshake comes first.")
        sink.is_logging_in = True
        answer = await services.logins.step(exchange, request.auth_bytes, context.session)
        sink.is_logging_in = False
        if exchange.principal is None:
            if exchange.is_refused:
                _audit(context, exchange, is_allowed=False)
            sink.exchange = exchange
            return SaslAuthenticateResponse(error_message=None, auth_bytes=answer)
        lifetime_ms = _log_in(context, exchange)
    except ApiError as error:
        if exchange is not None and not exchange.is_refused:
            _audit(context, exchange, is_allowed=False)
        services.clock.call_later(CLOSED_AFTER_MS, lambda: sink.close("its login failed"))
        return SaslAuthenticateResponse(error_code=error.code, error_message=error.message)
    _audit(context, exchange, is_allowed=True)
    return SaslAuthenticateResponse(
        error_message=None, auth_bytes=answer, session_lifetime_ms=lifetime_ms
    )


def _audit(context: RequestContext, exchange: Mechanism, *, is_allowed: bool) -> None:
    """The audit log's line: of a failure, it names a user only if there is one of the name."""
    user = str(Principal.user(exchange.known_user)) if exchange.known_user else UNKNOWN_USER
    context.audit(
        EventKind.LOGIN,
        is_allowed=is_allowed,
        principal=str(exchange.principal or user),
        mechanism=exchange.name,
    )


def _log_in(context: RequestContext, exchange: Mechanism) -> int:
    """Give the connection its session; how long that lasts, 0 for no end."""
    session = context.session
    assert exchange.principal is not None
    if session.is_authenticated and session.principal != exchange.principal:
        raise ApiError(
            Error.SASL_AUTHENTICATION_FAILED,
            f"This connection is of {session.principal}; another user needs another one.",
        )
    services = context.services
    limits_ms = (services.logins.session_ms(session), exchange.lifetime_ms or 0)
    lifetime_ms = min((one for one in limits_ms if one > 0), default=0)
    ends_at_ms = services.clock.monotonic_ms() + lifetime_ms if lifetime_ms else None
    context.sink.authenticate(
        replace(
            session,
            principal=exchange.principal,
            mechanism=exchange.name,
            groups=exchange.groups,
            is_authenticated=True,
            ends_at_ms=ends_at_ms,
        )
    )
    return lifetime_ms
