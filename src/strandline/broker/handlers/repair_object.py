"""RepairObject: puts a live object into its bucket again, if that has lost or damaged it.

Source: decision 0068."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.broker.partitions import find_leader, find_partition, topic_by_id
from strandline.protocol.errors import Error
from strandline.protocol.messages.repair_object import RepairObjectRequest, RepairObjectResponse


async def handle(request: RepairObjectRequest, context: RequestContext) -> RepairObjectResponse:
    """Read the object, and put it again if that is needed."""
    services = context.services
    topic = topic_by_id(services, request.topic_id)
    partition = None if topic is None else find_partition(topic, request.partition)
    if partition is None:
        raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
    replica, error = find_leader(services, partition)
    if replica is None:
        raise ApiError(error, "another broker leads the partition")
    if services.tiering is None:
        raise ApiError(Error.INVALID_REQUEST, "this broker's file names no bucket")
    done = await services.tiering.repairs.repair(replica.group, request.bucket, request.name)
    return RepairObjectResponse(is_put=done.is_put, verdict=done.verdict.value, reason=done.reason)
