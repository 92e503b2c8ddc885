"""Takes down where replicas are to move, each partition for itself; their leaders do the rest.

How:    a new target replaces the one before. A cancel takes the target away; once other voters were
        granted, it asks for the stable ones again: the change is finished first, and then undone.
Source: Kafka's AlterPartitionReassignments (KIP-455, KIP-860); decision 0009."""

from collections import Counter

from strandline.base.errors import ApiError
from strandline.controller.assignments import check_replicas
from strandline.controller.commands import (
    AlterReassignments,
    PartitionResult,
    PartitionResults,
    WantedReplicas,
)
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.records import ReassignmentSet
from strandline.model.cluster import Partition
from strandline.protocol.errors import Error


def decide_alter_reassignments(facts: Facts, command: AlterReassignments) -> Decision:
    """Set or take away what can be; the others are refused one by one."""
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
        target = partition.replicas if partition.pending else ()
    else:
        check_replicas(facts, wanted.replicas)
        count = len(partition.target or partition.replicas)
        if len(wanted.replicas) != count and not may_change_count:
            raise refuse(
                Error.INVALID_REPLICATION_FACTOR,
                f"The replication factor is changed from {count} to {len(wanted.replicas)}",
            )
        target = wanted.replicas
    is_there = not partition.is_moving and target == partition.replicas
    if is_there or (target == partition.target and not partition.by_balancer):
        return []
    return [ReassignmentSet(partition.group, target)]


def _find(facts: Facts, wanted: WantedReplicas) -> Partition:
    topic = facts.state.cluster.topics.get(wanted.topic)
    if topic is None or not 0 <= wanted.index < len(topic.partitions):
        raise refuse(
            Error.UNKNOWN_TOPIC_OR_PARTITION, "This cluster has no such topic or partition."
        )
    return topic.partitions[wanted.index]
