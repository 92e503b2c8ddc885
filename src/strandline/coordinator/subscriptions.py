"""Which topics the members of a group read.

Why:    offsets of a topic that a member reads are in use: they neither expire nor may be deleted.
How:    from the members' metadata for the protocol of the group, as Kafka's consumers write it.
Source: KIP-211, KIP-496."""

from strandline.base.errors import ProtocolError
from strandline.coordinator.group import Group, GroupState
from strandline.protocol.consumer import decode_subscription

CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(group: Group) -> set[str] | None:
    """The topics that members read; None when that is not known: then it may be any topic."""
    if group.state is GroupState.EMPTY:
        return set()
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    topics: set[str] = set()
    for member in group.roster:
        try:
            topics.update(decode_subscription(member.protocols[group.protocol_name or ""]).topics)
        except (ProtocolError, KeyError):
            return None
    return topics
