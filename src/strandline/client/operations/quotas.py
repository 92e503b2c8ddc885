"""Sets, lists and removes quotas of users and client ids.

Source: KIP-546."""

from collections.abc import Mapping

from strandline.client.cluster import Client
from strandline.client.errors import refusal
from strandline.model.access import QuotaEntity
from strandline.protocol.messages.alter_client_quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
)
from strandline.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from strandline.security.quotas.entities import entity_of, show_entity
from strandline.security.quotas.entity_filter import Match


def alter_quotas(client: Client, changes: Mapping[QuotaEntity, Mapping[str, float | None]]) -> None:
    """Set quotas of entities, or remove those that are None. Raises ApiError for the first entity
    that is refused: the others are changed."""
    request = AlterClientQuotasRequest(
        [
            AlterClientQuotasEntry(
                [EntityData(kind, name) for kind, name in entity],
                [
                    OpData(key, 0.0 if value is None else value, value is None)
                    for key, value in values.items()
                ],
            )
            for entity, values in changes.items()
        ]
    )
    answer = client.ask_any(request, AlterClientQuotasResponse, deadline_ms=client.deadline())
    for entity, one in zip(changes, answer.entries, strict=True):
        if one.error_code:
            raise refusal(one.error_code, f"the quotas of {show_entity(entity)}", one.error_message)


def list_quotas(client: Client, entity: QuotaEntity = ()) -> dict[QuotaEntity, dict[str, float]]:
    """The quotas of all entities, or those with these types and names among others: {entity: {key:
    value}}. Raises ApiError."""
    request = DescribeClientQuotasRequest(
        [
            ComponentData(kind, Match.DEFAULT if name is None else Match.EXACT, name)
            for kind, name in entity
        ]
    )
    answer = client.ask_any(request, DescribeClientQuotasResponse, deadline_ms=client.deadline())
    if answer.error_code:
        raise refusal(answer.error_code, "the quotas", answer.error_message)
    return {
        entity_of([(part.entity_type, part.entity_name) for part in one.entity]): {
            value.key: value.value for value in one.values
        }
        for one in answer.entries or ()
    }
