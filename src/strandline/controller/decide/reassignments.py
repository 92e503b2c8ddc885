"""Records the targets of reassignments; the partitions' leaders carry the moves out.

How:    Each partition is decided by itself. A new target replaces an earlier one. A cancel removes
        the target. If other voters were already granted, a cancel requests the stable ones again:
        the change finishes first, and is then undone.
Source: Kafka's AlterPartitionReassignments (KIP-455, KIP-860); decisions 0009 and 0017."""

from collections import Counter

from strandline.base.errors import ApiError
from strandline.controller.commands import (
    AlterReassignments,
    PartitionResult,
    PartitionResults,
    WantedReplicas,
)
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.placing.assignments import check_replicas
from strandline.controller.records import ReassignmentSet
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error


def decide_alter_reassignments(facts: Facts, command: AlterReassignments) -> Decision:
    """Set or cancel the target of each named partition, or refuse that partition."""
    named = Counter((wanted.topic, wanted.index) for wanted in command.partitions)
    records: list[ReassignmentSet] = []
    results: list[PartitionResult] = []
    for wanted in command.partitions:
        code, message = 0, None
        try:
            if named[wanted.topic, wanted.index] > 1:
                raise refuse(Error.INVALID_REQUEST, "The partition is named more than once.")
            records += _decide_one(facts, wanted, may_change_count=command.may_change_count)
        except ApiError as error:
            code, message = error.code, error.message
        results.append(PartitionResult(wanted.topic, wanted.index, code, message))
    version = facts.state.cluster.version + len(records)
    return Decision(PartitionResults(tuple(results), version), tuple(records))


def _decide_one(
    facts: Facts, wanted: WantedReplicas, *, may_change_count: bool
) -> list[ReassignmentSet]:
    partition = _find(facts, wanted)
    if wanted.replicas is None:
        if not partition.is_moving:
            raise refuse(Error.NO_REASSIGNMENT_IN_PROGRESS, "Nothing moves in this partition.")
        target = partition.roles if partition.pending else Roles(())
    else:
        check_replicas(facts, wanted.replicas)
        count = len((partition.wanted if partition.is_moving else partition.roles).all)
        if len(wanted.replicas) != count and not may_change_count:
            raise refuse(
                Error.INVALID_REPLICATION_FACTOR,
                f"The replication factor is changed from {count} to {len(wanted.replicas)}",
            )
        target = _roles_of(partition, wanted.replicas)
    is_there = not partition.is_moving and target == partition.roles
    if is_there or (target == partition.wanted and not partition.by_balancer):
        return []
    return [ReassignmentSet(partition.group, target.voters, observers=target.observers)]


def _roles_of(partition: Partition, replicas: tuple[BrokerId, ...]) -> Roles:
    """The roles that a list of brokers gives: voters first, observers last, as in Metadata.

    Such a list cannot change roles. So it must keep the numbers of voters and of observers, and a
    broker that stays must keep its role; otherwise this raises ApiError."""
    basis = partition.wanted if partition.is_moving else partition.roles
    voters, observers = len(basis.voters), len(basis.observers)
    if not observers and not partition.observers:
        return Roles(replicas)
    held = f"{partition.name} has {voters} voter{'s' * (voters != 1)} and {observers} "
    held += f"observer{'s' * (observers != 1)}"
    if len(replicas) != voters + observers:
        raise refuse(
            Error.INVALID_REPLICA_ASSIGNMENT,
            f"{held}: name {voters + observers} brokers, the observers last; for other numbers "
            "change the topic's policy",
        )
    target = Roles(replicas[:voters], replicas[voters:])
    for broker in replicas:
        known = basis if broker in basis.all else partition.roles
        if broker in target.voters and broker in known.observers:
            before, after = "an observer", "voters"
        elif broker in target.observers and broker in known.voters:
            before, after = "a voter", "observers"
        else:
            continue
        raise refuse(
            Error.INVALID_REPLICA_ASSIGNMENT,
            f"{held}, which are the last of the list: broker {broker} is {before} and stands among "
            f"the {after}; a list changes no roles",
        )
    return target


def _find(facts: Facts, wanted: WantedReplicas) -> Partition:
    topic = facts.state.cluster.topics.get(wanted.topic)
    if topic is None or not 0 <= wanted.index < len(topic.partitions):
        raise refuse(
            Error.UNKNOWN_TOPIC_OR_PARTITION, "This cluster has no such topic or partition."
        )
    return topic.partitions[wanted.index]
