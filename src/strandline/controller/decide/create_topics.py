"""Creates topics, each for itself: a legal new name, partitions with their groups and replicas.

Source: Kafka's CreateTopics; reliability reference 4 (illegal names and counts)."""

from collections import Counter
from collections.abc import Iterable

from strandline.base.errors import ApiError
from strandline.config.topic import conflict_of, validate_topic_config
from strandline.controller.commands import (
    USE_DEFAULT,
    CreateTopics,
    NewTopic,
    TopicResult,
    TopicResults,
)
from strandline.controller.decision import Decision, Draft, Facts, refuse
from strandline.controller.names import check_topic_name, is_internal
from strandline.controller.placing.assignments import check_manual, check_partition_count, choose
from strandline.controller.placing.chosen_replicas import check_given
from strandline.controller.placing.policies import (
    canonical_policy,
    choose_by_policy,
    policy_of,
    require_networks,
    with_factor,
)
from strandline.controller.placing.read_replicas import require_source
from strandline.controller.placing.start_offsets import restored_of
from strandline.controller.placing.tiering import require_bucket
from strandline.controller.records import TopicCreated
from strandline.model.cluster import Roles
from strandline.placement.policy.document import Policy
from strandline.protocol.errors import Error

CONFIG_VALUE_CHARACTERS_MAX = 4096


def decide_create_topics(facts: Facts, command: CreateTopics) -> Decision:
    """Create each topic, or refuse it with the reason."""
    draft = Draft(facts.state)
    named = Counter(topic.name for topic in command.topics)
    results: dict[str, TopicResult] = {}
    for topic in command.topics:
        try:
            if named[topic.name] > 1:
                raise refuse(Error.INVALID_REQUEST, "Duplicate topic name.")
            if is_internal(topic.name) and topic.name not in facts.state.cluster.topics:
                raise refuse(
                    Error.INVALID_TOPIC_EXCEPTION,
                    f"{topic.name} is created by the brokers themselves",
                )
            results[topic.name] = add_topic(facts, draft, topic)
        except ApiError as error:
            results[topic.name] = TopicResult(
                name=topic.name, error_code=error.code, message=error.message
            )
    records = () if command.validate_only else tuple(draft.records)
    return Decision(TopicResults(tuple(results.values())), records)


def add_topic(facts: Facts, draft: Draft, topic: NewTopic) -> TopicResult:
    """Check one topic and add its record to the draft; raises ApiError."""
    check_topic_name(topic.name)
    if topic.name in facts.state.cluster.topics:
        raise refuse(Error.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    colliding = draft.colliding(topic.name)
    if colliding is not None:
        raise refuse(
            Error.INVALID_TOPIC_EXCEPTION,
            f"Topic '{topic.name}' collides with existing topic: {colliding}",
        )
    restored, given = restored_of(facts, topic.configs)
    configs = _checked_configs(given)
    cluster = facts.state.cluster.cluster_configs
    conflict = conflict_of(cluster, configs)
    if conflict is not None:
        raise refuse(Error.INVALID_CONFIG, conflict)
    policy = policy_of(configs, cluster)
    if topic.replication_factor != USE_DEFAULT:
        configs, policy = with_factor(configs, cluster, policy)
    require_networks(policy, cluster)
    require_bucket(facts, configs)
    require_source(facts, configs)
    restored.require_buckets(facts, configs)
    if topic.assignments:
        if policy is not None and policy[0] in configs:
            raise refuse(
                Error.INVALID_REQUEST,
                f"A manual partition assignment and {policy[0]} cannot be used at the same time",
            )
        placed = _manual(facts, draft, topic)
        check_given(facts, policy, placed, configs)
    elif policy is None:
        placed = _chosen(facts, draft, topic)
    else:
        placed = _by_policy(facts, draft, topic, configs, policy)
    restored.require_count(len(placed))
    created = TopicCreated(
        name=topic.name,
        id=restored.topic_id or facts.new_uuid(),
        partitions=draft.assign(placed, restored.beginnings),
        configs=configs,
    )
    draft.records.append(created)
    return TopicResult(
        name=topic.name,
        id=created.id,
        partitions=len(placed),
        replication_factor=len(placed[0].all),
    )


def _chosen(facts: Facts, draft: Draft, topic: NewTopic) -> list[Roles]:
    factor = topic.replication_factor
    if factor == USE_DEFAULT:
        factor = facts.capped(facts.config.default_replication_factor)
    return choose(
        facts, draft, partitions=_partition_count(facts, topic), replication_factor=factor
    )


def _by_policy(
    facts: Facts,
    draft: Draft,
    topic: NewTopic,
    configs: dict[str, str],
    policy: tuple[str, Policy],
) -> list[Roles]:
    partitions, factor = _partition_count(facts, topic), topic.replication_factor
    check_partition_count(partitions)
    if factor != USE_DEFAULT and factor < 1:
        raise refuse(
            Error.INVALID_REPLICATION_FACTOR, f"replication factor {factor}: ask for at least 1"
        )
    return choose_by_policy(
        facts,
        draft,
        policy=policy,
        configs=configs,
        partitions=partitions,
        replication_factor=None if factor == USE_DEFAULT else factor,
    )


def _partition_count(facts: Facts, topic: NewTopic) -> int:
    given = topic.partitions
    return facts.config.num_partitions if given == USE_DEFAULT else given


def _manual(facts: Facts, draft: Draft, topic: NewTopic) -> list[Roles]:
    if topic.partitions != USE_DEFAULT or topic.replication_factor != USE_DEFAULT:
        raise refuse(
            Error.INVALID_REQUEST,
            "A manual partition assignment was specified, so the number of partitions and the "
            "replication factor must be left at -1",
        )
    draft.require_room(len(topic.assignments))
    by_index = dict(topic.assignments)
    if len(by_index) != len(topic.assignments):
        raise refuse(
            Error.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes a partition more than once",
        )
    if sorted(by_index) != list(range(len(by_index))):
        raise refuse(
            Error.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    ordered = [by_index[index] for index in range(len(by_index))]
    return check_manual(facts, ordered, replication_factor=None)


def _checked_configs(configs: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    checked: dict[str, str] = {}
    for name, value in configs:
        if value is None:
            raise refuse(
                Error.INVALID_CONFIG, f"Null value not supported for topic configs: {name[:200]}"
            )
        if len(value) > CONFIG_VALUE_CHARACTERS_MAX:
            raise refuse(
                Error.INVALID_CONFIG,
                f"{name[:200]} is longer than {CONFIG_VALUE_CHARACTERS_MAX} characters",
            )
        checked[name] = canonical_policy(name, value)
        reason = validate_topic_config(name, checked[name])
        if reason is not None:
            raise refuse(Error.INVALID_CONFIG, reason)
    return checked
