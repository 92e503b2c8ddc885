"""Deletes topics by name or by id. Each topic is decided by itself.

Source: Kafka's DeleteTopics (KIP-516)."""

from collections import Counter

from strandline.base.errors import ApiError
from strandline.controller.commands import (
    NO_UUID,
    DeleteTopics,
    TopicResult,
    TopicResults,
    TopicToDelete,
)
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.names import is_internal
from strandline.controller.records import TopicDeleted
from strandline.model.cluster import Topic
from strandline.protocol.errors import Error


def decide_delete_topics(facts: Facts, command: DeleteTopics) -> Decision:
    """Delete each named topic, or refuse it. A topic that is named twice is refused both times."""
    named = Counter(_name_of(facts, wanted) for wanted in command.topics)
    records: list[TopicDeleted] = []
    results: list[TopicResult] = []
    for wanted in command.topics:
        try:
            topic = _find(facts, wanted)
            if named[topic.name] > 1:
                raise refuse(Error.INVALID_REQUEST, "Duplicate topic name or id.")
            records.append(TopicDeleted(topic.name, topic.id))
            results.append(TopicResult(name=topic.name, id=topic.id))
        except ApiError as error:
            results.append(
                TopicResult(
                    name=wanted.name, id=wanted.id, error_code=error.code, message=error.message
                )
            )
    return Decision(TopicResults(tuple(results)), tuple(records))


def _name_of(facts: Facts, wanted: TopicToDelete) -> str | None:
    return (
        wanted.name if wanted.name is not None else facts.state.cluster.topic_names.get(wanted.id)
    )


def _find(facts: Facts, wanted: TopicToDelete) -> Topic:
    if wanted.name is not None and wanted.id != NO_UUID:
        raise refuse(Error.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if wanted.name is None and wanted.id == NO_UUID:
        raise refuse(Error.INVALID_REQUEST, "Neither topic name nor id were specified.")
    topic = facts.state.cluster.topics.get(_name_of(facts, wanted) or "")
    if topic is None and wanted.name is None:
        raise refuse(Error.UNKNOWN_TOPIC_ID, "This cluster has no topic with this id.")
    if topic is None:
        raise refuse(Error.UNKNOWN_TOPIC_OR_PARTITION, "This cluster has no such topic.")
    if is_internal(topic.name):
        raise refuse(Error.INVALID_REQUEST, f"{topic.name} belongs to the brokers themselves")
    return topic
