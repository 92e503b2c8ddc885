"""OffsetDelete: deletes a group's committed offsets of some partitions.

How:    Partitions that do not exist are refused here; the rest go to the group's coordinator. It
        judges the group, so it is asked even if nothing is left.
Source: KIP-496."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import find_partition
from strandline.coordinator.answers import DeleteOffsetsAnswer
from strandline.coordinator.requests import DeleteOffsets
from strandline.model.access import Kind, Operation
from strandline.protocol.errors import Error
from strandline.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
    """Delete each offset for itself."""
    services = context.services
    response = OffsetDeleteResponse()
    known: dict[tuple[str, int], list[OffsetDeleteResponsePartition]] = {}
    for requested in request.topics:
        topic = services.cluster.topics.get(requested.name)
        answered = OffsetDeleteResponseTopic(name=requested.name)
        response.topics.append(answered)
        for partition in requested.partitions:
            index = partition.partition_index
            row = OffsetDeleteResponsePartition(partition_index=index)
            answered.partitions.append(row)
            if not context.may(Operation.READ, Kind.TOPIC, requested.name):
                row.error_code = Error.TOPIC_AUTHORIZATION_FAILED
            elif find_partition(topic, index) is None:
                row.error_code = Error.UNKNOWN_TOPIC_OR_PARTITION
            else:
                known.setdefault((requested.name, index), []).append(row)
    answer = await _delete(services, request.group_id, tuple(known))
    if answer.error_code != Error.NONE:
        return OffsetDeleteResponse(error_code=answer.error_code)
    for one in answer.partitions:
        for row in known[one.topic, one.partition]:
            row.error_code = one.error_code
    return response


async def _delete(
    services: Services, group: str, partitions: tuple[tuple[str, int], ...]
) -> DeleteOffsetsAnswer:
    if not group:
        raise ApiError(Error.INVALID_GROUP_ID)
    coordinator = services.coordinator
    request = DeleteOffsets(token=coordinator.new_token(), group=group, partitions=partitions)
    answer = await coordinator.ask(request)
    assert isinstance(answer, DeleteOffsetsAnswer)
    return answer
