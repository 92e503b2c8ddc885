"""What reads the input in this process, and what has to hold afterwards.

How:    a target takes bytes. It passes if they are read, or refused with an error of the tree that
        such input may raise. Anything else is a finding: another exception, a message that is not
        itself after a round trip, a batch that is accepted and cannot be read, output beyond its
        bound."""

from collections.abc import Callable
from random import Random

from fuzz import samples
from fuzz.access_targets import ACCESS_TARGETS
from strandline.base.errors import ApiError, ProtocolError
from strandline.protocol.apis import APIS
from strandline.protocol.codec import decode, encode
from strandline.protocol.consumer import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from strandline.protocol.headers import decode_request_header
from strandline.records import contents
from strandline.records.batch import (
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    BatchHeader,
    crc_of,
    read_header,
    seal,
)
from strandline.records.codec import NONE, decompress
from strandline.records.record import decode_records
from strandline.records.validate import validate_produced
from strandline.records.validate_contents import ContentRules, validate_contents
from strandline.spark.decoding.decode import decode as decode_batches
from strandline.spark.decoding.errors import DamagedBatchError

OUTPUT_BYTES_MAX = 1 << 20
PRODUCE_VERSION = 9
MAGIC_AT = 16
BASE_MS = 1_700_000_000_000


def read_request(data: bytes) -> None:
    """A request is refused, or it is itself after a round trip."""
    try:
        header, position = decode_request_header(data)
        api = APIS.get(header.api_key)
        if api is None or not api.supports(header.api_version):
            return
        message, _ = decode(api.request, data, position, header.api_version)
    except ProtocolError:
        return
    written = encode(message, header.api_version)
    again, end = decode(api.request, written, 0, header.api_version)
    assert end == len(written), f"{api.name}: {len(written) - end} bytes are left"
    assert encode(again, header.api_version) == written, f"{api.name} changes in a round trip"


def read_response(data: bytes) -> None:
    """A client reads an answer, or refuses it. Two bytes in front choose API and version."""
    if len(data) < 2:
        return
    apis = list(APIS.values())
    api = apis[data[0] % len(apis)]
    version = api.min_version + data[1] % (api.max_version - api.min_version + 1)
    try:
        decode(api.response, data, 2, version)
    except ProtocolError:
        return


def read_batches(data: bytes) -> None:
    """What is accepted from a producer can be read by each consumer."""
    view = memoryview(bytearray(data))
    try:
        headers = validate_produced(view, max_bytes=1 << 20, produce_version=PRODUCE_VERSION)
        for header in headers:
            validate_contents(view, header, ContentRules())
    except ApiError:
        return
    for header in headers:
        records = decode_records(view, header.position)
        assert len(records) == header.records_count, "an accepted batch has other records"
        assert [one.offset_delta for one in records] == list(range(len(records)))
        stored = read_header(view, header.position)
        assert stored is not None
        # As in Kafka, times before 1970 count as none.
        highest = max(-1, *(one.timestamp for one in records))
        assert stored.max_timestamp == highest, "another time"
        assert crc_of(view, header.position, header.size) == stored.crc, "another checksum"


def sealed(data: bytes) -> tuple[bytes, BatchHeader] | None:
    """Bytes as one batch with a right checksum and a right length, as a faulty client sends it;
    None if there are too few, or its header cannot be."""
    if len(data) <= HEADER_BYTES:
        return None
    changed = bytearray(data)
    changed[8:12] = (len(data) - LENGTH_END).to_bytes(4, "big")
    changed[MAGIC_AT] = MAGIC
    try:
        header = read_header(changed)
    except ApiError:
        return None
    assert header is not None
    seal(changed, header)
    return bytes(changed), header


def read_sealed_batches(data: bytes) -> None:
    """The same behind a right checksum and a right length."""
    batch = sealed(data)
    if batch is not None:
        read_batches(batch[0])


def walk_records(data: bytes) -> None:
    """The compiled walk over records finds what the one in Python finds. Byte 0 is their count."""
    if data and contents.IS_COMPILED:
        one = contents._walk(data[1:], data[0], BASE_MS)
        other = contents.walk_in_python(data[1:], data[0], BASE_MS)
        assert one == other, f"{one} and {other}"


def decode_columns(data: bytes) -> None:
    """A batch behind a right checksum becomes the columns that its single records have, or is
    refused."""
    made = sealed(data)
    if made is None:
        return
    changed, header = made
    names = ("key", "value", "timestamp", "headers")
    try:
        batch = decode_batches(
            changed,
            columns=names,
            topic="fuzzed",
            partition=0,
            first_offset=0,
            end_offset=1 << 62,
        ).batch
    except DamagedBatchError:
        return
    records = [] if header.is_control else decode_records(changed)
    assert batch.column("key").to_pylist() == [one.key for one in records]
    assert batch.column("value").to_pylist() == [one.value for one in records]
    counts = [len(one or ()) for one in batch.column("headers").to_pylist()]
    assert counts == [len(one.headers) for one in records]
    times = batch.column("timestamp").cast("int64").to_pylist()
    assert times == [one.timestamp * 1000 for one in records]


def read_payload(data: bytes) -> None:
    """The output of a codec never exceeds its bound. The first byte chooses the codec."""
    if not data:
        return
    try:
        output = decompress(data[0] % 8, memoryview(data)[1:], bytes_max=OUTPUT_BYTES_MAX)
    except ApiError:
        return
    assert len(output) <= max(OUTPUT_BYTES_MAX, len(data)), f"{len(output)} bytes of output"


def read_member_blobs(data: bytes) -> None:
    """Subscriptions and assignments, which members of groups write."""
    for cls in (ConsumerProtocolSubscription, ConsumerProtocolAssignment):
        for version in range(4):
            try:
                decode(cls, data, 0, version)
            except ProtocolError:
                continue


def _response(random: Random) -> bytes:
    apis = list(APIS.values())
    place = random.randrange(len(apis))
    api = apis[place]
    version = random.randint(api.min_version, api.max_version)
    body = samples.message(api.response, version, random)
    return bytes([place, version - api.min_version]) + encode(body, version)


def _walked_records(random: Random) -> bytes:
    whole = samples.batch(random, codec=NONE)
    header = read_header(whole)
    assert header is not None
    return bytes([header.records_count]) + whole[HEADER_BYTES:]


def _member_blob(random: Random) -> bytes:
    cls = random.choice((ConsumerProtocolSubscription, ConsumerProtocolAssignment))
    return bytes(encode(samples.message(cls, 3, random), 3))


TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[Random], bytes]]] = {
    "request": (read_request, samples.request),
    "response": (read_response, _response),
    "batches": (read_batches, samples.batch),
    "sealed": (read_sealed_batches, samples.batch),
    "walk": (walk_records, _walked_records),
    "columns": (decode_columns, samples.batch),
    "payload": (read_payload, samples.payload),
    "member": (read_member_blobs, _member_blob),
    **ACCESS_TARGETS,
}
"""{name: (what reads the input, what draws well-formed input)}."""
