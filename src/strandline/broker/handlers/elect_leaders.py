"""ElectLeaders: hands partitions over to their preferred replicas, if these are in sync.

Unclean elections are refused, and the error of a partition without a leader says what helps: no
replica that lacks acknowledged records ever leads, unless an operator declares a loss.

Source: KIP-183, KIP-460."""

from collections.abc import Iterable

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext, Services
from strandline.broker.leadership.electing import elect_preferred
from strandline.broker.partitions import find_partition, known_leader, may_be_named
from strandline.broker.server.request_limits import distinct
from strandline.model.cluster import Partition
from strandline.model.ids import NO_BROKER
from strandline.protocol.errors import Error
from strandline.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

PREFERRED, UNCLEAN = 0, 1
REFUSED = (
    "no leader yet, and an unclean election could lose acknowledged records: if there is none in "
    "some seconds, run `strandline partition survivors {topic} {index}`"
)


async def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    """Elect in every requested partition. If all are requested, list those that needed it."""
    services = context.services
    if request.election_type not in (PREFERRED, UNCLEAN):
        # There is no such type of election, for none of the partitions.
        message = f"there is no election type {request.election_type}"
        return refuse(request, ApiError(Error.INVALID_REQUEST, message))
    requested = list(_requested(request, services))
    partitions = [one for _, _, one in requested if one is not None]
    if request.election_type == UNCLEAN:
        found = {one.group: _unclean(services, one) for one in partitions}
    else:
        found = dict(await elect_preferred(services, partitions, timeout_ms=request.timeout_ms))
    results: dict[str, list[PartitionResult]] = {}
    for topic, index, partition in requested:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
        if partition is not None:
            error = found[partition.group]
        if request.topic_partitions is not None or error is not Error.ELECTION_NOT_NEEDED:
            results.setdefault(topic, []).append(_result(topic, index, error))
    return _response(results)


def _requested(
    request: ElectLeadersRequest, services: Services
) -> Iterable[tuple[str, int, Partition | None]]:
    topics = services.cluster.topics
    if request.topic_partitions is None:
        for topic in list(topics.values()):
            for partition in topic.partitions:
                yield topic.name, partition.index, partition
        return
    for requested in distinct(request.topic_partitions, lambda one: one.topic):
        for index in dict.fromkeys(requested.partitions):
            yield requested.topic, index, find_partition(topics.get(requested.topic), index)


def _unclean(services: Services, partition: Partition) -> Error:
    leader, _ = known_leader(services, partition)
    if leader != NO_BROKER and may_be_named(services, leader):
        return Error.ELECTION_NOT_NEEDED
    return Error.ELIGIBLE_LEADERS_NOT_AVAILABLE


def _result(topic: str, index: int, error: Error) -> PartitionResult:
    message = None if error is Error.NONE else error.message
    if error is Error.ELIGIBLE_LEADERS_NOT_AVAILABLE:
        message = REFUSED.format(topic=topic, index=index)
    return PartitionResult(partition_id=index, error_code=error, error_message=message)


def refuse(request: ElectLeadersRequest, error: ApiError) -> ElectLeadersResponse:
    """The error for the request, and for each partition that it names."""
    response = _response(
        {
            one.topic: [PartitionResult(index, error.code, error.message) for index in indexes]
            for one in request.topic_partitions or ()
            if (indexes := dict.fromkeys(one.partitions))
        }
    )
    response.error_code = error.code
    return response


def _response(results: dict[str, list[PartitionResult]]) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=each)
            for topic, each in results.items()
        ]
    )
