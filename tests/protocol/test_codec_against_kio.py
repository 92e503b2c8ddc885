"""Our codec writes, byte for byte, what kio writes, and reads back what it wrote."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.protocol.oracle import (
    BLOBS,
    MESSAGES,
    NEWER_THAN_THE_ORACLES,
    RECORDS,
    any_message,
    fitted,
    kio_bytes,
    kio_class,
    versions,
)

from strandline.protocol.codec import decode, encode, encode_parts
from strandline.protocol.primitives import parts_size_bytes
from strandline.protocol.table import Message

QUICK = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("cls", MESSAGES + BLOBS + RECORDS, ids=lambda cls: cls.__name__)
def test_every_version_is_written_as_kio_writes_it_and_read_back(cls: type[Message]) -> None:
    @QUICK
    @given(any_message(cls))
    def check(message: Message) -> None:
        for version in versions(cls):
            sent = fitted(message, version)
            written = encode(sent, version)
            if cls not in RECORDS and (cls.__name__, version) not in NEWER_THAN_THE_ORACLES:
                assert written == kio_bytes(sent, kio_class(cls, version))
            parts = encode_parts(sent, version)
            assert b"".join(parts) == written
            assert parts_size_bytes(parts) == len(written)
            read, position = decode(cls, bytes(written), 0, version)
            assert (read, position) == (sent, len(written))

    check()


@QUICK
@given(st.data())
def test_any_buffer_at_any_position_is_read_alike(data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(MESSAGES))
    version = data.draw(st.sampled_from(versions(cls)))
    message = fitted(data.draw(any_message(cls)), version)
    written = encode(message, version)
    before = data.draw(st.binary(max_size=3))
    whole = before + written + b"after"
    end = len(before) + len(written)
    for buffer in (whole, bytearray(whole), memoryview(whole)):
        assert decode(cls, buffer, len(before), version) == (message, end)
