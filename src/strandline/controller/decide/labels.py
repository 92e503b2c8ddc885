"""Changes labels of running brokers.

Why:    a machine gets faster disks, or had a wrong label: neither is worth a restart.
How:    All named brokers get the changes, or none. Objections refuse them, unless the operator
        forces them: the log must have a broker's true place even if no policy can be met there. The
        record is a registration with the new labels, not a new kind, so that earlier versions read
        it correctly.
Source: decision 0015."""

import msgspec

from strandline.base.errors import OperatorError
from strandline.controller.commands import AlterLabels, LabelsAltered
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.placing.label_changes import LabelChecks
from strandline.controller.records import Record
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.topology.labels import changed_labels
from strandline.protocol.errors import Error


def decide_alter_labels(facts: Facts, command: AlterLabels) -> Decision:
    """Record the new labels, or refuse them with the objections."""
    wanted = _wanted(facts, command)
    checks = LabelChecks(facts, wanted)
    objections = checks.objections()
    if objections and not command.is_forced:
        raise refuse(Error.POLICY_VIOLATION, "\n".join(objections))
    answer = LabelsAltered(
        brokers=tuple(wanted.items()),
        moves=tuple(checks.moves()),
        objections=tuple(objections),
    )
    if command.validate_only:
        return Decision(answer)
    brokers = facts.state.cluster.brokers
    records = [
        _registered(facts, broker, labels)
        for broker, labels in wanted.items()
        if labels != brokers[broker].labels
    ]
    return Decision(answer, tuple(records))


def _wanted(facts: Facts, command: AlterLabels) -> dict[BrokerId, Labels]:
    """The labels that each of the brokers shall have."""
    changes = dict(command.changes)
    if len(changes) < len(command.changes) or not changes:
        raise refuse(Error.INVALID_REQUEST, "name at least one label, and each at most once")
    if len(set(command.brokers)) < len(command.brokers) or not command.brokers:
        raise refuse(Error.INVALID_REQUEST, "name at least one broker, and each at most once")
    wanted = {}
    for broker in command.brokers:
        known = facts.state.cluster.brokers.get(broker)
        if known is None:
            raise refuse(Error.BROKER_ID_NOT_REGISTERED, f"there is no broker {broker}")
        try:
            wanted[broker] = changed_labels(known.labels, changes)
        except OperatorError as error:
            raise refuse(Error.INVALID_CONFIG, str(error)) from None
    return wanted


def _registered(facts: Facts, broker: BrokerId, labels: Labels) -> Record:
    """The present registration with other labels."""
    present = facts.state.registration(broker)
    configured = present.labels if present.configured is None else present.configured
    return msgspec.structs.replace(present, labels=labels, configured=configured)
