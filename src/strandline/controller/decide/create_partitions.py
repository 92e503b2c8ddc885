"""Adds partitions to topics. Each topic is decided by itself; its partitions never become fewer.

Source: Kafka's CreatePartitions (KIP-195)."""

from collections import Counter

from strandline.base.errors import ApiError
from strandline.controller.commands import (
    CreatePartitions,
    MorePartitions,
    TopicResult,
    TopicResults,
)
from strandline.controller.decision import Decision, Draft, Facts, refuse
from strandline.controller.names import is_internal
from strandline.controller.placing.assignments import check_manual, check_partition_count, choose
from strandline.controller.placing.chosen_replicas import check_given
from strandline.controller.placing.policies import choose_by_policy, policy_of
from strandline.controller.records import PartitionsAdded
from strandline.model.cluster import Roles, Topic
from strandline.protocol.errors import Error


def decide_create_partitions(facts: Facts, command: CreatePartitions) -> Decision:
    """Extend each named topic, or refuse it."""
    draft = Draft(facts.state)
    named = Counter(wanted.topic for wanted in command.topics)
    results: dict[str, TopicResult] = {}
    for wanted in command.topics:
        try:
            if named[wanted.topic] > 1:
                raise refuse(Error.INVALID_REQUEST, "Duplicate topic name.")
            results[wanted.topic] = _extend(facts, draft, wanted)
        except ApiError as error:
            results[wanted.topic] = TopicResult(
                name=wanted.topic, error_code=error.code, message=error.message
            )
    records = () if command.validate_only else tuple(draft.records)
    return Decision(TopicResults(tuple(results.values())), records)


def _extend(facts: Facts, draft: Draft, wanted: MorePartitions) -> TopicResult:
    topic = facts.state.cluster.topics.get(wanted.topic)
    if topic is None:
        raise refuse(Error.UNKNOWN_TOPIC_OR_PARTITION, "This cluster has no such topic.")
    if is_internal(topic.name):
        raise refuse(Error.INVALID_REQUEST, f"{topic.name} keeps the partitions it was made with")
    present = len(topic.partitions)
    if wanted.count < present:
        raise refuse(
            Error.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {wanted.count} would "
            "not be an increase.",
        )
    if wanted.count == present:
        raise refuse(Error.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    check_partition_count(wanted.count)
    placed = _place(facts, draft, topic, wanted)
    draft.records.append(PartitionsAdded(topic.name, present, draft.assign(placed)))
    return TopicResult(
        name=topic.name,
        id=topic.id,
        partitions=wanted.count,
        replication_factor=len(placed[0].all),
    )


def _place(facts: Facts, draft: Draft, topic: Topic, wanted: MorePartitions) -> list[Roles]:
    more = wanted.count - len(topic.partitions)
    present = topic.partitions[0].roles
    policy = policy_of(topic.configs, facts.state.cluster.cluster_configs)
    if wanted.assignments is None and policy is not None:
        return choose_by_policy(
            facts,
            draft,
            policy=policy,
            configs=topic.configs,
            partitions=more,
            replication_factor=None,
        )
    if wanted.assignments is None:
        factor = len(present.voters)
        return choose(facts, draft, partitions=more, replication_factor=factor)
    if len(wanted.assignments) != more:
        raise refuse(
            Error.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {more} additional partition(s), but {len(wanted.assignments)} "
            "assignment(s) were specified.",
        )
    draft.require_room(more)
    given = check_manual(facts, wanted.assignments, replication_factor=len(present.all))
    voters = len(present.voters)  # A list ends with the observers; their number stays.
    placed = [Roles(one.voters[:voters], one.voters[voters:]) for one in given]
    check_given(facts, policy, placed, topic.configs)
    return placed
