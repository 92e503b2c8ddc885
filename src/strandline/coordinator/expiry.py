"""Removes committed offsets whose retention is over or whose topic is deleted.

How:    The clock of an offset runs from its commit. While a group has members, only the offsets of
        topics that none of them reads expire; once all members have left, the clock runs from then.
        A group without members and offsets is removed. An offset whose commit is being written does
        not expire.
Source: KIP-211 (expiry), KIP-496; Kafka's `OffsetExpirationCondition`."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from strandline.coordinator.commits import remove_group
from strandline.coordinator.effects import Turn
from strandline.coordinator.group import Group, GroupState
from strandline.coordinator.log_records import NEVER, CommittedOffset, TopicPartition, encode_offset
from strandline.coordinator.subscriptions import subscribed_topics
from strandline.protocol.errors import Error


def on_expire(group: Group, turn: Turn) -> None:
    """Remove expired offsets, and the group with its last offset."""
    if group.state is GroupState.DEAD:
        return
    ended = _ended(group, turn)
    is_bare = len(ended) == len(group.offsets) and not group.commits_in_flight
    if group.state is GroupState.EMPTY and is_bare and not group.roster.pending:
        remove_group(group, turn, None)
    else:
        _forget(group, turn, ended)


def on_topics_deleted(group: Group, topics: Mapping[str, UUID], turn: Turn) -> None:
    """Remove the offsets of deleted topics: a topic created anew under the name has others."""
    if group.state is GroupState.DEAD:
        return
    keys = {
        key
        for key, committed in group.offsets.items()
        if key[0] in topics and committed.belongs_to(topics[key[0]])
    }
    keys |= {key for key in group.commits_in_flight if key[0] in topics}
    _forget(group, turn, sorted(keys))


def _ended(group: Group, turn: Turn) -> list[TopicPartition]:
    is_settled = group.state in (GroupState.EMPTY, GroupState.STABLE)
    subscribed = subscribed_topics(group) if is_settled else None
    if subscribed is None:
        return []
    return sorted(
        key
        for key, committed in group.offsets.items()
        if key not in group.commits_in_flight
        and key[0] not in subscribed
        and _is_over(group, committed, turn)
    )


def _is_over(group: Group, committed: CommittedOffset, turn: Turn) -> bool:
    if committed.expire_ms != NEVER:
        return turn.now_ms >= committed.expire_ms
    since_ms = committed.commit_ms
    if group.protocol_type is not None and group.state is GroupState.EMPTY:
        since_ms = max(since_ms, group.state_since_ms)
    return turn.now_ms - since_ms >= turn.settings.offsets_retention_ms


def _forget(group: Group, turn: Turn, keys: list[TopicPartition]) -> None:
    if not keys:
        return
    records = tuple(
        encode_offset(group.id, topic, partition, value=None) for topic, partition in keys
    )
    group.persist(turn, records, _Removing(tuple(keys)))


@dataclass(frozen=True, slots=True)
class _Removing:
    """Removals wait for the log; later commits are written after them."""

    keys: tuple[TopicPartition, ...]

    def on_persisted(self, group: Group, error: Error, turn: Turn) -> None:
        """Remove the offsets, or try again at the next sweep."""
        if error is Error.NONE:
            for key in self.keys:
                group.offsets.pop(key, None)
