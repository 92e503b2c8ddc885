"""How far the replicas of the controller's log are: known to the controller, told by any broker.

Why:    a client may ask any broker, and only the controller's leader knows its followers.
How:    this broker --asks--> the controller, as it knows it; if that one has just changed, it asks
        again until its time is over.
Owns:   nothing.
Source: KIP-595 (DescribeQuorum); design section 3."""

from __future__ import annotations

import asyncio

import msgspec

from strandline.base.errors import ApiError
from strandline.broker.context import Services
from strandline.model.ids import CONTROLLER_GROUP, NO_BROKER, BrokerId
from strandline.network.calls import CallError
from strandline.protocol.errors import Error
from strandline.replication.leader.replica_status import UNKNOWN, standings

METHOD = "controller.quorum"
CALL_TIMEOUT_MS = 1_000
TIMEOUT_MS = 5_000
RETRY_MS = 50


class QuorumReplica(msgspec.Struct, frozen=True, array_like=True):
    """A replica of the controller's log. Times are wall clock times, -1: unknown."""

    broker: BrokerId
    is_voter: bool
    log_end_offset: int
    heard_ms: int
    caught_up_ms: int


class QuorumStatus(msgspec.Struct, frozen=True, array_like=True):
    """The controller's log and its replicas, as the controller knows them."""

    leader: BrokerId
    epoch: int
    high_watermark: int
    replicas: tuple[QuorumReplica, ...]


_statuses = msgspec.msgpack.Decoder(QuorumStatus | None)


def answer_quorum_questions(services: Services) -> None:
    """Serve the questions of other brokers."""

    async def on_call(sender: BrokerId, payload: bytes) -> bytes:
        return msgspec.msgpack.encode(_own_status(services))

    services.replication.calls.register(METHOD, on_call)


async def quorum_status(services: Services) -> QuorumStatus:
    """The status as the controller tells it. Raises ApiError if none is reached in time."""
    deadline_ms = services.clock.monotonic_ms() + TIMEOUT_MS
    while True:
        status = await _ask(services)
        if status is not None:
            return status
        if services.clock.monotonic_ms() >= deadline_ms:
            raise ApiError(Error.REQUEST_TIMED_OUT, "no controller answers")
        await asyncio.sleep(RETRY_MS / 1_000)


async def _ask(services: Services) -> QuorumStatus | None:
    leader = services.controller.leader_id
    if leader == NO_BROKER:
        return None
    if leader == services.broker_id:
        return _own_status(services)
    try:
        answer = await services.replication.calls.call(
            leader, METHOD, b"", timeout_ms=CALL_TIMEOUT_MS
        )
        status: QuorumStatus | None = _statuses.decode(answer)
    except (CallError, msgspec.MsgspecError):
        return None
    return status


def _own_status(services: Services) -> QuorumStatus | None:
    """What this broker knows; None if it is not the controller."""
    replica = services.replication.replicas.get(CONTROLLER_GROUP)
    if replica is None or replica.leadership is None or not replica.can_serve_reads:
        return None
    now_ms = services.clock.wall_ms()
    voters = replica.configuration.all_voters
    return QuorumStatus(
        leader=services.broker_id,
        epoch=replica.epoch,
        high_watermark=replica.high_watermark,
        replicas=tuple(
            QuorumReplica(
                broker=one.broker,
                is_voter=one.broker in voters,
                log_end_offset=one.log_end_offset,
                heard_ms=_before(now_ms, one.heard_lag_ms),
                caught_up_ms=_before(now_ms, one.caught_up_lag_ms),
            )
            for one in standings(replica)
        ),
    )


def _before(now_ms: int, lag_ms: int) -> int:
    return UNKNOWN if lag_ms == UNKNOWN else now_ms - lag_ms
