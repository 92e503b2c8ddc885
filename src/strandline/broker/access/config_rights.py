"""The right that a resource's configuration takes: to describe it, or to alter it.

Source: Kafka 4.3's ConfigHelper and ControllerApis: a topic's and a group's configuration take a
        right to that resource, all others one to the cluster."""

from strandline.base.errors import ApiError
from strandline.broker.access.requirements import REFUSALS, REFUSED
from strandline.broker.context import RequestContext
from strandline.controller.commands import ResourceType
from strandline.model.access import CLUSTER_NAME, Kind, Operation


def require_config_right(
    context: RequestContext, operation: Operation, resource_type: int, name: str
) -> None:
    """Raise ApiError if the client may not do the operation with the resource's configuration."""
    kind = Kind.CLUSTER
    if resource_type == ResourceType.TOPIC:
        kind = Kind.TOPIC
    elif resource_type == ResourceType.GROUP:
        kind = Kind.GROUP
    if not context.may(operation, kind, CLUSTER_NAME if kind is Kind.CLUSTER else name):
        raise ApiError(REFUSALS[kind], REFUSED)
