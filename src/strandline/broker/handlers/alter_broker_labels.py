"""AlterBrokerLabels: changes labels of running brokers, if the placement policies allow it.

Source: decision 0015."""

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
    """Change the labels of all named brokers, or of none.

    The controller objects if a policy could no longer be met, or if a broker would lack a label
    that a policy needs; then this raises ApiError with the reasons. With `is_forced` the change is
    made all the same, and the answer lists the objections. With `validate_only` the answer is the
    same, and nothing changes."""
    command = AlterLabels(
        brokers=tuple(map(BrokerId, request.broker_ids)),
        changes=tuple((one.name, one.value) for one in request.changes),
        is_forced=request.is_forced,
        validate_only=request.validate_only,
    )
    answer = await context.services.obtain(command, LabelsAltered)
    return AlterBrokerLabelsResponse(
        brokers=[
            AlteredBroker(id_, [AlteredLabel(*one) for one in labels.as_dict().items()])
            for id_, labels in answer.brokers
        ],
        moves=[AlteredTopic(one.topic, one.count, list(one.examples)) for one in answer.moves],
        objections=list(answer.objections),
    )
