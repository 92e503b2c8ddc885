"""The JSON API over HTTP: brokers, topics with their voters and observers, outages.

Why:    a console, a script or a status page needs one port, and no Kafka client.
How:    /v1/brokers        all brokers, and which of them this broker hears
        /v1/topics         names, and counts of unhealthy partitions
        /v1/topics/NAME    voters and observers of each partition; for partitions led here, the
                           progress of each replica
        /v1/outages        outages, holds and rulings; from the controller only, other brokers
                           answer 503 and name it
        The data comes from `facts`, as for the console. The fields are those of `--json` of
        `zone status` and `replica status`, by the same functions.
Owns:   nothing.
Source: decision 0036."""

from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus

import msgspec

from strandline.admin import facts
from strandline.admin.http_server import Answer
from strandline.admin.last_page import LastPage
from strandline.admin.pace import Pace
from strandline.base.json_value import Json
from strandline.broker.broker import Broker
from strandline.client.operations import zones

JSON = "application/json"
PART_BYTES = 64 * 1024
"""A body is sent, and compressed, in parts of about so much."""


class Api:
    """See the module. `is_ready`: whether the broker serves clients, and so knows the cluster."""

    def __init__(self, broker: Broker, last: LastPage, *, is_ready: Callable[[], bool]) -> None:
        self._broker = broker
        self._last = last
        self._is_ready = is_ready

    async def brokers(self) -> Answer:
        """/v1/brokers"""
        return await self._fresh("brokers", self._brokers)

    async def topics(self) -> Answer:
        """/v1/topics"""
        return await self._fresh("topics", self._topics)

    async def topic(self, name: str) -> Answer:
        """/v1/topics/NAME"""
        return await self._fresh(f"topics/{name}", lambda: self._topic(name))

    async def outages(self) -> Answer:
        """/v1/outages"""
        return await self._fresh("outages", self._outages)

    # ---- how it is told --------------------------------------------------------------------------

    async def _fresh(self, page: str, make: Callable[[], Awaitable[Answer]]) -> Answer:
        if not self._is_ready():
            return _answer({"error": "not ready"}, HTTPStatus.SERVICE_UNAVAILABLE)
        return await self._last.fresh(f"v1/{page}", make)

    # ---- what is told ----------------------------------------------------------------------------

    async def _brokers(self) -> Answer:
        services = self._broker.services
        return _answer(
            {
                "cluster": services.cluster.cluster_id,
                "told_by": services.broker_id,
                "controller": facts.controller_of(services),
                "brokers": facts.brokers_of(self._broker),
            }
        )

    async def _topics(self) -> Answer:
        services, pace = self._broker.services, Pace()
        topics = await facts.topics_of(services, pace)
        return await _listed({"told_by": services.broker_id}, "topics", topics, pace)

    async def _topic(self, name: str) -> Answer:
        services, pace = self._broker.services, Pace()
        topic = services.cluster.topics.get(name)
        if topic is None:
            return _answer({"error": f"no topic {name}"}, HTTPStatus.NOT_FOUND)
        listed, _ = await facts.topic_of(services, topic, pace)
        partitions = list(topic.partitions)
        return await _listed(
            {"told_by": services.broker_id, **msgspec.to_builtins(listed)},
            "partitions",
            (facts.partition_json(facts.partition_of(services, one)) for one in partitions),
            pace,
        )

    async def _outages(self) -> Answer:
        services = self._broker.services
        outages = facts.outages_of(services)
        if isinstance(outages, facts.NotKnown):
            told: Json = {"error": outages.why, "controller": outages.controller}
            return _answer(told, HTTPStatus.SERVICE_UNAVAILABLE)
        return _answer(
            {
                "told_by": services.broker_id,
                **zones.zones_json(outages.found),
                "weakened_partitions": {str(kind): many for kind, many in outages.weakened.items()},
            }
        )


def _answer(told: object, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    return Answer([msgspec.json.encode(told), b"\n"], status, JSON)


async def _listed(
    head: dict[str, Json], key: str, elements: Iterable[object], pace: Pace
) -> Answer:
    """An object with one long list at its end, rendered in slices."""
    parts = [bytearray(msgspec.json.encode(head)[:-1] + f',"{key}":['.encode())]
    for position, element in enumerate(elements):
        if position % facts.STEP == 0:
            await pace.rest()
        if len(parts[-1]) >= PART_BYTES:
            parts.append(bytearray())
        parts[-1] += b"," * (position > 0) + msgspec.json.encode(element)
    parts[-1] += b"]}\n"
    return Answer([bytes(part) for part in parts], content_type=JSON)
