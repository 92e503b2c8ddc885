"""What a console shows, as JSON over HTTP: brokers, topics with who votes and observes, outages.

Why:    a console, a script or a status page asks one port, and speaks no Kafka.
How:    /v1/brokers        who there is, and who is heard by this broker
        /v1/topics         the names
        /v1/topics/NAME    who votes and who observes, of each partition; how far each replica is,
                           of those that are led here
        /v1/outages        what is down, held and ruled; the controller alone knows, others answer
                           503 and say who it is
        Everything is looked up when it is asked for, in slices, one page at a time; who asks within
        a second of the last one for the same gets the same. The fields are those of the `--json` of
        `zone status` and `replica status`, by the same functions.
Owns:   the last page.
Source: decision 0036."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus

import msgspec

from strandline.admin.http_server import Answer
from strandline.admin.pace import Pace
from strandline.base.errors import ApiError
from strandline.base.json_value import Json
from strandline.broker.broker import Broker
from strandline.broker.context import Services
from strandline.broker.handlers.describe_replica_status import describe as describe_replicas
from strandline.broker.handlers.describe_zones import describe as describe_outages
from strandline.broker.handlers.metadata import controller_id, offline_replicas
from strandline.broker.partitions import is_alive, present_leader
from strandline.client import replica_status, zones
from strandline.controller.names import is_internal
from strandline.model.cluster import Partition, Topic
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.replication.replica import Replica

JSON = "application/json"
FRESH_MS = 1_000
STEP = 20
"""After so many partitions it is looked whether the slice is over."""
PART_BYTES = 64 * 1024
"""A body is sent, and compressed, in parts of about so much."""


class Api:
    """See the module. `is_ready`: whether the broker serves clients, and so knows the cluster."""

    def __init__(self, broker: Broker, *, is_ready: Callable[[], bool]) -> None:
        self._broker = broker
        self._is_ready = is_ready
        self._turn = asyncio.Lock()
        # (what was asked for, when it was made, what it was)
        self._last: tuple[str, int, Answer] | None = None

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
        async with self._turn:
            now = self._broker.services.clock.monotonic_ms()
            if self._last is not None:
                last, made_ms, answer = self._last
                if last == page and now - made_ms < FRESH_MS:
                    return answer
            answer = await make()
            self._last = page, now, answer
            return answer

    # ---- what is told ----------------------------------------------------------------------------

    async def _brokers(self) -> Answer:
        services, replication = self._broker.services, self._broker.replication
        told: list[Json] = []
        for _, one in sorted(services.cluster.brokers.items()):
            is_heard = is_alive(services, one.id)
            round_trip_ms = replication.round_trip_ms(one.id) if is_heard else None
            told.append(
                {
                    "id": one.id,
                    "host": one.kafka.host,
                    "port": one.kafka.port,
                    "region": one.labels.region or None,
                    "zone": one.labels.zone or None,
                    "rack": one.labels.rack or None,
                    "is_heard": is_heard,
                    "round_trip_ms": 0 if one.id == services.broker_id else round_trip_ms,
                }
            )
        return _answer(
            {
                "cluster": services.cluster.cluster_id,
                "told_by": services.broker_id,
                "controller": _known(controller_id(services)),
                "brokers": told,
            }
        )

    async def _topics(self) -> Answer:
        services = self._broker.services
        return await _listed(
            {"told_by": services.broker_id},
            "topics",
            (_listing(topic) for _, topic in sorted(services.cluster.topics.items())),
        )

    async def _topic(self, name: str) -> Answer:
        services = self._broker.services
        topic = services.cluster.topics.get(name)
        if topic is None:
            return _answer({"error": f"there is no topic {name}"}, HTTPStatus.NOT_FOUND)
        return await _listed(
            {"told_by": services.broker_id, **_listing(topic)},
            "partitions",
            (_partition(services, one) for one in list(topic.partitions)),
        )

    async def _outages(self) -> Answer:
        services = self._broker.services
        try:
            found = describe_outages(services)
        except ApiError:
            controller = controller_id(services)
            is_here = controller == services.broker_id
            why = "this broker has not looked yet" if is_here else "ask the controller"
            told: Json = {"error": why, "controller": _known(controller)}
            return _answer(told, HTTPStatus.SERVICE_UNAVAILABLE)
        weakened = services.balancing.outages.voting.counts
        return _answer(
            {
                "told_by": services.broker_id,
                **zones.told_of(found),
                "weakened_partitions": {str(kind): count for kind, count in weakened.items()},
            }
        )


def _listing(topic: Topic) -> dict[str, Json]:
    return {
        "name": topic.name,
        "id": str(topic.id),
        "partition_count": len(topic.partitions),
        "is_internal": is_internal(topic.name),
    }


def _partition(services: Services, partition: Partition) -> Json:
    """Roles, as every broker knows them; how far replicas are, as their leader does."""
    replica = services.replication.replicas.get(partition.group)
    leader, epoch = present_leader(services, partition)
    if replica is not None and _has_given_up(replica, leader, epoch):
        leader = NO_BROKER
    status = None
    if leader == services.broker_id:
        answer = describe_replicas(services, partition.topic, partition.index)
        if not answer.error_code:
            one = replica_status.PartitionStatus(
                partition.topic, partition.index, leader, is_internal(partition.topic), answer
            )
            status = replica_status.told_of(one, one.replicas)
    return {
        "partition": partition.index,
        "leader": _known(leader),
        "voters": list(partition.replicas),
        "observers": list(partition.observers),
        "voting": list(partition.voters),
        "voting_next": list(partition.pending),
        "is_fenced": partition.is_fenced,
        "offline": offline_replicas(services, partition),
        "target_voters": list(partition.target),
        "target_observers": list(partition.target_observers),
        "losses_declared": len(partition.losses),
        "has_failed_here": replica is not None and replica.failed is not None,
        "status": status,
    }


def _has_given_up(replica: Replica, leader: BrokerId, epoch: int) -> bool:
    """Whether who was announced as the leader of that epoch leads no more, as is known here: such
    an announcement stays until there is another one."""
    if leader == replica.leader_id:
        return False
    return leader == replica.self_id or (replica.failed is None and replica.epoch >= epoch)


def _known(broker: BrokerId) -> int | None:
    return None if broker == NO_BROKER else broker


def _answer(told: Json, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    return Answer([msgspec.json.encode(told), b"\n"], status, JSON)


async def _listed(head: dict[str, Json], key: str, elements: Iterable[Json]) -> Answer:
    """An object with one long list at its end, made in slices."""
    parts, pace = [bytearray(msgspec.json.encode(head)[:-1] + f',"{key}":['.encode())], Pace()
    for position, element in enumerate(elements):
        if position % STEP == 0:
            await pace.rest()
        if len(parts[-1]) >= PART_BYTES:
            parts.append(bytearray())
        parts[-1] += b"," * (position > 0) + msgspec.json.encode(element)
    parts[-1] += b"]}\n"
    return Answer([bytes(part) for part in parts], content_type=JSON)
