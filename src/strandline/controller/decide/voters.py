"""Grants a group's leader other members, and takes down that they are stable: one change at a time.

Why:    who lets its data go must know that no configuration in force counts on it; and who is to
        decide in an outage, which configurations there may be.
How:    compare and set: what was asked for rests on a version, and on the target as it is now. A
        command that was carried out before is answered as then.
Source: design section 6, rules R2 and R6; decision 0009."""

from strandline.controller.commands import ReportVoters, RequestVoters, VotersNoted
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.records import VotersGranted, VotersStable
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import GroupId
from strandline.protocol.errors import Error


def decide_request_voters(facts: Facts, command: RequestVoters) -> Decision:
    """Grant the target, whole, from the stable voters that the leader goes by."""
    partition = _find(facts, command.group)
    if command.version != partition.version:
        raise refuse(
            Error.INVALID_REQUEST,
            f"{partition.name}: its voters are of version {partition.version}, not "
            f"{command.version}",
        )
    asked = Roles(command.voters, command.observers)
    if partition.pending:
        if partition.granted == asked:
            return Decision(VotersNoted())
        raise refuse(Error.INVALID_REQUEST, f"{partition.name}: other voters were granted")
    if not command.voters or asked != partition.wanted:
        raise refuse(Error.INVALID_REQUEST, f"{partition.name}: these are not wanted now")
    version = partition.version + 1
    granted = VotersGranted(partition.group, version, command.voters, command.observers)
    return Decision(VotersNoted(), (granted,))


def decide_report_voters(facts: Facts, command: ReportVoters) -> Decision:
    """Note that what was granted is committed."""
    partition = _find(facts, command.group)
    if command.version == partition.version and not partition.pending:
        return Decision(VotersNoted())
    if command.version != partition.version + 1 or not partition.pending:
        raise refuse(
            Error.INVALID_REQUEST,
            f"{partition.name}: no voters of version {command.version} were granted after those "
            f"of {partition.version}",
        )
    if set(command.voters) != set(partition.pending):
        raise refuse(Error.INVALID_REQUEST, f"{partition.name}: other voters were granted")
    return Decision(VotersNoted(), (VotersStable(partition.group, command.version),))


def _find(facts: Facts, group: GroupId) -> Partition:
    partition = facts.state.cluster.groups.get(group)
    if partition is None:
        raise refuse(Error.UNKNOWN_TOPIC_OR_PARTITION, f"no partition has group {group}")
    return partition
