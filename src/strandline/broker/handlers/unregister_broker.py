"""UnregisterBroker: removes a broker that is gone for good from the cluster's state.

Source: KIP-631; decision 0011."""

from strandline.broker.context import RequestContext
from strandline.controller.commands import BrokerTakenOff, UnregisterBroker
from strandline.model.ids import BrokerId
from strandline.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


async def handle(
    request: UnregisterBrokerRequest, context: RequestContext
) -> UnregisterBrokerResponse:
    """Remove the broker; raises ApiError with the reason if that is refused."""
    command = UnregisterBroker(BrokerId(request.broker_id))
    await context.services.obtain(command, BrokerTakenOff)
    return UnregisterBrokerResponse(error_message=None)
