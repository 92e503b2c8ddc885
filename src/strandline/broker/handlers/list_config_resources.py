"""ListConfigResources: the names of what DescribeConfigs describes.

Why:    tools that back up or compare a cluster's configuration begin with this list.
How:    topics, brokers and their loggers. There are no client metrics subscriptions, so version 0,
        which asks for nothing else, gets an empty list.
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

CLIENT_METRICS = 16
_WITHOUT_RESOURCES = (CLIENT_METRICS, 32)
"""Kafka's types that have no resources here: client metrics, groups."""


async def handle(
    request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    """List the resources of the types asked for, of all types if none is named."""
    wanted = set(request.resource_types)
    if context.api_version == 0:
        wanted = {CLIENT_METRICS}
    if wanted - {*ResourceType, BROKER_LOGGER, *_WITHOUT_RESOURCES}:
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
