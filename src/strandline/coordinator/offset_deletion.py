"""Deletes some committed offsets of a group.

How:    A group with members gives up only offsets of topics that no member reads. That is known of
        consumers alone, so another kind of group must be empty. The removals are written first,
        then the offsets are gone. A commit that is being written is removed as well.
Source: KIP-496; Kafka's OffsetDelete."""

from dataclasses import dataclass

from strandline.coordinator.answers import DeletedOffset, DeleteOffsetsAnswer
from strandline.coordinator.effects import Turn
from strandline.coordinator.group import Group, GroupState
from strandline.coordinator.log_records import TopicPartition, encode_offset
from strandline.coordinator.requests import DeleteOffsets
from strandline.coordinator.subscriptions import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from strandline.coordinator.write_errors import metadata_error
from strandline.protocol.errors import Error


def on_delete_offsets(group: Group, request: DeleteOffsets, turn: Turn) -> None:
    """Remove offsets, each for itself, or refuse the request as a whole."""
    if group.state is GroupState.DEAD:
        turn.reply(request.token, DeleteOffsetsAnswer(Error.GROUP_ID_NOT_FOUND))
        return
    is_empty = group.state is GroupState.EMPTY
    if not is_empty and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        turn.reply(request.token, DeleteOffsetsAnswer(Error.NON_EMPTY_GROUP))
        return
    read = subscribed_topics(group)
    results = tuple(
        DeletedOffset(
            topic,
            index,
            Error.GROUP_SUBSCRIBED_TO_TOPIC if read is None or topic in read else Error.NONE,
        )
        for topic, index in request.partitions
    )
    answer = DeleteOffsetsAnswer(partitions=results)
    known = set(group.offsets) | set(group.commits_in_flight)
    allowed = {(one.topic, one.partition) for one in results if one.error_code == int(Error.NONE)}
    keys = tuple(sorted(allowed & known))
    if not keys:
        turn.reply(request.token, answer)
        return
    records = tuple(
        encode_offset(group.id, topic, partition, value=None) for topic, partition in keys
    )
    group.persist(turn, records, _Deletion(request.token, keys, answer))


@dataclass(frozen=True, slots=True)
class _Deletion:
    """Removals wait for the log; later commits are written after them."""

    token: int
    keys: tuple[TopicPartition, ...]
    answer: DeleteOffsetsAnswer

    def on_persisted(self, group: Group, error: Error, turn: Turn) -> None:
        """The offsets are gone, or as they were before."""
        if error is not Error.NONE:
            turn.reply(self.token, DeleteOffsetsAnswer(metadata_error(error)))
            return
        for key in self.keys:
            group.offsets.pop(key, None)
        turn.reply(self.token, self.answer)
