"""AlterConfigs: replaces all of a resource's configuration. Some clients have no other way.

How:    the keys that are named get their values; the resource's other keys of Kafka's go back to
        their defaults. Keys that Kafka does not have stay unless they are named (decision 0045).
Source: KIP-133."""

from strandline.broker.config_changes import change_configs
from strandline.broker.context import RequestContext
from strandline.controller.commands import ConfigChange, ConfigOperation, ResourceChanges
from strandline.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    """Change the resources, each as a whole or not at all."""
    changes = list(map(_changes, request.resources))
    results = await change_configs(context, changes, validate_only=request.validate_only)
    return AlterConfigsResponse(
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
