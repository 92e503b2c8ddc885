"""FindCoordinator: which broker coordinates a group.

Why:    a group belongs to a partition of `__consumer_offsets`, whose leader coordinates it.
How:    The topic is created at the first request, which waits for it. While its partition has no
        leader the answer is COORDINATOR_NOT_AVAILABLE, and clients ask again. Transactions are not
        offered: the answer is UNSUPPORTED_VERSION, which is final, as InitProducerId's is.
        Up to version 3 the message of a success is "NONE", as Kafka has it.
Source: KIP-699 (several keys, version 4)."""

from strandline.base.errors import ApiError
from strandline.broker.access.requirements import REFUSED
from strandline.broker.context import RequestContext, Services
from strandline.broker.coordinators.applied_waiters import wait_for_leaders
from strandline.broker.partitions import present_leader
from strandline.controller.names import OFFSETS_TOPIC
from strandline.model.access import Kind, Operation
from strandline.model.cluster import Address, Broker
from strandline.protocol.errors import Error
from strandline.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from strandline.security.session import Session

GROUP_KEY = 0
TRANSACTION_KEY = 1
MANY_KEYS_SINCE_VERSION = 4
NEW_TOPIC_TIMEOUT_MS = 2_000
NO_NODE = -1


async def handle(
    request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse:
    """Find the coordinator of each key."""
    if context.api_version >= MANY_KEYS_SINCE_VERSION:
        return FindCoordinatorResponse(
            coordinators=[
                await _find(context, key, request.key_type)
                for key in dict.fromkeys(request.coordinator_keys)
            ]
        )
    one = await _find(context, request.key, request.key_type)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message if one.error_code else Error.NONE.name,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


async def _find(context: RequestContext, key: str, key_type: int) -> Coordinator:
    try:
        if key_type == GROUP_KEY and not context.may(Operation.DESCRIBE, Kind.GROUP, key):
            raise ApiError(Error.GROUP_AUTHORIZATION_FAILED, REFUSED)
        broker = await _coordinator(context.services, key, key_type)
        address = _address(broker, context.session)
    except ApiError as error:
        return Coordinator(
            key=key,
            node_id=NO_NODE,
            port=NO_NODE,
            error_code=error.code,
            error_message=error.message,
        )
    return Coordinator(
        key=key,
        node_id=broker.id,
        host=address.host,
        port=address.port,
        error_message=None,
    )


async def _coordinator(services: Services, key: str, key_type: int) -> Broker:
    if key_type == TRANSACTION_KEY:
        raise ApiError(Error.UNSUPPORTED_VERSION, "transactions are not offered")
    if key_type != GROUP_KEY:
        raise ApiError(Error.INVALID_REQUEST, f"there are no coordinators of type {key_type}")
    partition = services.coordinator.partition_of(key)
    if partition is None:
        await _create(services)
        partition = services.coordinator.partition_of(key)
    leader = None if partition is None else present_leader(services, partition)[0]
    broker = None if leader is None else services.cluster.brokers.get(leader)
    if broker is None:
        raise ApiError(Error.COORDINATOR_NOT_AVAILABLE, "the group's partition has no leader yet")
    return broker


def _address(broker: Broker, session: Session) -> Address:
    """Where a client reaches a broker. Raises ApiError."""
    address = broker.address_at(session.listener, session.host)
    if address is None:
        raise ApiError(
            Error.COORDINATOR_NOT_AVAILABLE,
            f"the coordinator, broker {broker.id}, has no listener {session.listener}",
        )
    return address


async def _create(services: Services) -> None:
    """Create the topic. A failure is COORDINATOR_NOT_AVAILABLE: it may be over at the next try."""
    try:
        await services.coordinator.ensure_topic()
    except ApiError as error:
        raise ApiError(Error.COORDINATOR_NOT_AVAILABLE, error.message) from error
    await wait_for_leaders(services, [OFFSETS_TOPIC], timeout_ms=NEW_TOPIC_TIMEOUT_MS)
