"""Requests that no table can write: unknown keys and versions, cut frames."""

import struct

from differential.cases.registry import case
from differential.peer import Connection, Peer
from strandline.protocol.codec import decode
from strandline.protocol.messages.api_versions import ApiVersionsResponse

CLIENT = b"\x00\x01c"


def _header(key: int, version: int) -> bytes:
    return struct.pack(">hhi", key, version, 1) + CLIENT


@case
def versions_to_come(peer: Peer) -> None:
    """ApiVersions of a version that neither broker knows: the answer has the form of version 0."""
    frame = _header(18, 99) + b"\x00" + b"\x02c\x021\x00"
    connection = Connection(peer.host, peer.port)
    try:
        connection.send_bytes(struct.pack(">i", len(frame)) + frame)
        answer, _ = decode(ApiVersionsResponse, connection.receive_frame(), 4, 0)
    finally:
        connection.close()
    ranges = {one.api_key: one.min_version for one in answer.api_keys}
    peer.note("error", answer.error_code)
    peer.note("names itself", ranges.get(18))
    peer.note("names others", len(ranges) > 1)


@case
def odd_headers(peer: Peer) -> None:
    """A broker answers ApiVersions of any version, and hangs up on everything else."""
    for label, frame in (
        ("unknown key", _header(999, 0)),
        ("negative key", _header(-1, 0)),
        ("Produce v2", _header(0, 2)),
        ("Fetch v3", _header(1, 3)),
        ("Metadata v99", _header(3, 99)),
        ("ApiVersions v99, a plain header", _header(18, 99)),
        ("LeaderAndIsr", _header(4, 0)),
        ("cut header", b"\x00\x12\x00"),
        ("no header", b""),
        ("Metadata cut", _header(3, 1) + b"\x00\x00"),
        ("a million topics announced", _header(3, 1) + b"\x7f\xff\xff\xff"),
    ):
        peer.send_frame(label, frame)
