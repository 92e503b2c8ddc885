"""The console's pages: / (outages and brokers), /topics, /topics/NAME.

How:    each request renders the same facts as `/v1`, from this broker alone. A list shows at most
        `ROW_COUNT_MAX` rows, unhealthy ones first: a browser must draw and a reader find them.
Owns:   nothing.
Source: decision 0036."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

from strandline.admin import facts
from strandline.admin.console.rendering import REFRESHED, Rendering
from strandline.admin.console.rows import chosen, moment, partition_row, places_of
from strandline.admin.http_server import Answer
from strandline.admin.last_page import LastPage
from strandline.admin.pace import Pace
from strandline.broker.broker import Broker
from strandline.client.operations.zone_rows import (
    UNLABELLED,
    heard_lines,
    rows_of,
    summary_lines,
)
from strandline.controller.outages.voting import meaning

ROW_COUNT_MAX = 1_000
NOT_READY = b"This broker does not serve clients yet, and shows nothing before it does.\n"


class Console:
    """See the module. `is_ready`: whether the broker serves clients, and so knows the cluster."""

    def __init__(self, broker: Broker, last: LastPage, *, is_ready: Callable[[], bool]) -> None:
        self._broker = broker
        self._last = last
        self._is_ready = is_ready
        self._rendering = Rendering()

    async def index(self) -> Answer:
        """/"""
        return await self._fresh("/", self._index)

    async def topics(self) -> Answer:
        """/topics"""
        return await self._fresh("/topics", self._topics)

    async def topic(self, name: str) -> Answer:
        """/topics/NAME"""
        return await self._fresh(f"/topics/{name}", lambda: self._topic(name))

    # ---- how it is shown -------------------------------------------------------------------------

    async def _fresh(self, page: str, make: Callable[[], Awaitable[Answer]]) -> Answer:
        if not self._is_ready():
            return Answer([NOT_READY], HTTPStatus.SERVICE_UNAVAILABLE, headers=(REFRESHED,))
        return await self._last.fresh(page, make)

    async def _show(
        self,
        template: str,
        values: Mapping[str, object],
        pace: Pace,
        *,
        status: HTTPStatus = HTTPStatus.OK,
    ) -> Answer:
        services = self._broker.services
        everywhere = {
            "self_id": services.broker_id,
            "cluster": services.cluster.cluster_id,
            "controller": facts.controller_of(services),
            "now": moment(services.clock.wall_ms()),
        }
        return await self._rendering.page(template, {**everywhere, **values}, pace, status=status)

    # ---- what is shown ---------------------------------------------------------------------------

    async def _index(self) -> Answer:
        brokers = facts.brokers_of(self._broker)
        outages = facts.outages_of(self._broker.services)
        values: dict[str, object] = {"brokers": brokers}
        if isinstance(outages, facts.NotKnown):
            asked = next((one for one in brokers if one.id == outages.controller), None)
            values |= {"outages": None, "asked": asked}
        else:
            found = outages.found
            weakened = outages.weakened.items()
            values |= {
                "outages": found,
                "calm": " ".join(summary_lines(found)),
                "heard_lines": list(heard_lines(found)),
                "zones": rows_of(found),
                "unlabelled": UNLABELLED,
                "weakened": [(kind, meaning(kind), count) for kind, count in weakened],
            }
        return await self._show("index.html", values, Pace())

    async def _topics(self) -> Answer:
        services, pace = self._broker.services, Pace()
        topics = await facts.topics_of(services, pace)
        total, partition_count = facts.Counts(), 0
        ailing: list[facts.TopicFacts] = []
        well: list[facts.TopicFacts] = []
        for position, one in enumerate(topics):
            if position % facts.STEP == 0:
                await pace.rest()
            total.add(one.counts)
            partition_count += one.partition_count
            (well if one.counts.is_well else ailing).append(one)
        values = {
            "topics": [*ailing, *well][:ROW_COUNT_MAX],
            "topic_count": len(topics),
            "partition_count": partition_count,
            "total": total,
        }
        return await self._show("topics.html", values, pace)

    async def _topic(self, name: str) -> Answer:
        services, pace = self._broker.services, Pace()
        topic = services.cluster.topics.get(name)
        if topic is None:
            missing = HTTPStatus.NOT_FOUND
            return await self._show("missing.html", {"name": name}, pace, status=missing)
        listed, ailing = await facts.topic_of(services, topic, pace)
        places = places_of(facts.brokers_of(self._broker))
        rows = []
        for position, one in enumerate(chosen(topic, ailing, ROW_COUNT_MAX)):
            if position % facts.STEP == 0:
                await pace.rest()
            rows.append(partition_row(facts.partition_of(services, one), places))
        return await self._show("topic.html", {"topic": listed, "partitions": rows}, pace)
