"""One file per Kafka API, named as the API is.

Map:    a *cold* API's file has `async def handle(request, context) -> response`; a *hot* one's has
        `def start(context) -> None`, which answers by `context.respond` now or later, without a
        task. `broker.handler_table` is the table of both.
Source: STYLE, rule 7."""
