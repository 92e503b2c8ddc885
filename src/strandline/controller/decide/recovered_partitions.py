"""Lets a partition begin anew with what buckets have of it, when an operator gives up all its logs.

Why:    buckets may have more than the logs that are left, or all that is left.
How:    The record puts another Raft group in the partition's place. Its log begins where the
        buckets' records end, its epochs in the next grant. Replicas of the earlier group belong to
        no partition any more: brokers remove them, also those that come back later. So nothing
        that they have, or acknowledge, can join the new log.
            The controller refuses this where a declared loss would not be needed either, and where
        a log that is left ends as far as the buckets do or further.
Source: decisions 0027 and 0067."""

from strandline.config.topic import TopicConfig
from strandline.controller.arbitration.survivors import GroupStatus, SurvivingLog
from strandline.controller.decide.declared_losses import (
    BY_CHARACTERS_MAX,
    assess_logs,
    logs_left,
    lost_replicas,
    require_shown,
    shown_of,
    why_refused,
)
from strandline.controller.decide.voters import find_group, next_grant
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.loss_commands import LossDeclared, RecoverPartition
from strandline.controller.records import Assignment, PartitionRecovered
from strandline.model.cluster import Loss, Partition
from strandline.model.ids import BrokerId, GroupId
from strandline.protocol.errors import Error


def decide_recover_partition(facts: Facts, command: RecoverPartition) -> Decision:
    """Begin the partition anew, or refuse with the reason."""
    partition = find_group(facts, command.group)
    for last in partition.losses[-1:]:
        is_repeated = last.grant == partition.grant == command.grant + 1
        if is_repeated and last.history and last.history == command.history:
            return Decision(LossDeclared(last, command.shown))
    logs = logs_left(facts, partition, command)
    standing = assess_logs(partition, logs).standing
    why = "" if standing is GroupStatus.NO_LOG else why_refused(facts, partition, logs, standing)
    if why:
        raise refuse(Error.POLICY_VIOLATION, why)
    _require_buckets(facts, partition, command)
    end = max(one.end for one in command.history)
    _require_shorter(partition, logs, end)
    voters = _voters(facts, partition)
    loss = Loss(
        grant=next_grant(partition),
        lost=lost_replicas(facts, command.brokers),
        survivors=(),
        ends=(),
        leader=voters[0],
        committed=end,
        end=end,
        by=command.by[:BY_CHARACTERS_MAX],
        at_ms=command.at_ms,
        history=command.history,
    )
    answer = LossDeclared(loss, shown_of(logs))
    if command.validate_only:
        return Decision(answer)
    require_shown(partition, answer, command)
    assignment = Assignment(
        GroupId(facts.state.cluster.next_group),
        partition.replicas,
        partition.observers,
        start_offset=end,
        first_grant=loss.grant,
        history=command.history,
    )
    return Decision(answer, (PartitionRecovered(partition.group, assignment, voters, loss),))


def _require_buckets(facts: Facts, partition: Partition, command: RecoverPartition) -> None:
    cluster = facts.state.cluster
    topic = cluster.topics[partition.topic]
    config = TopicConfig.from_overrides(cluster.cluster_configs, topic.configs)
    if not config.remote_storage_enable:
        raise refuse(Error.INVALID_REQUEST, f"topic {topic.name} has no tiered storage")
    if not command.history or any(one.start >= one.end for one in command.history):
        raise refuse(Error.INVALID_REQUEST, f"{partition.name}: name buckets that have records")
    for one in command.history:
        if one.bucket not in facts.buckets:
            raise refuse(Error.INVALID_REQUEST, f"this cluster has no bucket {one.bucket}")


def _require_shorter(partition: Partition, logs: tuple[SurvivingLog, ...], end: int) -> None:
    """Refuse if a log that is left has what the buckets have, or more."""
    for one in logs:
        if one.end < end or (one.has_lost and one.end == end):
            continue
        what = (
            "which may not lead because it lost its log, has more: stop it and give it up too"
            if one.has_lost
            else "goes on without buckets: declare the loss without --from-bucket"
        )
        raise refuse(
            Error.POLICY_VIOLATION,
            f"{partition.name}: the buckets end at offset {end}; the log of broker {one.broker}, "
            f"which ends at offset {one.end}, {what}",
        )


def _voters(facts: Facts, partition: Partition) -> tuple[BrokerId, ...]:
    """The replicas that vote at first: those whose brokers are heard. Others join them later."""
    voters = [one for one in partition.replicas if one in facts.alive]
    voters = voters or [one for one in partition.observers if one in facts.alive]
    if not voters:
        raise refuse(
            Error.POLICY_VIOLATION,
            f"{partition.name}: none of its brokers {', '.join(map(str, partition.hosts))} is up: "
            "start one of them, with an empty disk if need be",
        )
    return tuple(voters)
