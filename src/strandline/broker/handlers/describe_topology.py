"""DescribeTopology: the labels of all brokers, and the round trips from this one.

How:    labels are those of the committed state. Round trips are those of the heartbeats that every
        broker sends to every other one, smoothed; of a broker that is gone it is the last.
Source: decision 0008."""

from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import is_alive
from strandline.model.cluster import NAMED_LABELS, Broker
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
    labels = broker.labels
    named = [(name, labels.get(name)) for name in NAMED_LABELS]
    measured = services.replication.round_trip_ms(broker.id)
    return TopologyBroker(
        broker_id=broker.id,
        is_alive=is_alive(services, broker.id),
        round_trip_ms=-1 if measured is None else measured,
        labels=[TopologyLabel(name, value) for name, value in (*named, *labels.free) if value],
    )
