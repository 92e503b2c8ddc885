"""AlterReplicaLogDirs: a broker has one data directory, so a log is there or cannot be.

How:    A wish for the directory that a log is in is fulfilled. Another directory is
        LOG_DIR_NOT_FOUND, as for a directory that Kafka's configuration does not have.
Source: KIP-113."""

import os

from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import find_partition, find_replica
from strandline.model.access import CLUSTER_NAME, Kind, Operation
from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


async def handle(
    request: AlterReplicaLogDirsRequest, context: RequestContext
) -> AlterReplicaLogDirsResponse:
    """Answer for each log; the last directory that names a log counts."""
    is_allowed = context.may(Operation.ALTER, Kind.CLUSTER, CLUSTER_NAME)
    wanted: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            paths = dict.fromkeys(topic.partitions, directory.path)
            wanted.setdefault(topic.name, {}).update(paths)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=index,
                        error_code=_error(context.services, name, index, path=path)
                        if is_allowed
                        else Error.CLUSTER_AUTHORIZATION_FAILED,
                    )
                    for index, path in paths.items()
                ],
            )
            for name, paths in wanted.items()
        ]
    )


def _error(services: Services, topic: str, index: int, *, path: str) -> Error:
    if path != os.path.abspath(services.config.broker.data_directory):
        return Error.LOG_DIR_NOT_FOUND
    partition = find_partition(services.cluster.topics.get(topic), index)
    if partition is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    _, error = find_replica(services, partition)
    return Error.REPLICA_NOT_AVAILABLE if error is Error.NOT_LEADER_OR_FOLLOWER else error
