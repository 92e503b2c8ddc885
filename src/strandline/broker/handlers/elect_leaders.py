"""ElectLeaders: the preferred replica of each partition leads it, where it is in sync.

Unclean elections are refused: nobody leads here who lacks acknowledged records.

Source: KIP-183, KIP-460."""

from collections.abc import Iterable

from strandline.broker.asked import distinct
from strandline.broker.context import RequestContext, Services
from strandline.broker.electing import elect_preferred
from strandline.broker.partitions import find_partition
from strandline.model.cluster import Partition
from strandline.protocol.errors import Error
from strandline.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

PREFERRED = 0


async def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    """Elect in every partition asked for; of all partitions, those that need it are told."""
    services = context.services
    if request.election_type != PREFERRED:
        return _refuse_all(request, services)
    asked = list(_asked(request, services))
    partitions = [one for _, _, one in asked if one is not None]
    found = await elect_preferred(services, partitions, timeout_ms=request.timeout_ms)
    results: dict[str, list[PartitionResult]] = {}
    for topic, index, partition in asked:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
        if partition is not None:
            error = found[partition.group]
        if request.topic_partitions is not None or error is not Error.ELECTION_NOT_NEEDED:
            results.setdefault(topic, []).append(_result(index, error))
    return _response(results)


def _asked(
    request: ElectLeadersRequest, services: Services
) -> Iterable[tuple[str, int, Partition | None]]:
    topics = services.cluster.topics
    if request.topic_partitions is None:
        for topic in list(topics.values()):
            for partition in topic.partitions:
                yield topic.name, partition.index, partition
        return
    for asked in distinct(request.topic_partitions, lambda one: one.topic):
        for index in dict.fromkeys(asked.partitions):
            yield asked.topic, index, find_partition(topics.get(asked.topic), index)


def _refuse_all(request: ElectLeadersRequest, services: Services) -> ElectLeadersResponse:
    results: dict[str, list[PartitionResult]] = {}
    if request.topic_partitions is not None:
        for topic, index, _ in _asked(request, services):
            results.setdefault(topic, []).append(
                _result(index, Error.ELIGIBLE_LEADERS_NOT_AVAILABLE)
            )
    response = _response(results)
    response.error_code = Error.INVALID_REQUEST
    return response


def _result(index: int, error: Error) -> PartitionResult:
    message = None if error is Error.NONE else error.message
    return PartitionResult(partition_id=index, error_code=error, error_message=message)


def _response(results: dict[str, list[PartitionResult]]) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=each)
            for topic, each in results.items()
        ]
    )
