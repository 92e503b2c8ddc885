"""DescribeTopology: the labels of all brokers, and the round trips from this one.

How:    labels are those of the committed state. Round trips are those of the heartbeats that every
        broker sends to every other one, smoothed; for a broker that is gone, the last one.
Source: decisions 0008 and 0015."""

from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import is_alive
from strandline.model.cluster import Broker, Labels
from strandline.protocol.messages.describe_topology import (
    DescribeTopologyRequest,
    DescribeTopologyResponse,
    TopologyBroker,
    TopologyLabel,
)


async def handle(
    request: DescribeTopologyRequest, context: RequestContext
) -> DescribeTopologyResponse:
    """Describe every registered broker, silent ones too."""
    services = context.services
    brokers = services.cluster.brokers
    return DescribeTopologyResponse(
        broker_id=services.broker_id,
        brokers=[_describe(services, brokers[one]) for one in sorted(brokers)],
    )


def _describe(services: Services, broker: Broker) -> TopologyBroker:
    measured = services.replication.round_trip_ms(broker.id)
    return TopologyBroker(
        broker_id=broker.id,
        is_alive=is_alive(services, broker.id),
        round_trip_ms=-1 if measured is None else measured,
        labels=_labels(broker.labels),
        configured=None if broker.configured is None else _labels(broker.configured),
    )


def _labels(labels: Labels) -> list[TopologyLabel]:
    return [TopologyLabel(name, value) for name, value in labels.as_dict().items()]
