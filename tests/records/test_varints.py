"""Varints are byte for byte Protocol Buffers' zigzag ones, and end where they have to.

Source: Protocol Buffers' encoding; at most 5 bytes for 32 bits, 10 for 64."""

import pytest

from strandline.base.errors import ApiError
from strandline.protocol.errors import Error
from strandline.records.varint import encode_varint, read_varint, read_varlong

BYTES: list[tuple[int, str]] = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (8191, "fe7f"),
    (8192, "808001"),
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
    (2**63 - 1, "feffffffffffffffff01"),
    (-(2**63), "ffffffffffffffffff01"),
]


@pytest.mark.parametrize(("value", "data"), BYTES)
def test_a_number_has_the_bytes_of_the_specification(value: int, data: str) -> None:
    assert encode_varint(value).hex() == data


@pytest.mark.parametrize(("value", "data"), BYTES)
def test_a_number_is_read_in_the_middle_of_a_buffer(value: int, data: str) -> None:
    buffer = b"\xff\xff" + bytes.fromhex(data) + b"\x01"
    assert read_varlong(buffer, 2, len(buffer)) == (value, len(buffer) - 1)
    if -(2**31) <= value < 2**31:
        assert read_varint(buffer, 2, len(buffer)) == (value, len(buffer) - 1)


@pytest.mark.parametrize("read", (read_varint, read_varlong))
@pytest.mark.parametrize("count", range(4))
def test_a_number_that_the_end_cuts_is_refused_whatever_is_behind(read: object, count: int) -> None:
    buffer = b"\x80" * count + b"\x01\x01"
    assert read_bytes(read, buffer, count + 1) == count + 1
    with pytest.raises(ApiError) as refusal:
        read_bytes(read, buffer, count)
    assert refusal.value.code == Error.CORRUPT_MESSAGE


def read_bytes(read: object, buffer: bytes, end: int) -> int:
    """Read one number from the buffer's beginning; how many bytes it took."""
    assert callable(read)
    _, position = read(buffer, 0, end)
    assert isinstance(position, int)
    return position


@pytest.mark.parametrize(("read", "bytes_max"), ((read_varint, 5), (read_varlong, 10)))
def test_a_number_has_so_many_bytes_and_not_one_more(read: object, bytes_max: int) -> None:
    longest = b"\x80" * (bytes_max - 1) + b"\x01"
    assert read_bytes(read, longest, len(longest)) == bytes_max
    with pytest.raises(ApiError) as refusal:
        read_bytes(read, b"\x80" + longest, bytes_max + 1)
    assert refusal.value.code == Error.CORRUPT_MESSAGE
