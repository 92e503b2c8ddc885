"""IncrementalAlterConfigs: single keys of topics, and cluster-wide ones.

Source: KIP-339."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ResourceChanges,
    ResourceResults,
)
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
    command = AlterConfigs(tuple(map(_changes, request.resources)), request.validate_only)
    try:
        answer = await context.services.obtain(command, ResourceResults)
    except ApiError as error:
        return _refuse_all(request, error.code, error.message)
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=one.error_code,
                error_message=one.message,
                resource_type=one.type,
                resource_name=one.name,
            )
            for one in answer.resources
        ]
    )


def _changes(resource: AlterConfigsResource) -> ResourceChanges:
    return ResourceChanges(
        resource.resource_type,
        resource.resource_name,
        tuple(
            ConfigChange(config.name, config.config_operation, config.value)
            for config in resource.configs
        ),
    )


def _refuse_all(
    request: IncrementalAlterConfigsRequest, code: int, message: str
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=message or None,
                resource_type=one.resource_type,
                resource_name=one.resource_name,
            )
            for one in request.resources
        ]
    )
