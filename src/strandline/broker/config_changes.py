"""Has the controller change configuration: what both requests that alter it share.

Source: KIP-133, KIP-339; decision 0045."""

from collections.abc import Sequence

from strandline.base.errors import ApiError
from strandline.broker.access.config_rights import require_config_right
from strandline.broker.access.requirements import REFUSALS, REFUSED
from strandline.broker.context import RequestContext
from strandline.config.cluster import WEBHOOK_URL
from strandline.config.topic_read_replica import READ_REPLICA_OF
from strandline.config.webhook_hosts import WebhookHosts
from strandline.controller.commands import (
    AlterConfigs,
    ResourceChanges,
    ResourceResult,
    ResourceResults,
    ResourceType,
)
from strandline.model.access import CLUSTER_NAME, Kind, Operation
from strandline.protocol.errors import Error


async def change_configs(
    context: RequestContext, changes: Sequence[ResourceChanges], *, validate_only: bool
) -> Sequence[ResourceResult]:
    """One result for each resource: first those that may be changed. If the controller
    refuses or does not answer, each of these has that error."""
    allowed: list[ResourceChanges] = []
    refused: list[ResourceResult] = []
    for one in changes:
        try:
            _require_rights(context, one)
            _require_listed_webhook(context, one)
            allowed.append(one)
        except ApiError as error:
            refused.append(ResourceResult(one.type, one.name, error.code, error.message))
    if refused and not allowed:
        return refused
    command = AlterConfigs(tuple(allowed), validate_only)
    try:
        answer = await context.services.obtain(command, ResourceResults)
    except ApiError as error:
        message = error.message or None
        failed = [ResourceResult(one.type, one.name, error.code, message) for one in allowed]
        return [*failed, *refused]
    return [*answer.resources, *refused]


def _require_rights(context: RequestContext, changes: ResourceChanges) -> None:
    """Raise ApiError if the client may not change this. A bucket that is named is read with the
    brokers' own credentials: that takes a right to the cluster."""
    require_config_right(context, Operation.ALTER_CONFIGS, changes.type, changes.name)
    names_bucket = any(one.key == READ_REPLICA_OF for one in changes.changes)
    if names_bucket and not context.may(Operation.ALTER, Kind.CLUSTER, CLUSTER_NAME):
        raise ApiError(REFUSALS[Kind.CLUSTER], REFUSED)


def _require_listed_webhook(context: RequestContext, changes: ResourceChanges) -> None:
    """Raise ApiError if alarms are to be posted to a host that the broker's file does not list."""
    if changes.type != ResourceType.BROKER:
        return
    hosts = WebhookHosts(context.services.config.security.webhook_hosts)
    for one in changes.changes:
        reason = hosts.refuse(one.value or "") if one.key == WEBHOOK_URL else None
        if reason is not None:
            raise ApiError(Error.INVALID_CONFIG, f"{WEBHOOK_URL} {reason}")
