"""Transactional requests, which a broker without transactions refuses."""

from differential.cases.produce import CONTENTS, raw_batch, record
from differential.cases.registry import case, create, fetch_request, produce_request
from differential.peer import Peer
from strandline.protocol.messages.find_coordinator import FindCoordinatorRequest
from strandline.protocol.messages.init_producer_id import InitProducerIdRequest
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

COMMITTED = 1
"""The isolation level that sees committed records only."""


@case
def refused(peer: Peer) -> None:
    """A coordinator of transactions, a producer id by name, a batch in a transaction."""
    for label, request, version in (
        ("coordinator", FindCoordinatorRequest(key="tx", key_type=1), 3),
        ("coordinators", FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"]), 4),
        ("producer id", InitProducerIdRequest("tx", transaction_timeout_ms=1000), 4),
    ):
        answer = peer.ask_silently(request, version)
        refusals = [answer, *getattr(answer, "coordinators", [])]
        peer.note(label, any(getattr(one, "error_code", 0) for one in refusals))
    create(peer, "transactional")
    plain = produce_request("transactional", CONTENTS["one record"]())
    plain.transactional_id = "tx"
    peer.ask("a plain batch by a transaction", plain, 8)
    batch = raw_batch(
        record(), 1, attributes=0x10, producer_id=7, producer_epoch=0, base_sequence=0
    )
    peer.ask("a batch outside of one", produce_request("transactional", batch), 8)


@case
def read_committed(peer: Peer) -> None:
    """Reads of committed records where no transaction is."""
    create(peer, "committed")
    peer.ask_silently(produce_request("committed", CONTENTS["two records"]()), 8)
    for version in (4, 7, 11, 12):
        request = fetch_request("committed", 0)
        request.isolation_level = COMMITTED
        peer.ask(f"fetched by v{version}", request, version)
    for label, level in (("uncommitted", 0), ("committed", 1), ("no such level", 7)):
        for place, timestamp in (("latest", -1), ("earliest", -2), ("newest", -3)):
            one = ListOffsetsPartition(timestamp=timestamp)
            topics = [ListOffsetsTopic("committed", [one])]
            peer.ask(f"{label}, {place}", ListOffsetsRequest(-1, level, topics), 7)
