"""The two kinds of handlers, and how the router runs each.

Why:    most requests are rare, and a task each is simple; produce and fetch would lose too much.
Source: design section 5."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from strandline.broker.context import RequestContext
from strandline.protocol.table import Message


@dataclass(frozen=True, slots=True)
class Cold:
    """A handler that runs as a task: `async def handle(request, context) -> response`.

    An ApiError that it raises becomes the response's `error_code`, where the response has one.
    `max_version`: the highest that is offered, where that is not the highest there is.
    `refuse`: from a request and an error its answer to a client without the right, where an
    `error_code` alone does not say it."""

    handle: Callable[..., Awaitable[Message]]
    max_version: int | None = None
    refuse: Callable[..., Message] | None = None


@dataclass(frozen=True, slots=True)
class Hot:
    """A handler without a task: decodes `context.frame` and answers by `context.respond`."""

    start: Callable[[RequestContext], None]
    max_version: int | None = None


Handler = Cold | Hot
