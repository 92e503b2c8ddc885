"""Hands out producer ids in blocks, so that a new producer seldom costs a commit.

Source: Kafka's AllocateProducerIds (KIP-730)."""

from strandline.controller.commands import AllocateProducerIds, ProducerIds
from strandline.controller.decision import Decision, Facts
from strandline.controller.records import ProducerIdsAllocated

PRODUCER_IDS_PER_BLOCK = 1_000


def decide_allocate_producer_ids(facts: Facts, command: AllocateProducerIds) -> Decision:
    """The next block. What a broker does not use before it stops is never used."""
    first = facts.state.cluster.next_producer_id
    return Decision(
        ProducerIds(first, PRODUCER_IDS_PER_BLOCK),
        (ProducerIdsAllocated(command.broker, first, PRODUCER_IDS_PER_BLOCK),),
    )
