"""DescribeClientQuotas: no client has a quota.

How:    AlterClientQuotas is not offered, so the list is empty; filters are checked as in Kafka.
Source: KIP-546."""

from collections.abc import Sequence

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

EXACT = 0
USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)
MATCHES = range(3)


async def handle(
    request: DescribeClientQuotasRequest, context: RequestContext
) -> DescribeClientQuotasResponse:
    """An empty list, if the filter can be one."""
    try:
        _check(request.components)
    except ApiError as refusal:
        return DescribeClientQuotasResponse(
            error_code=refusal.code, error_message=refusal.message, entries=None
        )
    return DescribeClientQuotasResponse()


def _check(components: Sequence[ComponentData]) -> None:
    """Raises ApiError for a filter that names no, an unknown, or one kind of entity twice."""
    kinds = [one.entity_type for one in components]
    for one in components:
        if not one.entity_type:
            raise ApiError(Error.INVALID_REQUEST, "a filter names no entity type")
        if one.entity_type not in ENTITY_TYPES:
            raise ApiError(
                Error.UNSUPPORTED_VERSION,
                f"there is no entity type {one.entity_type!r}: use {', '.join(ENTITY_TYPES)}",
            )
        if one.match_type not in MATCHES:
            raise ApiError(Error.INVALID_REQUEST, f"there is no match type {one.match_type}")
        if one.match_type == EXACT and one.match is None:
            raise ApiError(Error.INVALID_REQUEST, "a filter for one name does not give the name")
    if len(set(kinds)) < len(kinds):
        raise ApiError(Error.INVALID_REQUEST, "a filter names an entity type twice")
    if IP in kinds and len(kinds) > 1:
        raise ApiError(Error.INVALID_REQUEST, "an ip has no user and no client id")
