"""Which handler serves which API: the one table, from which ApiVersions is answered too.

Why:    what is advertised is exactly what is served.
How:    API key -> `Cold(handle)` or `Hot(start)` (see `context`). An API without a row is refused
        by the router, and clients do not see it. Versions are those of `protocol.apis.APIS`.
Source: STYLE, rule 4."""

from strandline.broker.context import Handler

HANDLERS: dict[int, Handler] = {}
