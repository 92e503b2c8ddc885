"""ListConfigResources: the names of what DescribeConfigs describes.

Why:    tools that back up or compare a cluster's configuration begin with this list.
How:    topics, brokers and their loggers. Of groups and client metrics subscriptions Kafka lists
        those whose keys were altered. Here they cannot be, so there are none. Version 0 asks for
        client metrics only, and gets an empty list.
Source: KIP-714, KIP-1142."""

from strandline.broker.context import RequestContext
from strandline.broker.operations.log_levels import BROKER_LOGGER
from strandline.controller.commands import ResourceType
from strandline.model.cluster import Cluster
from strandline.protocol.errors import Error
from strandline.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


async def handle(
    request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    """List the resources of the types asked for, of all types if none is named."""
    wanted = set(request.resource_types)
    if context.api_version == 0:
        wanted = {int(ResourceType.CLIENT_METRICS)}
    if wanted - {*ResourceType, BROKER_LOGGER}:
        return ListConfigResourcesResponse(error_code=Error.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(name, kind)
            for kind, names in _names(context.services.cluster).items()
            if kind in wanted or not wanted
            for name in names
        ]
    )


def _names(cluster: Cluster) -> dict[int, list[str]]:
    brokers = [str(one) for one in sorted(cluster.brokers)]
    return {
        ResourceType.TOPIC: sorted(cluster.topics),
        ResourceType.BROKER: brokers,
        BROKER_LOGGER: brokers,
    }
