"""Grants a group's leader other members, and takes down that they are stable: one change at a time.

Why:    who lets its data go must know that no configuration in force counts on it; and who is to
        decide in an outage, which configurations there may be.
How:    compare and set: what was asked for rests on a version, on the grant of the leader's epoch
        and on the target as it is now (`controller.arbiter`). A command that was carried out before
        is answered as then.
            What may be asked for is the whole target, or other voters among those who hold the log
        when all are well: of its observers one more at a time.
Source: design section 6, rules R2 and R6; decisions 0009, 0020 and 0025."""

from strandline.controller.arbiter import register_of
from strandline.controller.commands import ReportVoters, RequestVoters, VotersNoted
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.records import VotersGranted, VotersStable
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import GroupId
from strandline.protocol.errors import Error
from strandline.raft.configuration import Configuration


def decide_request_voters(facts: Facts, command: RequestVoters) -> Decision:
    """Grant what is asked for, whole, from the stable voters that the leader goes by."""
    partition = find_group(facts, command.group)
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
    if not command.voters or not _may_be(partition, asked):
        raise refuse(Error.INVALID_REQUEST, f"{partition.name}: these are not wanted now")
    version = partition.last_version + 1
    wanted = Configuration(command.voters, version=version)
    if register_of(partition).request(command.epoch, wanted) is None:
        raise refuse(
            Error.INVALID_REQUEST, f"{partition.name}: epoch {command.epoch} was fenced off"
        )
    granted = VotersGranted(partition.group, version, command.voters, command.observers)
    return Decision(VotersNoted(), (granted,))


def _may_be(partition: Partition, asked: Roles) -> bool:
    if partition.is_moving and asked == partition.wanted:
        return True
    is_other = set(asked.voters) != set(partition.voters)
    promoted = {one for one in asked.voters if one in partition.observers}
    if len(promoted.difference(partition.voters)) > 1:
        return False
    return is_other and asked.has_same_members(partition.roles)


def decide_report_voters(facts: Facts, command: ReportVoters) -> Decision:
    """Note that what was granted is committed."""
    partition = find_group(facts, command.group)
    if command.version == partition.version and not partition.pending:
        return Decision(VotersNoted())
    if command.version != partition.last_version or not partition.pending:
        raise refuse(
            Error.INVALID_REQUEST,
            f"{partition.name}: no voters of version {command.version} were granted after those "
            f"of {partition.version}",
        )
    if set(command.voters) != set(partition.pending):
        raise refuse(Error.INVALID_REQUEST, f"{partition.name}: other voters were granted")
    if register_of(partition).report(command.epoch, command.version) is None:
        raise refuse(
            Error.INVALID_REQUEST, f"{partition.name}: epoch {command.epoch} was fenced off"
        )
    return Decision(VotersNoted(), (VotersStable(partition.group, command.version),))


def find_group(facts: Facts, group: GroupId) -> Partition:
    """The partition of a group; raises ApiError where there is none."""
    partition = facts.state.cluster.groups.get(group)
    if partition is None:
        raise refuse(Error.UNKNOWN_TOPIC_OR_PARTITION, f"no partition has group {group}")
    return partition
