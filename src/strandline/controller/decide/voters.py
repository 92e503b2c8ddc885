"""Grants a group's leader other members, and records that they are stable: one change at a time.

Why:    a broker that deletes its data must know that no configuration in force counts on it. In an
        outage the controller must know which configurations may be in force.
How:    Compare and set: a request rests on a version, on the grant of the leader's epoch, and on
        the present target (`controller.arbiter`). A command that was already carried out gets the
        same answer.
            A leader may request one of these:
        - the whole target;
        - other voters among the usual holders of the log, of its observers one more at a time;
        - the same voters, with another promised write quorum (decision 0041);
        - instead of a grant that it cannot begin, anything that it could request without that
          grant, the stable voters included. The earlier grant may be in force until the leader
          reports this one.
Source: design section 6, rules R2, R3 and R6; decisions 0009, 0020, 0025 and 0029."""

from msgspec import UNSET

from strandline.controller.arbitration.arbiter import register_of
from strandline.controller.commands import ReportVoters, RequestVoters, VotersNoted
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.records import VotersGranted, VotersStable
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import GRANT_MAX, GroupId
from strandline.protocol.errors import Error
from strandline.raft.group.configuration import Configuration, PromisedQuorum, promised_quorum_of

SUPERSEDED_COUNT_MAX = 8
"""How many grants may wait for a report: each of them may be in force."""


def decide_request_voters(facts: Facts, command: RequestVoters) -> Decision:
    """Grant the request as a whole, if the leader knows the present stable voters."""
    partition = find_group(facts, command.group)
    if command.version != partition.version:
        raise refuse(
            Error.INVALID_REQUEST,
            f"{partition.name}: its voters are of version {partition.version}, not "
            f"{command.version}",
        )
    asked = Roles(command.voters, command.observers)
    is_repeated = partition.granted == asked and command.superseded != partition.last_version
    if partition.pending and is_repeated:
        return Decision(VotersNoted())
    if partition.pending and not _may_supersede(partition, command):
        raise refuse(Error.INVALID_REQUEST, f"{partition.name}: other voters were granted")
    given_up = facts.state.cluster.given_up(partition)
    is_wanted = _may_be(partition, asked, command.floor)
    if not command.voters or not is_wanted or given_up & set(command.voters):
        raise refuse(Error.INVALID_REQUEST, f"{partition.name}: these are not wanted now")
    version = partition.last_version + 1
    wanted = Configuration(command.voters, version=version)
    supersedes = bool(partition.pending)
    if register_of(partition).request(command.epoch, wanted, supersedes=supersedes) is None:
        raise refuse(
            Error.INVALID_REQUEST, f"{partition.name}: epoch {command.epoch} was fenced off"
        )
    granted = VotersGranted(partition.group, version, command.voters, command.observers)
    return Decision(VotersNoted(), (granted,))


def _may_supersede(partition: Partition, command: RequestVoters) -> bool:
    """Whether it rests on the last grant, and that is no appointment: the controller repeats an
    appointment as it was granted until the leader reports."""
    return (
        command.superseded == partition.last_version
        and partition.appointment is None
        and not partition.is_fenced
        and len(partition.doubtful) < SUPERSEDED_COUNT_MAX
    )


def _may_be(partition: Partition, asked: Roles, floor: PromisedQuorum) -> bool:
    if partition.is_moving and asked == partition.wanted:
        return True
    is_other = bool(partition.pending) or set(asked.voters) != set(partition.voters)
    # The controller grants a withdrawal even if it knows no promise: an earlier release may have
    # recorded the report.
    is_other |= floor is not UNSET and (floor == 0 or floor != partition.floor)
    promoted = {one for one in asked.voters if one in partition.observers}
    if len(promoted.difference(partition.voters)) > 1:
        return False
    return is_other and asked.has_same_members(partition.roles)


def decide_report_voters(facts: Facts, command: ReportVoters) -> Decision:
    """Record that the granted configuration is committed."""
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
    least = promised_quorum_of(command.floor)
    if register_of(partition).report(command.epoch, command.version, least) is None:
        raise refuse(
            Error.INVALID_REQUEST, f"{partition.name}: epoch {command.epoch} was fenced off"
        )
    stable = VotersStable(partition.group, command.version, command.floor)
    return Decision(VotersNoted(), (stable,))


def next_grant(partition: Partition) -> int:
    """The grant after its present one; raises ApiError if no epoch is left for it."""
    if partition.grant >= GRANT_MAX:
        raise refuse(
            Error.POLICY_VIOLATION,
            f"{partition.name}: it has had all of its {GRANT_MAX} grants: bring a majority of its "
            "voters back, or copy what is left and make the topic anew",
        )
    return partition.grant + 1


def find_group(facts: Facts, group: GroupId) -> Partition:
    """The partition of a group; raises ApiError if there is none."""
    partition = facts.state.cluster.groups.get(group)
    if partition is None:
        raise refuse(Error.UNKNOWN_TOPIC_OR_PARTITION, f"no partition has group {group}")
    return partition
