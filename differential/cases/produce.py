"""Batches, good and bad; sequences of idempotent producers."""

import os
import time
from collections.abc import Callable

import msgspec

from differential.cases.registry import (
    PAUSE_S,
    READY_TRIES,
    case,
    create,
    fetch_request,
    produce_request,
)
from differential.peer import Peer
from strandline.protocol.errors import Error
from strandline.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from strandline.records.batch import HEADER, HEADER_BYTES, read_header, seal
from strandline.records.record import Record, build_batch, encode_record
from strandline.records.varint import encode_varint

NOW_MS = int(time.time() * 1000)
NEWEST = 12
"""The newest version of Produce with topics by name."""
LAST_SEQUENCE = 2**31 - 1


def raw_batch(body: bytes, count: int, **fields: int) -> bytearray:
    """A batch with a right checksum around any bytes; `fields` replace those of its header."""
    batch = build_batch([Record(timestamp=NOW_MS, value=b"v")])
    header = read_header(batch)
    assert header is not None
    whole = batch[:HEADER_BYTES] + body
    header.batch_length = len(whole) - 12
    header.records_count = count
    header.last_offset_delta = count - 1
    for name, value in fields.items():
        setattr(header, name, value)
    HEADER.pack_into(whole, 0, *msgspec.structs.astuple(header)[1:])
    seal(whole, header)
    return whole


def record(delta: int = 0, *, key: bytes | None = b"k", time_delta: int = 0) -> bytes:
    """One record with the value `v`."""
    return encode_record(Record(offset_delta=delta, key=key, value=b"v"), time_delta)


