"""Takes a frame to its handler: header, version checks, errors.

Why:    every way in (sockets, the simulator, tests) shares one place that judges requests, and no
        request can end the broker.
How:    an unknown API or version, an undecodable or endless body  --> ProtocolError: the connection
                  is closed
        ApiVersions in an unknown version  --> answered in version 0 with error 35, and the one row
                  that a client needs to try again
        an exception in a handler  --> logged under a cause id, and answered UNKNOWN_SERVER_ERROR;
                  if the response has no place for an error, the connection is closed
Owns:   the tasks of cold handlers.
Source: kafka-protocol reference 8.4 and 8.6; reliability reference 4."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import NamedTuple

from strandline.base.errors import ApiError, ProtocolError
from strandline.broker.access.changes import audit_changes, audit_failure
from strandline.broker.access.requirements import require, require_row
from strandline.broker.context import API_VERSIONS_KEY, AnswerSink, RequestContext, Services
from strandline.broker.handler_kinds import Cold, Handler, Hot
from strandline.broker.quotas.timed_steps import TimedSteps
from strandline.broker.server.request_limits import ITEM_COUNT_MAX
from strandline.protocol.apis import API_KEYS, APIS, Api
from strandline.protocol.codec import decode, encode
from strandline.protocol.errors import Error
from strandline.protocol.headers import decode_request_header
from strandline.protocol.table import Message, columns
from strandline.security.session import Session

BEFORE_LOGIN = frozenset(
    API_KEYS[name] for name in ("ApiVersions", "SaslHandshake", "SaslAuthenticate")
)
"""The keys of the APIs that a client may use before it has logged in."""

_log = logging.getLogger("strandline.broker")


class _Served(NamedTuple):
    """An API that is offered, in these versions; its handler."""

    api: Api
    min_version: int
    max_version: int
    handler: Handler


class Router:
    """See the module. `handlers`: {API key: handler}; other APIs are refused."""

    def __init__(self, services: Services, handlers: Mapping[int, Handler]) -> None:
        self._services = services
        self._served: dict[int, _Served] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure_count = 0
        services.on_failure = self._on_failure
        services.offered_apis = {}
        for key in sorted(handlers):
            api, handler = APIS[key], handlers[key]
            require_row(api.name)
            limit = handler.max_version
            max_version = api.max_version if limit is None else limit
            self._served[key] = _Served(api, api.served_min, max_version, handler)
            services.offered_apis[key] = (api.advertised_min, max_version)

    def route(self, frame: memoryview, sink: AnswerSink) -> RequestContext:
        """Hand the request in `frame` (without its length) to its handler, which may have answered
        by then. Raises ProtocolError as `open` and `run` do."""
        context = self.open(frame, sink)
        self.run(context)
        return context

    def open(self, frame: memoryview, sink: AnswerSink) -> RequestContext:
        """The request in `frame` (without its length), not yet running. Raises ProtocolError."""
        header, position = decode_request_header(frame)
        served = self._served.get(header.api_key)
        if served is None:
            raise ProtocolError(f"API key {header.api_key} is not offered here")
        api = served.api
        session = sink.session
        if (
            not session.is_authenticated or session.ends_at_ms is not None
        ) and header.api_key not in BEFORE_LOGIN:
            self._require_login(session, api.name)
        if (
            not served.min_version <= header.api_version <= served.max_version
            and header.api_key != API_VERSIONS_KEY
        ):
            raise ProtocolError(f"{api.name} version {header.api_version} is not offered here")
        return RequestContext(
            api,
            header.api_version,
            header.correlation_id,
            header.client_id,
            self._services,
            sink,
            frame,
            position,
            len(frame),
        )

    def _require_login(self, session: Session, api: str) -> None:
        """Raise ProtocolError if the client must log in, for the first time or again."""
        if not session.is_authenticated:
            raise ProtocolError(f"{api} came before a login")
        if session.is_over(self._services.clock.monotonic_ms()):
            raise ProtocolError(f"{api} of {session.principal} came after the end of its login")

    def run(self, context: RequestContext) -> None:
        """Hand the request to its handler. Raises ProtocolError when its body cannot be decoded, or
        names too much."""
        handler = self._served[context.api.key].handler
        begin_ns = 0
        try:
            if self._services.cluster.access.quotas:
                self._services.quotas.admit(context)
                if context.limits is not None:
                    begin_ns = context.limits.now_ns()
            if type(handler) is Hot:
                handler.start(context)
            elif type(handler) is Cold:
                self._start_task(handler, context)
        except ProtocolError:
            raise
        except Exception:  # A task boundary: one request may fail, the broker may not.
            context.fail()
        if context.limits is not None:
            context.limits.charge(context, begin_ns)

    def stop(self) -> None:
        """End the handlers that run."""
        for task in list(self._tasks):
            task.cancel()

    def _start_task(self, handler: Cold, context: RequestContext) -> None:
        assert context.frame is not None
        api = context.api
        request, _ = decode(
            api.request,
            context.frame,
            context.position,
            context.api_version,
            items_max=ITEM_COUNT_MAX,
        )
        try:
            require(context, request)
        except ApiError as error:
            if handler.refuse is None:
                self._respond_error(context, error.code, error.message)
            else:
                self._respond(context, handler.refuse(request, error))
            return
        steps: Coroutine[None, None, None] = self._run_cold(handler, request, context)
        limits = context.limits
        if limits is not None:
            steps = TimedSteps(steps, now_ns=limits.now_ns, charge=partial(limits.charge, context))
        task = asyncio.get_running_loop().create_task(steps)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_cold(self, handler: Cold, request: Message, context: RequestContext) -> None:
        try:
            response = await handler.handle(request, context)
            audit_changes(context, request, response)
            self._respond(context, response)
        except ApiError as error:
            audit_failure(context, request, error.code)
            self._respond_error(context, error.code, error.message)
        except Exception:  # A task boundary: one request may fail, the broker may not.
            context.fail()

    def _respond(self, context: RequestContext, response: Message) -> None:
        if context.throttle_ms and "throttle_time_ms" in response.__struct_fields__:
            response.throttle_time_ms = context.throttle_ms  # type: ignore[attr-defined]
        body = encode(response, context.api_version)
        context.respond((body,))

    def _on_failure(self, context: RequestContext) -> None:
        """Log the failure under an id that the client sees, too."""
        self._failure_count += 1
        cause = f"{self._services.broker_id}-{self._failure_count}"
        _log.exception(
            "%s v%d from %s failed, cause id %s",
            context.api.name,
            context.api_version,
            context.client_host,
            cause,
        )
        if not context.is_answered and not context.is_abandoned:
            self._respond_error(
                context, Error.UNKNOWN_SERVER_ERROR, f"see the log, cause id {cause}"
            )

    def _respond_error(self, context: RequestContext, code: int, message: str) -> None:
        fields = {
            column.name
            for column in columns(context.api.response)
            if column.versions.has(context.api_version)
        }
        if "error_code" not in fields:
            context.close(f"{context.api.name} failed: {message}")
            return
        response = context.api.response(error_code=code)
        if "error_message" in fields:
            response.error_message = message  # type: ignore[attr-defined]
        self._respond(context, response)
