"""AlterConfigs: replaces all of a resource's configuration. Some clients have no other way.

How:    the keys that are named get their values; the resource's other keys of Kafka's go back to
        their defaults. Keys that Kafka does not have stay unless they are named (decision 0045).
Source: KIP-133."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ResourceChanges,
    ResourceResults,
)
from strandline.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    """Change the resources, each as a whole or not at all."""
    command = AlterConfigs(tuple(map(_changes, request.resources)), request.validate_only)
    try:
        answer = await context.services.obtain(command, ResourceResults)
    except ApiError as error:
        return _refuse_all(request, error.code, error.message)
    return AlterConfigsResponse(
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
            ConfigChange(config.name, ConfigOperation.SET, config.value)
            for config in resource.configs
        ),
        replaces=True,
    )


def _refuse_all(request: AlterConfigsRequest, code: int, message: str) -> AlterConfigsResponse:
    return AlterConfigsResponse(
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
