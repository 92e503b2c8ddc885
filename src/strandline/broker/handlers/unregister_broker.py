"""UnregisterBroker: a broker that is gone for good leaves the cluster's state.

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
    """Take it off; raises ApiError with why not."""
    command = UnregisterBroker(BrokerId(request.broker_id))
    await context.services.obtain(command, BrokerTakenOff)
    return UnregisterBrokerResponse(error_message=None)
