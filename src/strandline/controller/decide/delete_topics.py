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
    """Delete each named topic, or refuse it. A topic that is named twice, in one way or in two, is
    refused once."""
    named = Counter(_name_of(facts, wanted) for wanted in command.topics)
    repeated: dict[str, TopicResult] = {}
    records: list[TopicDeleted] = []
    results: list[TopicResult] = []
    for wanted in command.topics:
        try:
            topic = _find(facts, wanted)
            if named[topic.name] > 1:
                repeated[topic.name] = _add_repeat(repeated.get(topic.name), wanted)
                continue
            records.append(TopicDeleted(topic.name, topic.id))
            results.append(TopicResult(name=topic.name, id=topic.id))
        except ApiError as error:
            results.append(
                TopicResult(
                    name=wanted.name, id=wanted.id, error_code=error.code, message=error.message
                )
            )
    return Decision(TopicResults((*results, *repeated.values())), tuple(records))


def _add_repeat(before: TopicResult | None, wanted: TopicToDelete) -> TopicResult:
    """The refusal of a topic that stands in the request again, with each name and id it has."""
    name, topic_id = wanted.name, wanted.id
    if before is not None:
        name = before.name if name is None else name
        topic_id = before.id if topic_id == NO_UUID else topic_id
    return TopicResult(
        name=name,
        id=topic_id,
        error_code=Error.INVALID_REQUEST,
        message="Duplicate topic name or id.",
    )


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
