"""Headers are those that kio writes, and ApiVersions is answered so that anybody can read it."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.request_header.v1.header import RequestHeader as HeaderV1
from kio.schema.request_header.v2.header import RequestHeader as HeaderV2
from kio.serial import entity_writer

from strandline.base.errors import ProtocolError
from strandline.protocol.apis import APIS
from strandline.protocol.codec import encode
from strandline.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request,
    encode_request_header,
    encode_response_header,
    frame_response,
)
from strandline.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from strandline.protocol.messages.metadata import MetadataRequest

API_VERSIONS = 18
METADATA = 3


class FileRange:
    """Stands for bytes in a file."""

    size_bytes = 5


@settings(derandomize=True, database=None, deadline=None)
@given(
    st.sampled_from(sorted(APIS)),
    st.data(),
    st.integers(-(2**31), 2**31 - 1),
    st.none() | st.text(max_size=20),
)
def test_a_request_header_is_written_as_kio_writes_it(
    key: int, data: st.DataObject, correlation_id: int, client_id: str | None
) -> None:
    api = APIS[key]
    version = data.draw(st.integers(api.min_version, api.max_version))
    header = RequestHeader(key, version, correlation_id, client_id)
    flexible = api.is_flexible(version)
    written = encode_request_header(header, flexible=flexible)
    buffer = io.BytesIO()
    kio_header = HeaderV2 if flexible else HeaderV1
    entity_writer(kio_header)(
        buffer,
        kio_header(
            request_api_key=key,
            request_api_version=version,
            correlation_id=correlation_id,
            client_id=client_id,
        ),
    )
    assert written == buffer.getvalue()
    assert decode_request_header(b"xx" + written + b"body", 2) == (header, 2 + len(written))


def test_tags_of_a_flexible_header_are_stepped_over() -> None:
    data = bytes.fromhex("0003 000c 00000007 0001 63".replace(" ", "")) + b"\1\5\3abc" + b"rest"
    header, position = decode_request_header(data)
    assert header == RequestHeader(METADATA, 12, 7, "c")
    assert data[position:] == b"rest"


@pytest.mark.parametrize("client_id", (None, "", "client"))
def test_a_request_header_may_be_all_that_there_is(client_id: str | None) -> None:
    for version, flexible in ((8, False), (9, True)):
        header = RequestHeader(METADATA, version, 7, client_id)
        data = encode_request_header(header, flexible=flexible)
        assert decode_request_header(data) == (header, len(data))
        for length in range(len(data)):
            with pytest.raises(ProtocolError):
                decode_request_header(data[:length])


def test_a_whole_request_is_its_header_and_its_message() -> None:
    for version in (8, 9):
        message = MetadataRequest()
        data = encode_request(message, version, correlation_id=7, client_id="c")
        header, position = decode_request_header(data)
        assert header == RequestHeader(METADATA, version, 7, "c")
        assert data[position:] == encode(message, version)


def test_the_header_of_an_unknown_version_ends_with_the_client_id() -> None:
    for key, version in ((API_VERSIONS, 99), (999, 0), (METADATA, -1)):
        header = RequestHeader(key, version, 7, "c")
        data = encode_request_header(header, flexible=False) + b"rest"
        assert decode_request_header(data) == (header, len(data) - 4)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "0003",
        "0003000100000007",  # no client id
        "00030001000000070005" + "6162",  # a client id longer than the frame
        "0003000100000007fffe",  # of length -2
        "00030001000000070001ff",  # not UTF-8
        "0003000c00000007ffff",  # flexible, without its tags
        "0003000c00000007ffff" + "01" + "00" + "7f",  # a tag longer than the frame
    ],
)
def test_a_broken_request_header_is_refused(data: str) -> None:
    with pytest.raises(ProtocolError):
        decode_request_header(bytes.fromhex(data))


def test_response_headers_carry_tags_in_flexible_versions_only() -> None:
    assert encode_response_header(METADATA, 8, 5) == b"\0\0\0\5"
    assert encode_response_header(METADATA, 9, 5) == b"\0\0\0\5\0"
    assert decode_response_header(b"\0\0\0\5rest", METADATA, 8) == (5, 4)
    assert decode_response_header(b"\0\0\0\5\1\7\1xrest", METADATA, 9) == (5, 8)
    assert encode_response_header(999, 9, -5) == b"\xff\xff\xff\xfb"
    assert decode_response_header(b"..\xff\xff\xff\xfb", 999, 9, position=2) == (-5, 6)
    for short in (b"", b"\0\0\0\5"):
        with pytest.raises(ProtocolError):
            decode_response_header(short, METADATA, 9)


def test_the_api_versions_response_always_has_the_oldest_header() -> None:
    for version in range(6):
        assert encode_response_header(API_VERSIONS, version, 5) == b"\0\0\0\5"


def test_an_unknown_version_of_api_versions_is_answered_in_sixteen_bytes() -> None:
    response = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(API_VERSIONS, 0, 4)])
    frame = frame_response(API_VERSIONS, 99, correlation_id=9, parts=[encode(response, 0)])
    assert b"".join(frame) == bytes.fromhex(  # type: ignore[arg-type]
        "00000010" + "00000009" + "0023" + "00000001" + "0012" + "0000" + "0004"
    )


def test_a_frame_counts_its_parts_and_keeps_them() -> None:
    view, file = memoryview(b"records"), FileRange()
    frame = frame_response(METADATA, 9, correlation_id=1, parts=[b"head", view, file])
    assert frame == [b"\0\0\0\x15" + b"\0\0\0\1" + b"\0" + b"head", view, file]
    assert frame[1] is view and frame[2] is file
    assert frame_response(METADATA, 0, correlation_id=1, parts=[file]) == [
        b"\0\0\0\x09" + b"\0\0\0\1",
        file,
    ]
    assert frame_response(METADATA, 0, correlation_id=1, parts=[]) == [b"\0\0\0\4\0\0\0\1"]


@pytest.mark.parametrize("kind", (bytes, bytearray))
def test_a_frame_of_one_part_is_one_piece(kind: type[bytes] | type[bytearray]) -> None:
    for version, tags in ((8, b""), (9, b"\0")):
        frame = frame_response(METADATA, version, correlation_id=1, parts=[kind(b"body")])
        size = (8 + len(tags)).to_bytes(4, "big")
        assert frame == [size + b"\0\0\0\1" + tags + b"body"]
