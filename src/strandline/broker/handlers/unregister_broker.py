"""UnregisterBroker: a broker that is gone for good leaves the cluster's state.

Source: KIP-631; decision 0011."""

from strandline.base.errors import ApiError
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
    """Take it off, or say why not."""
    command = UnregisterBroker(BrokerId(request.broker_id))
    try:
        answer = await context.services.controller.submit(command)
    except ApiError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=error.message or None)
    if isinstance(answer, BrokerTakenOff):
        return UnregisterBrokerResponse(error_message=None)
    message = getattr(answer, "message", "") or None
    return UnregisterBrokerResponse(error_code=answer.error_code, error_message=message)
