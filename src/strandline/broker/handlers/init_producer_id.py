"""InitProducerId: an id for an idempotent producer, from this broker's block.

Why:    ids come from the controller in blocks, so that starting a producer seldom waits for it.
How:    without a transactional id every call gets a fresh id, epoch 0, as Kafka does, whatever id
        the producer had before. With one, the answer is UNSUPPORTED_VERSION: transactions are not
        offered. No other code is both final and true: clients retry COORDINATOR_NOT_AVAILABLE for
        ever, and TRANSACTIONAL_ID_AUTHORIZATION_FAILED would send people to look for a permission.
        An empty transactional id, or an id without an epoch or the reverse, is INVALID_REQUEST.
Source: KIP-98, KIP-360."""

from strandline.broker.context import RequestContext
from strandline.model.access import CLUSTER_NAME, Kind, Operation
from strandline.protocol.errors import Error
from strandline.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    """Hand out an id; ApiError from the allocation becomes the answer's error code."""
    has_id = request.producer_id != NO_PRODUCER_ID
    has_epoch = request.producer_epoch != NO_PRODUCER_EPOCH
    if request.transactional_id == "" or has_id != has_epoch:
        return _refuse(Error.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _refuse(Error.UNSUPPORTED_VERSION)
    access, session = context.services.access, context.session
    writes_any = access.allows_any(session, Operation.WRITE, Kind.TOPIC)
    if not writes_any and not context.may(Operation.IDEMPOTENT_WRITE, Kind.CLUSTER, CLUSTER_NAME):
        return _refuse(Error.CLUSTER_AUTHORIZATION_FAILED)
    producer_id = await context.services.producer_ids.next()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refuse(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )
