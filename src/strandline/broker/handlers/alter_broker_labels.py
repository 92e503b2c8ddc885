"""AlterBrokerLabels: labels of brokers that run are changed, once the policies were asked.

Source: decision 0015."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.controller.commands import AlterLabels, LabelsAltered
from strandline.model.ids import BrokerId
from strandline.protocol.messages.alter_broker_labels import (
    AlterBrokerLabelsRequest,
    AlterBrokerLabelsResponse,
    AlteredBroker,
    AlteredLabel,
    AlteredTopic,
)


async def handle(
    request: AlterBrokerLabelsRequest, context: RequestContext
) -> AlterBrokerLabelsResponse:
    """Change them, or say why not."""
    command = AlterLabels(
        brokers=tuple(map(BrokerId, request.broker_ids)),
        changes=tuple((one.name, one.value) for one in request.changes),
        is_forced=request.is_forced,
        validate_only=request.validate_only,
    )
    try:
        answer = await context.services.controller.submit(command)
    except ApiError as error:
        return AlterBrokerLabelsResponse(error_code=error.code, error_message=error.message or None)
    if not isinstance(answer, LabelsAltered):
        message = getattr(answer, "message", "") or None
        return AlterBrokerLabelsResponse(error_code=answer.error_code, error_message=message)
    return AlterBrokerLabelsResponse(
        brokers=[
            AlteredBroker(id_, [AlteredLabel(*one) for one in labels.as_dict().items()])
            for id_, labels in answer.brokers
        ],
        moves=[AlteredTopic(one.topic, one.count, list(one.examples)) for one in answer.moves],
        objections=list(answer.objections),
    )
