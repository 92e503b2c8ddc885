"""IncrementalAlterConfigs: single keys of topics, brokers and the cluster, and loggers' levels.

How:    the controller changes keys; the levels of a broker's loggers are that broker's own.
Source: KIP-339, KIP-412."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.broker.operations.log_levels import (
    BROKER_LOGGER,
    change_levels,
    require_own_loggers,
)
from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ResourceChanges,
    ResourceResults,
)
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    """Change the resources, each as a whole or not at all."""
    own = [one for one in request.resources if one.resource_type == BROKER_LOGGER]
    broker, validate_only = context.services.broker_id, request.validate_only
    responses = [_change_loggers(broker, one, validate_only=validate_only) for one in own]
    others = [one for one in request.resources if one.resource_type != BROKER_LOGGER]
    if others or not own:
        responses += await _change_at_controller(others, context, validate_only=validate_only)
    return IncrementalAlterConfigsResponse(responses=responses)


def _change_loggers(
    broker: BrokerId, resource: AlterConfigsResource, *, validate_only: bool
) -> AlterConfigsResourceResponse:
    changes = [(one.name, one.config_operation, one.value) for one in resource.configs]
    try:
        require_own_loggers(broker, resource.resource_name)
        change_levels(changes, validate_only=validate_only)
    except ApiError as error:
        return _response(resource, error.code, error.message)
    return _response(resource, int(Error.NONE), "")


async def _change_at_controller(
    resources: list[AlterConfigsResource], context: RequestContext, *, validate_only: bool
) -> list[AlterConfigsResourceResponse]:
    command = AlterConfigs(tuple(map(_changes, resources)), validate_only)
    try:
        answer = await context.services.obtain(command, ResourceResults)
    except ApiError as error:
        return [_response(one, error.code, error.message) for one in resources]
    return [
        AlterConfigsResourceResponse(
            error_code=one.error_code,
            error_message=one.message,
            resource_type=one.type,
            resource_name=one.name,
        )
        for one in answer.resources
    ]


def _changes(resource: AlterConfigsResource) -> ResourceChanges:
    return ResourceChanges(
        resource.resource_type,
        resource.resource_name,
        tuple(
            ConfigChange(config.name, config.config_operation, config.value)
            for config in resource.configs
        ),
    )


def _response(
    resource: AlterConfigsResource, code: int, message: str
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message or None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
