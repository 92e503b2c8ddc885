"""What clients of whole brokers look up: the leader, a producer id, and where a log ends.

Why:    a wrong answer to one of these breaks the same promises as a wrong answer to a Fetch.
How:    one function for each. It hands a Kafka request to a broker's router and reads one value
        from the answer.
Owns:   nothing.
Source: Kafka's clients (Metadata, InitProducerId, ListOffsets)."""

from collections.abc import Callable
from dataclasses import dataclass

from strandline.model.ids import NO_BROKER, BrokerId, Offset
from strandline.protocol.errors import Error
from strandline.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.simulation.world.broker_member import BrokerMember

METADATA_VERSION, INIT_PRODUCER_ID_VERSION, LIST_OFFSETS_VERSION = 9, 4, 7
LATEST, EARLIEST = -1, -2
NO_PRODUCER_ID = -1
NO_OFFSET = Offset(-1)
CONSUMER = -1

Closed = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Leadership:
    """`broker`: NO_BROKER where nobody is known to lead."""

    broker: BrokerId
    epoch: int


def ask_leader(
    member: BrokerMember, topic: str, done: Callable[[BrokerId], None], on_closed: Closed
) -> None:
    """Who leads the topic's one partition; NO_BROKER where that is not known."""
    ask_leadership(member, topic, lambda found: done(found.broker), on_closed)


def ask_leadership(
    member: BrokerMember, topic: str, done: Callable[[Leadership], None], on_closed: Closed
) -> None:
    """The same, and in which epoch."""

    def on_answer(answer: MetadataResponse) -> None:
        partitions = answer.topics[0].partitions
        if partitions:
            one = partitions[0]
            done(Leadership(BrokerId(one.leader_id), one.leader_epoch))
        else:
            done(Leadership(NO_BROKER, -1))

    member.ask(
        MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False),
        MetadataResponse,
        METADATA_VERSION,
        on_answer=on_answer,
        on_closed=on_closed,
    )


def ask_producer_id(member: BrokerMember, done: Callable[[int], None], on_closed: Closed) -> None:
    """An id for an idempotent producer; NO_PRODUCER_ID where there is none now."""

    def on_answer(answer: InitProducerIdResponse) -> None:
        done(NO_PRODUCER_ID if answer.error_code else answer.producer_id)

    member.ask(
        InitProducerIdRequest(transactional_id=None),
        InitProducerIdResponse,
        INIT_PRODUCER_ID_VERSION,
        on_answer=on_answer,
        on_closed=on_closed,
    )


def ask_offset(
    member: BrokerMember,
    topic: str,
    timestamp: int,
    done: Callable[[Offset], None],
    on_closed: Closed,
) -> None:
    """Where the topic's one partition begins (EARLIEST) or ends (LATEST); NO_OFFSET where this
    broker does not say."""

    def on_answer(answer: ListOffsetsResponse) -> None:
        one = answer.topics[0].partitions[0]
        done(NO_OFFSET if one.error_code != Error.NONE else Offset(one.offset))

    wanted = ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp=timestamp)])
    member.ask(
        ListOffsetsRequest(replica_id=CONSUMER, topics=[wanted]),
        ListOffsetsResponse,
        LIST_OFFSETS_VERSION,
        on_answer=on_answer,
        on_closed=on_closed,
    )
