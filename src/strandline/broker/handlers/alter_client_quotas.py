"""AlterClientQuotas: sets and removes quotas of users and client ids.

Source: KIP-546."""

from strandline.base.errors import ApiError
from strandline.broker.access.requirements import REFUSED
from strandline.broker.context import RequestContext
from strandline.controller.quota_commands import (
    AlterQuotas,
    QuotaAlteration,
    QuotaResult,
    QuotaResults,
)
from strandline.model.access import CLUSTER_NAME, Kind, Operation
from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredEntity,
)


async def handle(
    request: AlterClientQuotasRequest, context: RequestContext
) -> AlterClientQuotasResponse:
    """Have the controller change each entity, or refuse it."""
    command = AlterQuotas(
        tuple(
            QuotaAlteration(
                tuple((one.entity_type, one.entity_name) for one in entry.entity),
                tuple((one.key, None if one.remove else one.value) for one in entry.ops),
            )
            for entry in request.entries
        ),
        is_validation=request.validate_only,
    )
    try:
        if not context.may(Operation.ALTER_CONFIGS, Kind.CLUSTER, CLUSTER_NAME):
            raise ApiError(Error.CLUSTER_AUTHORIZATION_FAILED, REFUSED)
        answer = await context.services.obtain(command, QuotaResults)
        results = answer.results
    except ApiError as error:
        refused = QuotaResult(error.code, error.message or None)
        results = (refused,) * len(request.entries)
    return AlterClientQuotasResponse(
        entries=[
            AlteredEntity(one.error_code, one.message, entry.entity)
            for entry, one in zip(request.entries, results, strict=True)
        ]
    )
