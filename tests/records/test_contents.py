"""The walk over records: what it finds, and that both of its twins find the same.

Source: Kafka's DefaultRecord.readFrom and LogValidator; decision 0044."""

import random
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.base.errors import ApiError
from strandline.protocol.errors import Error
from strandline.records import contents
from strandline.records.batch import HEADER_BYTES, read_header
from strandline.records.contents import (
    NO_TIMESTAMP_AT_ALL,
    Fault,
    refused_in_python,
    walk,
    walk_in_python,
)
from strandline.records.record import Record, build_batch, decode_records
from strandline.records.varint import encode_varint

BASE = 1_700_000_000_000


def body(*records: Record) -> bytes:
    return bytes(build_batch(records, base_timestamp=BASE)[HEADER_BYTES:])


def framed(content: bytes) -> bytes:
    """A record of this content, its length before it."""
    return encode_varint(len(content)) + content


def field(value: bytes | None) -> bytes:
    return encode_varint(-1) if value is None else framed(value)


def record(*, offset: int = 0, rest: bytes = b"\x00") -> bytes:
    """A record with key and value; `rest` is what follows them."""
    return framed(b"\x00\x00" + encode_varint(offset) + field(b"k") + field(b"v") + rest)


def fault_of(records: bytes, count: int = 1) -> Fault:
    found = {Fault(walk_in_python(records, count, BASE)[0])}
    with pytest.raises(ApiError) as refusal:
        walk(records, count, BASE)
    assert refusal.value.code == Error.INVALID_RECORD
    return found.pop()


def test_times_and_keys_are_those_of_the_records() -> None:
    records = body(
        Record(0, BASE + 5, b"k", b"v"),
        Record(1, BASE - 7, b"", None, (("h", b"1"), ("h", None))),
        Record(2, BASE + 3, None, b"v"),
        Record(3, BASE, None, None),
    )
    assert walk(records, 4, BASE) == (BASE + 5, BASE - 7, 2)


def test_a_record_without_a_timestamp_counts_for_no_time() -> None:
    records = record() + record(offset=1)
    assert walk(records, 2, -1) == (-1, NO_TIMESTAMP_AT_ALL, -1)


FAULTS: list[tuple[Fault, int, bytes]] = [
    (Fault.RECORD_CUT, 1, b""),
    (Fault.RECORD_CUT, 2, record()),
    (Fault.RECORD_CUT, 5, record()),
    (Fault.RECORD_CUT, 1, b"\xff\xff\xff\xff\x10"),
    (Fault.RECORD_BEYOND_BATCH, 1, encode_varint(9999) + record()[1:]),
    (Fault.RECORD_BEYOND_BATCH, 1, encode_varint(-1) + record()[1:]),
    (Fault.FIELD_CUT, 1, framed(b"")),
    (Fault.FIELD_CUT, 1, framed(b"\x00\x80")),
    (Fault.FIELD_CUT, 1, record(rest=b"")),
    (Fault.FIELD_BEYOND_RECORD, 1, framed(b"\x00\x00\x00" + encode_varint(100) + b"kkk")),
    (Fault.FIELD_LENGTH, 1, framed(b"\x00\x00\x00" + encode_varint(-2) + b"\x01\x00")),
    (Fault.FIELD_LENGTH, 1, framed(b"\x00\x00\x00\x01" + encode_varint(-7) + b"\x00")),
    (Fault.FIELD_LENGTH, 1, record(rest=encode_varint(1) + encode_varint(-5) + field(b"x"))),
    (Fault.FIELD_LENGTH, 1, record(rest=encode_varint(1) + field(b"h") + encode_varint(-5))),
    (Fault.OFFSET_DELTA, 1, record(offset=1)),
    (Fault.OFFSET_DELTA, 1, record(offset=-1)),
    (Fault.OFFSET_DELTA, 2, record() + record()),
    (Fault.OFFSET_DELTA, 2, record() + record(offset=2)),
    (Fault.HEADER_COUNT, 1, record(rest=encode_varint(-2))),
    (Fault.HEADER_COUNT, 1, record(rest=encode_varint(1_000_000))),
    (Fault.HEADER_WITHOUT_NAME, 1, record(rest=encode_varint(1) + field(None) + field(b"x"))),
    (Fault.RECORD_TOO_LONG, 1, record(rest=b"\x00\x00")),
    (Fault.TRAILING_BYTES, 1, record() + record(offset=1)),
    (Fault.TRAILING_BYTES, 1, record() + b"\x00"),
]


