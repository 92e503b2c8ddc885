"""DescribeClientQuotas: the quotas of users and client ids, as this broker has replayed them.

Source: KIP-546."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from strandline.security.quotas.entity_filter import Condition, UnknownTypeError, check, fits


async def handle(
    request: DescribeClientQuotasRequest, context: RequestContext
) -> DescribeClientQuotasResponse:
    """The quotas of the entities that the filter names."""
    conditions = [
        Condition(one.entity_type, one.match_type, one.match) for one in request.components
    ]
    try:
        _check(conditions)
    except ApiError as refusal:
        return DescribeClientQuotasResponse(
            error_code=refusal.code, error_message=refusal.message, entries=None
        )
    quotas = context.services.cluster.access.quotas
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            EntryData(
                [EntityData(kind, name) for kind, name in entity],
                [ValueData(key, value) for key, value in values.items()],
            )
            for entity, values in quotas.items()
            if fits(entity, conditions, is_strict=request.strict)
        ],
    )


def _check(conditions: list[Condition]) -> None:
    """Raises ApiError for a filter that cannot be one."""
    try:
        check(conditions)
    except UnknownTypeError as error:
        raise ApiError(Error.UNSUPPORTED_VERSION, str(error)) from error
    except ValueError as error:
        raise ApiError(Error.INVALID_REQUEST, str(error)) from error
