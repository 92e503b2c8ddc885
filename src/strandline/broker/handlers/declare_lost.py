"""DeclareLost: gives up lost replicas of a partition, which then continues with the others.

Source: docs/decisions/0027-declared-losses.md."""

from strandline.broker.context import RequestContext
from strandline.broker.partitions import find_partition
from strandline.controller.decision import refuse
from strandline.controller.loss_commands import DeclareLost, LossDeclared, ShownLog
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.declare_lost import (
    DeclareLostRequest,
    DeclareLostResponse,
    ShownReplicaLog,
)


async def handle(request: DeclareLostRequest, context: RequestContext) -> DeclareLostResponse:
    """Give the replicas up; raises ApiError with the reason if that is refused."""
    services = context.services
    partition = find_partition(services.cluster.topics.get(request.topic), request.partition)
    if partition is None:
        raise refuse(
            Error.UNKNOWN_TOPIC_OR_PARTITION, f"no partition {request.topic}-{request.partition}"
        )
    command = DeclareLost(
        group=partition.group,
        grant=request.grant,
        brokers=tuple(map(BrokerId, sorted(request.broker_ids))),
        shown=tuple(_shown(one) for one in request.logs),
        by=request.by,
        at_ms=services.clock.wall_ms(),
        validate_only=request.validate_only,
    )
    answer = await services.obtain(command, LossDeclared)
    loss = answer.loss
    return DeclareLostResponse(
        grant=loss.grant,
        leader_id=loss.leader,
        committed_offset=loss.committed,
        log_end_offset=loss.end,
        logs=[
            ShownReplicaLog(one.broker, one.last_epoch, one.last_index, one.committed, one.end)
            for one in answer.logs
        ],
    )


def _shown(one: ShownReplicaLog) -> ShownLog:
    return ShownLog(
        BrokerId(one.broker_id),
        one.last_epoch,
        one.last_index,
        one.committed_offset,
        one.log_end_offset,
    )