@pytest.mark.parametrize(("fault", "count", "records"), FAULTS)
def test_malformed_records_are_refused(fault: Fault, count: int, records: bytes) -> None:
    assert fault_of(records, count) == fault


def test_a_number_of_more_bits_than_its_field_is_refused() -> None:
    long_delta = b"\xff" * 9 + b"\x02"
    assert fault_of(framed(b"\x00" + long_delta + b"\x00\x01\x01\x00")) == Fault.FIELD_CUT
    long_offset = b"\x80" * 4 + b"\x10"
    assert fault_of(framed(b"\x00\x00" + long_offset + b"\x01\x01\x00")) == Fault.FIELD_CUT


def test_a_padded_number_is_read() -> None:
    assert walk(framed(b"\x00\x00\x80\x80\x00\x01\x01\x00"), 1, BASE)


# ---- the twins ----


@pytest.mark.parametrize("seed", range(8))
def test_the_compiled_walk_finds_what_the_python_one_finds(seed: int, compiled: ModuleType) -> None:
    for records, count, base in damaged_batches(seed, rounds=2_500):
        assert compiled.walk(records, count, base) == walk_in_python(records, count, base)
        if walk_in_python(records, count, base)[0]:
            continue
        rules = (seed % 2 == 0, BASE - 1_000, BASE + 1_000, 3)
        assert compiled.refused(records, count, base, *rules) == refused_in_python(
            records, count, base, *rules
        )


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    data=st.binary(max_size=200), count=st.integers(-2, 40), base=st.integers(-(2**63), 2**63 - 1)
)
def test_any_bytes_are_walked_alike(data: bytes, count: int, base: int) -> None:
    found = contents._walk(data, count, base)
    assert found == walk_in_python(data, count, base)
    assert contents._walk(memoryview(bytearray(data)), count, base) == found


@pytest.mark.parametrize("seed", range(4))
def test_what_passes_the_walk_can_be_decoded(seed: int) -> None:
    passed = 0
    for records, count, base in damaged_batches(seed, rounds=1_500):
        fault, _, highest, _, keyless = walk_in_python(records, count, base)
        if fault or not 0 < highest < 1 << 61 or not 0 < base < 1 << 61:
            continue
        batch = build_batch([], base_timestamp=base, last_offset_delta=count - 1)
        batch[57:61] = count.to_bytes(4, "big")
        batch[8:12] = (49 + len(records)).to_bytes(4, "big")
        batch += records
        assert read_header(batch) is not None
        decoded = decode_records(batch)
        assert [one.offset_delta for one in decoded] == list(range(count))
        assert max([-1, *(one.timestamp for one in decoded)]) == highest
        without = [at for at, one in enumerate(decoded) if one.key is None]
        assert keyless == (without[0] if without else -1)
        passed += 1
    assert passed > 100, "some pass"


def damaged_batches(seed: int, *, rounds: int) -> Iterator[tuple[bytes, int, int]]:
    """(records, count, base timestamp) of batches, most of them damaged in a few places."""
    rng = random.Random(seed)
    for _ in range(rounds):
        count = rng.randrange(1, 6)
        records = bytearray(body(*(random_record(rng, at) for at in range(count))))
        for _ in range(rng.choice((0, 0, 1, 1, 2, 5))):
            at = rng.randrange(len(records) + 1)
            kind = rng.randrange(3)
            if kind == 0:
                records[at : at + 1] = bytes((rng.randrange(256),))
            elif kind == 1:
                del records[at : at + rng.randrange(1, 4)]
            else:
                records[at:at] = rng.choice((b"\x00", b"\x01", b"\xff", b"\x80", rng.randbytes(3)))
        base = rng.choice((BASE, BASE, -1, 0, 2**63 - 1, -(2**63)))
        yield bytes(records), count + rng.choice((0, 0, 0, 0, 1, -1)), base


def random_record(rng: random.Random, at: int) -> Record:
    def some(limit: int) -> bytes | None:
        return None if rng.random() < 0.2 else rng.randbytes(rng.randrange(limit))

    headers = tuple((f"h{n}", some(5)) for n in range(rng.choice((0, 0, 1, 3))))
    return Record(at, BASE + rng.randrange(-5_000, 5_000), some(70), some(200), headers)
