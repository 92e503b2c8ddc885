"""The header of every message: size, API key, version, correlation id, client id.

Why:    the header says how to read the rest, so it is read by hand, before any table is chosen.
How:    request v1   api_key i16 | api_version i16 | correlation_id i32 | client_id nullable string
        request v2   the same, and a tagged section; client_id keeps its 2-byte length
        response v0  correlation_id i32;  response v1 the same, and a tagged section
        A message of a flexible version has the higher header, but the ApiVersions response always
        has v0: a client reads it before it knows the broker's versions.
Source: reference kafka-protocol 8.4; KIP-482, KIP-511."""

import struct
from collections.abc import Sequence
from functools import cache

import msgspec

from strandline.base.disk import Buffer
from strandline.base.errors import ProtocolError
from strandline.protocol.apis import API_KEYS, APIS, Api
from strandline.protocol.codec import encode
from strandline.protocol.primitives import Part, parts_size_bytes, skip_tags
from strandline.protocol.table import Message

_API_VERSIONS_KEY = API_KEYS["ApiVersions"]
_TAGGED = frozenset(
    (api.key, version)
    for api in APIS.values()
    for version in range(api.min_version, api.max_version + 1)
    if api.is_flexible(version)
)
"""(key, version) of the requests whose header ends with a tagged section."""
_FIXED = struct.Struct(">hhih")
_SIZE_AND_CORRELATION = struct.Struct(">ii")


class RequestHeader(msgspec.Struct, gc=False):
    """The header of a request. The response carries the same `correlation_id`."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request_header(buffer: Buffer, position: int = 0) -> tuple[RequestHeader, int]:
    """Read a header: it, and the position of the message after it. Raises ProtocolError.

    For an API or a version that is not known, the position is the one after the client id: a
    broker can then still answer ApiVersions with version 0, and close anything else."""
    end = len(buffer)
    try:
        api_key, api_version, correlation_id, length = _FIXED.unpack_from(buffer, position)
        position += 10
        client_id = None
        if length >= 0:
            stop = position + length
            if stop > end:
                raise ProtocolError("client id longer than what is left")
            client_id = str(buffer[position:stop], "utf-8")
            position = stop
        elif length < -1:
            raise ProtocolError("client id of negative length")
        if (api_key, api_version) in _TAGGED:
            position = skip_tags(buffer, position, end) if buffer[position] else position + 1
    except (IndexError, struct.error) as error:
        raise ProtocolError("request header is cut short") from error
    except UnicodeDecodeError as error:
        raise ProtocolError("client id is not UTF-8") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def encode_request_header(header: RequestHeader, *, flexible: bool) -> bytes:
    """Write the header of a request, without the size in front."""
    client_id = None if header.client_id is None else header.client_id.encode()
    length = -1 if client_id is None else len(client_id)
    fixed = _FIXED.pack(header.api_key, header.api_version, header.correlation_id, length)
    return fixed + (client_id or b"") + (b"\0" if flexible else b"")


def encode_request(
    message: Message, version: int, *, correlation_id: int, client_id: str | None
) -> bytearray:
    """Write a whole request, without the size in front."""
    api = APIS[message.API_KEY]
    header = RequestHeader(api.key, version, correlation_id, client_id)
    head = encode_request_header(header, flexible=api.is_flexible(version))
    return bytearray(head + encode(message, version))


def encode_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """Write the header of a response, without the size in front."""
    return correlation_id.to_bytes(4, "big", signed=True) + _response_tags(api_key, api_version)


def decode_response_header(
    buffer: Buffer, api_key: int, api_version: int, *, position: int = 0
) -> tuple[int, int]:
    """Read the header of a response: correlation id, and the position of the message after it."""
    try:
        (correlation_id,) = struct.unpack_from(">i", buffer, position)
        position += 4
        if _response_tags(api_key, api_version):
            position = skip_tags(buffer, position, len(buffer))
    except (IndexError, struct.error) as error:
        raise ProtocolError("response header is cut short") from error
    return correlation_id, position


def frame_response(
    api_key: int, api_version: int, *, correlation_id: int, parts: Sequence[Part]
) -> list[Part]:
    """Put size and header in front of an encoded response; the parts themselves are kept."""
    tags = _response_tags(api_key, api_version)
    if len(parts) == 1 and type(parts[0]) is bytes:  # As for nearly every Produce request.
        body = tags + parts[0]
        return [_SIZE_AND_CORRELATION.pack(4 + len(body), correlation_id) + body]
    size = 4 + len(tags) + parts_size_bytes(parts)
    head = _SIZE_AND_CORRELATION.pack(size, correlation_id) + tags
    first = parts[0] if parts else None
    if isinstance(first, (bytes, bytearray)):
        return [head + first, *parts[1:]]
    return [head, *parts]


@cache
def _response_tags(api_key: int, api_version: int) -> bytes:
    """The empty tagged section of header v1, or nothing for v0."""
    api: Api | None = APIS.get(api_key)
    if api is None or api_key == _API_VERSIONS_KEY or not api.is_flexible(api_version):
        return b""
    return b"\0"