def _framed(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


def _record_with_headers(count: int, headers: bytes) -> bytes:
    fields = (b"\0", encode_varint(0), encode_varint(0), b"\x02k", b"\x02v", encode_varint(count))
    return _framed(b"".join(fields) + headers)


CONTENTS: dict[str, Callable[[], bytearray]] = {
    "one record": lambda: raw_batch(record(), 1),
    "two records": lambda: raw_batch(record() + record(1), 2),
    "no record": lambda: raw_batch(b"", 0),
    "random bytes": lambda: raw_batch(b"\xff" * 100, 1),
    "more announced": lambda: raw_batch(record(), 5),
    "fewer announced": lambda: raw_batch(record() + record(1), 1),
    "bytes behind the last record": lambda: raw_batch(record() + b"x", 1),
    "deltas 0, 2": lambda: raw_batch(record() + record(2), 2),
    "deltas 1, 0": lambda: raw_batch(record(1) + record(), 2),
    "deltas 0, 0": lambda: raw_batch(record() + record(), 2),
    "negative delta": lambda: raw_batch(record(-1), 1),
    "last delta too large": lambda: raw_batch(record(), 1, last_offset_delta=5),
    "a length of zero": lambda: raw_batch(b"\x00", 1),
    "a negative length": lambda: raw_batch(b"\x01" + record()[1:], 1),
    "a length beyond the batch": lambda: raw_batch(encode_varint(9999) + record()[1:], 1),
    "a key beyond its record": lambda: raw_batch(_framed(b"\0\0\0" + encode_varint(90)), 1),
    "a value beyond its record": lambda: raw_batch(
        _framed(b"\0\0\0\x02k" + encode_varint(90) + b"v"), 1
    ),
    "no key": lambda: raw_batch(record(key=None), 1),
    "a header": lambda: raw_batch(_record_with_headers(1, b"\x02h\x02x"), 1),
    "a header without a value": lambda: raw_batch(_record_with_headers(1, b"\x02h\x01"), 1),
    "a header without a name": lambda: raw_batch(_record_with_headers(1, b"\x01\x02x"), 1),
    "a header whose name is no UTF-8": lambda: raw_batch(
        _record_with_headers(1, b"\x02\xff\x02x"), 1
    ),
    "header count -1": lambda: raw_batch(_record_with_headers(-1, b""), 1),
    "header count -2": lambda: raw_batch(_record_with_headers(-2, b""), 1),
    "more headers announced": lambda: raw_batch(_record_with_headers(3, b"\x02h\x02x"), 1),
    "a varint of six bytes": lambda: raw_batch(b"\x80\x80\x80\x80\x80\x01" + record(), 1),
    "record attributes set": lambda: raw_batch(record()[:1] + b"\x01" + record()[2:], 1),
    "control batch": lambda: raw_batch(record(), 1, attributes=0x20),
    "append time set": lambda: raw_batch(record(), 1, attributes=0x08),
    "delete horizon set": lambda: raw_batch(record(), 1, attributes=0x40),
    "unknown attribute": lambda: raw_batch(record(), 1, attributes=0x100),
    "codec 5": lambda: raw_batch(record(), 1, attributes=5),
    "codec 7": lambda: raw_batch(record(), 1, attributes=7),
    "magic 1": lambda: raw_batch(record(), 1, magic=1),
    "magic 3": lambda: raw_batch(record(), 1, magic=3),
    "wrong checksum": lambda: _spoiled(raw_batch(record(), 1)),
    "cut": lambda: raw_batch(record(), 1)[:-1],
    "bytes behind": lambda: raw_batch(record(), 1) + b"xyz",
    "two batches": lambda: raw_batch(record(), 1) + raw_batch(record(), 1),
    "max timestamp unset": lambda: raw_batch(record(), 1, max_timestamp=-1),
    "both timestamps unset": lambda: raw_batch(record(), 1, max_timestamp=-1, base_timestamp=-1),
    "max timestamp too large": lambda: raw_batch(record(), 1, max_timestamp=NOW_MS + 1000),
    "an hour and more ahead": lambda: raw_batch(
        record(), 1, base_timestamp=NOW_MS + 7_200_000, max_timestamp=NOW_MS + 7_200_000
    ),
    "one record ahead": lambda: raw_batch(record(time_delta=7_200_000), 1, max_timestamp=NOW_MS),
    "a producer id alone": lambda: raw_batch(record(), 1, producer_id=7),
    "transactional": lambda: raw_batch(record(), 1, attributes=0x10),
    "base offset 5": lambda: raw_batch(record(), 1, base_offset=5),
}


def _spoiled(batch: bytearray) -> bytearray:
    batch[-1] ^= 1
    return batch


@case
def contents(peer: Peer) -> None:
    """What is inside a batch; and what a consumer gets of it afterwards."""
    create(peer, "contents", partitions=len(CONTENTS))
    for partition, (label, build) in enumerate(CONTENTS.items()):
        peer.ask(label, produce_request("contents", build(), partition=partition), 8)
        peer.ask(f"{label}: read back", fetch_request("contents", 0, partition=partition), 11)


@case
def contents_for_a_compacted_topic(peer: Peer) -> None:
    """Each record needs a key."""
    create(peer, "contents-compacted", configs={"cleanup.policy": "compact"})
    for label in ("one record", "no key", "two batches"):
        peer.ask(label, produce_request("contents-compacted", CONTENTS[label]()), 8)
    mixed = raw_batch(record() + record(1, key=None) + record(2, key=None), 3)
    peer.ask("the second and third without a key", produce_request("contents-compacted", mixed), 8)


@case
def contents_with_the_time_of_append(peer: Peer) -> None:
    """The broker's clock replaces the times of the records."""
    create(peer, "append-time", configs={"message.timestamp.type": "LogAppendTime"})
    for label in ("one record", "max timestamp unset", "an hour and more ahead"):
        peer.ask(label, produce_request("append-time", CONTENTS[label]()), 8)


@case
def by_each_version(peer: Peer) -> None:
    """The same batch by each version."""
    create(peer, "versions")
    for version in range(3, NEWEST + 1):
        peer.ask(f"v{version}", produce_request("versions", CONTENTS["two records"]()), version)


@case
def to_odd_places(peer: Peer) -> None:
    """Topics and partitions that are missing, acks that are none, no records."""
    create(peer, "places")
    batch = CONTENTS["one record"]()
    peer.ask("missing topic", produce_request("places-missing", batch), 8)
    peer.ask("illegal topic", produce_request("a/b", batch), 8)
    peer.ask("missing partition", produce_request("places", batch, partition=7), 8)
    peer.ask("negative partition", produce_request("places", batch, partition=-1), 8)
    peer.ask("internal topic", produce_request("__consumer_offsets", batch), 8)
    peer.ask("acks 2", produce_request("places", batch, acks=2), 8)
    peer.ask("acks 1", produce_request("places", batch, acks=1), 8)
    peer.ask("empty records", produce_request("places", b""), 8)
    peer.ask("null records", produce_request("places", None), 8)


@case
def too_large(peer: Peer) -> None:
    """Beyond max.message.bytes."""
    create(peer, "large", configs={"max.message.bytes": "1000"})
    body = encode_record(Record(value=os.urandom(2000)), 0)
    peer.ask("large", produce_request("large", raw_batch(body, 1)), 8)


def _new_producer(peer: Peer) -> InitProducerIdResponse:
    """A producer id, once the broker has a block of them."""
    for _ in range(READY_TRIES):
        answer = peer.ask_silently(InitProducerIdRequest(transactional_id=None), 4)
        assert isinstance(answer, InitProducerIdResponse)
        if answer.error_code == Error.NONE:
            return answer
        time.sleep(PAUSE_S)
    raise TimeoutError(f"{peer.name} gives no producer ids")


@case
def sequences(peer: Peer) -> None:
    """First sequences, repeats, gaps, the wrap, epochs."""
    create(peer, "sequences")
    answer = _new_producer(peer)
    for label, epoch, sequence, count in (
        ("unknown producer, first sequence 7", 0, 7, 1),
        ("next", 0, 8, 1),
        ("repeated", 0, 8, 1),
        ("a gap", 0, 11, 1),
        ("an earlier one", 0, 2, 1),
        ("new epoch, sequence 5", 1, 5, 1),
        ("new epoch, sequence 0", 1, 0, 1),
        ("old epoch", 0, 9, 1),
        ("without a sequence", 1, -1, 1),
    ):
        _send(peer, label, answer.producer_id, epoch=epoch, sequence=sequence, count=count)
    for label, sequence, count in (
        ("two before the last", LAST_SEQUENCE - 2, 2),
        ("four over the wrap", LAST_SEQUENCE, 4),
        ("repeated over the wrap", LAST_SEQUENCE, 4),
        ("after the wrap", 3, 1),
        ("a gap after the wrap", 9, 1),
    ):
        _send(peer, label, answer.producer_id + 500, epoch=0, sequence=sequence, count=count)


def _send(
    peer: Peer, label: str, producer_id: int, *, epoch: int, sequence: int, count: int
) -> None:
    body = b"".join(record(delta) for delta in range(count))
    batch = raw_batch(
        body, count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )
    peer.ask(label, produce_request("sequences", batch), 8)


@case
def producer_ids(peer: Peer) -> None:
    """InitProducerId without a transactional id; with an id and epoch of before."""
    _new_producer(peer)
    for version in range(6):
        peer.ask(f"v{version}", InitProducerIdRequest(transactional_id=None), version)
    for label, producer_id, epoch in (
        ("unknown id", 123456, 3),
        ("an epoch alone", -1, 3),
        ("an id alone", 9, -1),
    ):
        request = InitProducerIdRequest(
            transactional_id=None, producer_id=producer_id, producer_epoch=epoch
        )
        peer.ask(label, request, 3)
    peer.ask("empty transactional id", InitProducerIdRequest(transactional_id=""), 3)
