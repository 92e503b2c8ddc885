"""IncrementalAlterConfigs: single keys of topics, brokers and the cluster, and loggers' levels.

How:    the controller changes keys; the levels of a broker's loggers are that broker's own.
Source: KIP-339, KIP-412."""

from strandline.base.errors import ApiError
from strandline.broker.access.config_rights import require_config_right
from strandline.broker.config_changes import change_configs
from strandline.broker.context import RequestContext
from strandline.broker.operations.log_levels import (
    BROKER_LOGGER,
    change_levels,
    require_own_loggers,
)
from strandline.controller.commands import ConfigChange, ResourceChanges, ResourceResult
from strandline.model.access import Operation
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
    validate_only = request.validate_only
    results = [_change_loggers(context, one, validate_only=validate_only) for one in own]
    others = [_changes(one) for one in request.resources if one.resource_type != BROKER_LOGGER]
    if others or not own:
        results += await change_configs(context, others, validate_only=validate_only)
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=one.error_code,
                error_message=one.message,
                resource_type=one.type,
                resource_name=one.name,
            )
            for one in results
        ]
    )


def _change_loggers(
    context: RequestContext, resource: AlterConfigsResource, *, validate_only: bool
) -> ResourceResult:
    changes = [(one.name, one.config_operation, one.value) for one in resource.configs]
    code, message = 0, None
    try:
        require_config_right(
            context, Operation.ALTER_CONFIGS, resource.resource_type, resource.resource_name
        )
        require_own_loggers(context.services.broker_id, resource.resource_name)
        change_levels(changes, validate_only=validate_only)
    except ApiError as error:
        code, message = error.code, error.message or None
    return ResourceResult(resource.resource_type, resource.resource_name, code, message)


def _changes(resource: AlterConfigsResource) -> ResourceChanges:
    return ResourceChanges(
        resource.resource_type,
        resource.resource_name,
        tuple(
            ConfigChange(config.name, config.config_operation, config.value)
            for config in resource.configs
        ),
    )
