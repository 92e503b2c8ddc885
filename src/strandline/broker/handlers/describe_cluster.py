"""DescribeCluster: the live brokers at the client's listener, and which one is the controller.

Source: KIP-700; KIP-919 (endpoint types: only brokers are described here)."""

from strandline.broker.context import RequestContext
from strandline.broker.handlers.metadata import controller_id
from strandline.broker.partitions import is_alive
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKER_ENDPOINTS, CONTROLLER_ENDPOINTS = 1, 2


async def handle(
    request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    """Answer from the committed state; silent brokers only if they are asked for."""
    services = context.services
    if request.endpoint_type != BROKER_ENDPOINTS:
        is_known = request.endpoint_type == CONTROLLER_ENDPOINTS
        return DescribeClusterResponse(
            error_code=Error.MISMATCHED_ENDPOINT_TYPE
            if is_known
            else Error.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="this port describes brokers only",
        )
    brokers = []
    for one in sorted(services.cluster.brokers.values(), key=lambda broker: broker.id):
        is_fenced = not is_alive(services, one.id)
        address = one.address_at(context.session.listener, context.session.host)
        if address is None or (is_fenced and not request.include_fenced_brokers):
            continue
        brokers.append(
            DescribeClusterBroker(
                broker_id=one.id,
                host=address.host,
                port=address.port,
                rack=one.labels.kafka_rack(),
                is_fenced=is_fenced,
            )
        )
    response = DescribeClusterResponse(
        cluster_id=services.cluster.cluster_id,
        controller_id=controller_id(services),
        brokers=brokers,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = services.access.cluster_operations(context.session)
    return response
