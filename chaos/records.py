"""The records: each names its producer and its number.

How:    a value is `producer/number/filling`. Ledgers and logs keep its mark,
        `producer/number/checksum of the whole value`: equal marks, equal bytes."""

import zlib

FILLING_BYTES = (20, 400)


def make_value(producer: str, number: int) -> bytes:
    """A record of a producer; numbers count from 0 over all partitions."""
    head = b"%s/%d/" % (producer.encode(), number)
    low, high = FILLING_BYTES
    size = low + zlib.crc32(head) % (high - low)
    return head + (head * (size // len(head) + 1))[:size]


def mark_of(value: bytes | None) -> str:
    """What is remembered of a value, whatever it holds."""
    head = (value or b"").split(b"/", 2)[:2]
    name, number = head if len(head) == 2 and head[1].isdigit() else (b"?", b"0")
    return f"{name.decode(errors='replace')}/{int(number)}/{zlib.crc32(value or b''):08x}"
