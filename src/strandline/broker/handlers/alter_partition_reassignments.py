"""AlterPartitionReassignments: where replicas should move. `broker.groups.moving` moves them.

How:    The controller records the moves. The answer waits until this broker has replayed them, so
        that the next ListPartitionReassignments here shows them.
Source: KIP-455, KIP-860; docs/decisions/0009-moving-replicas.md."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.broker.coordinators.applied_waiters import wait_for_version
from strandline.controller.commands import AlterReassignments, PartitionResults, WantedReplicas
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


async def handle(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    """Record the move of every partition, each for itself."""
    services = context.services
    wanted = tuple(
        WantedReplicas(
            topic=topic.name,
            index=one.partition_index,
            replicas=None if one.replicas is None else tuple(map(BrokerId, one.replicas)),
        )
        for topic in request.topics
        for one in topic.partitions
    )
    may_change = request.allow_replication_factor_change
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change, error_message=None
    )
    try:
        answer = await services.controller.submit(AlterReassignments(wanted, may_change))
    except ApiError as error:
        response.error_code, response.error_message = error.code, error.message
        return response
    if not isinstance(answer, PartitionResults):
        response.error_code = answer.error_code
        response.error_message = getattr(answer, "message", None)
        return response
    if any(one.error_code == Error.NONE for one in answer.partitions):
        await wait_for_version(services, answer.version, timeout_ms=request.timeout_ms)
    results = iter(answer.partitions)
    for topic in request.topics:
        response.responses.append(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=one.index,
                        error_code=one.error_code,
                        error_message=one.message,
                    )
                    for _, one in zip(topic.partitions, results, strict=False)
                ],
            )
        )
    return response


def refuse(
    request: AlterPartitionReassignmentsRequest, error: ApiError
) -> AlterPartitionReassignmentsResponse:
    """The error for the request, and for each partition."""
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=error.code,
        error_message=error.message,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(one.partition_index, error.code, error.message)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
