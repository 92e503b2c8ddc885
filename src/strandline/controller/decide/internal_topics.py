"""Creates the internal topics when a broker first needs them.

Source: Kafka's automatic creation of `__consumer_offsets`."""

from strandline.controller.commands import (
    USE_DEFAULT,
    EnsureInternalTopic,
    NewTopic,
    TopicResult,
    TopicResults,
)
from strandline.controller.decide.create_topics import add_topic
from strandline.controller.decision import Decision, Draft, Facts, refuse
from strandline.controller.names import is_internal
from strandline.controller.placing.policies import policy_of
from strandline.placement.policy.confluent import CONFIG as CONSTRAINTS
from strandline.protocol.errors import Error

OFFSETS_TOPIC_CONFIGS = (
    ("cleanup.policy", "compact"),
    ("segment.bytes", str(100 * 1024 * 1024)),
)


def decide_ensure_internal_topic(facts: Facts, command: EnsureInternalTopic) -> Decision:
    """Create it as the cluster's configuration says, unless it is there already."""
    if not is_internal(command.name):
        raise refuse(
            Error.INVALID_TOPIC_EXCEPTION, f"{command.name!a} is not a topic of the brokers"
        )
    topic = facts.state.cluster.topics.get(command.name)
    if topic is not None:
        present = TopicResult(
            name=topic.name,
            id=topic.id,
            partitions=len(topic.partitions),
            replication_factor=len(topic.partitions[0].roles.all),
        )
        return Decision(TopicResults((present,)))
    config = facts.config
    factor = facts.capped(config.offsets_topic_replication_factor)
    configs: tuple[tuple[str, str], ...] = OFFSETS_TOPIC_CONFIGS
    if config.confluent_offsets_topic_placement_constraints:
        configs += ((CONSTRAINTS, config.confluent_offsets_topic_placement_constraints),)
    by_policy = policy_of(dict(configs), facts.state.cluster.cluster_configs)
    draft = Draft(facts.state)
    wanted = NewTopic(
        name=command.name,
        partitions=config.offsets_topic_num_partitions,
        replication_factor=USE_DEFAULT if by_policy is not None else factor,
        configs=configs,
    )
    return Decision(TopicResults((add_topic(facts, draft, wanted),)), tuple(draft.records))
