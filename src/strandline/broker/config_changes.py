"""Has the controller change configuration: what both requests that alter it share.

Source: KIP-133, KIP-339; decision 0045."""

from collections.abc import Sequence

from strandline.base.errors import ApiError
from strandline.broker.context import Services
from strandline.controller.commands import (
    AlterConfigs,
    ResourceChanges,
    ResourceResult,
    ResourceResults,
)


async def change_configs(
    services: Services, changes: Sequence[ResourceChanges], *, validate_only: bool
) -> Sequence[ResourceResult]:
    """One result for each resource, in order. If the controller refuses or does not answer, each
    has that error."""
    command = AlterConfigs(tuple(changes), validate_only)
    try:
        answer = await services.obtain(command, ResourceResults)
    except ApiError as error:
        message = error.message or None
        return [ResourceResult(one.type, one.name, error.code, message) for one in changes]
    return answer.resources
