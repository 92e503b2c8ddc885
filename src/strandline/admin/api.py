"""What a console shows, as JSON over HTTP: brokers, topics with who votes and observes, outages.

Why:    a console, a script or a status page asks one port, and speaks no Kafka.
How:    /v1/brokers        who there is, and who is heard by this broker
        /v1/topics         the names
        /v1/topics/NAME    who votes and who observes, of each partition; how far each replica is,
                           of those that are led here
        /v1/outages        what is down, held and ruled; the controller alone knows, others answer
                           503 and say who it is
        Everything is looked up when it is asked for. The fields are those of the `--json` of
        `zone status` and `replica status`, by the same functions.
Owns:   nothing.
Source: decision 0036."""

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
from strandline.model.cluster import Partition
from strandline.model.ids import NO_BROKER, BrokerId

JSON = "application/json"
STEP = 20
"""After so many partitions it is looked whether the slice is over."""


class Api:
    """See the module."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def brokers(self) -> Answer:
        """/v1/brokers"""
        services, replication = self._broker.services, self._broker.replication
        registered = services.cluster.brokers
        return _answer(
            {
                "cluster": services.cluster.cluster_id,
                "told_by": services.broker_id,
                "controller": _known(controller_id(services)),
                "brokers": [
                    {
                        "id": one.id,
                        "host": one.kafka.host,
                        "port": one.kafka.port,
                        "region": one.labels.region or None,
                        "zone": one.labels.zone or None,
                        "rack": one.labels.rack or None,
                        "is_heard": is_alive(services, one.id),
                        "round_trip_ms": 0
                        if one.id == services.broker_id
                        else replication.round_trip_ms(one.id),
                    }
                    for one in (registered[broker] for broker in sorted(registered))
                ],
            }
        )

    async def topics(self) -> Answer:
        """/v1/topics"""
        topics = self._broker.services.cluster.topics
        return _answer(
            {
                "topics": [
                    {
                        "name": name,
                        "id": str(topics[name].id),
                        "partitions": len(topics[name].partitions),
                        "is_internal": is_internal(name),
                    }
                    for name in sorted(topics)
                ]
            }
        )

    async def topic(self, name: str) -> Answer | None:
        """/v1/topics/NAME; None where there is none."""
        services = self._broker.services
        topic = services.cluster.topics.get(name)
        if topic is None:
            return None
        pace, told = Pace(), []
        for position, partition in enumerate(topic.partitions):
            if position % STEP == 0:
                await pace.rest()
            told.append(msgspec.json.encode(_partition(services, partition)))
        described = {"topic": name, "id": str(topic.id), "told_by": services.broker_id}
        head = msgspec.json.encode(described)
        body = [head[:-1], b',"partitions":[', b",".join(told), b"]}\n"]
        return Answer(body, content_type=JSON)

    async def outages(self) -> Answer:
        """/v1/outages"""
        services = self._broker.services
        try:
            found = describe_outages(services)
        except ApiError as error:
            told: Json = {"error": str(error), "controller": _known(controller_id(services))}
            return _answer(told, HTTPStatus.SERVICE_UNAVAILABLE)
        weakened = services.balancing.outages.voting.counts
        return _answer(
            {
                "told_by": services.broker_id,
                **zones.told_of(found),
                "weakened_partitions": {str(kind): count for kind, count in weakened.items()},
            }
        )


def _partition(services: Services, partition: Partition) -> Json:
    """Roles, as every broker knows them; how far replicas are, as their leader does."""
    leader, _ = present_leader(services, partition)
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
        "offline": offline_replicas(services, partition),
        "target_voters": list(partition.target),
        "target_observers": list(partition.target_observers),
        "losses_declared": len(partition.losses),
        "status": status,
    }


def _known(broker: BrokerId) -> int | None:
    return None if broker == NO_BROKER else broker


def _answer(told: Json, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    return Answer([msgspec.json.encode(told), b"\n"], status, JSON)
