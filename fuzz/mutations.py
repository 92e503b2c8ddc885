"""Damages bytes in the ways that find mistakes in parsers."""

from collections.abc import Callable
from random import Random

ODD_NUMBERS = (0, 1, -1, 2, 127, 128, 255, 256, 2**15 - 1, 2**16, 2**31 - 1, -(2**31), 2**63 - 1)
WIDTHS = (1, 2, 4, 8)
STEPS_MAX = 4


def damaged(data: bytes, random: Random, other: bytes = b"") -> bytes:
    """`data` after one to four random changes; `other` lends a piece to some of them."""
    changed = bytearray(data)
    for _ in range(random.randint(1, STEPS_MAX)):
        random.choice(MUTATIONS)(changed, random, other)
    return bytes(changed)


def _flip_a_bit(data: bytearray, random: Random, other: bytes) -> None:
    del other
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _write_an_odd_number(data: bytearray, random: Random, other: bytes) -> None:
    del other
    width = random.choice(WIDTHS)
    if len(data) >= width:
        place = random.randrange(len(data) - width + 1)
        number = random.choice(ODD_NUMBERS) & ((1 << 8 * width) - 1)
        data[place : place + width] = number.to_bytes(width, "big")


def _cut(data: bytearray, random: Random, other: bytes) -> None:
    del other
    if data:
        del data[random.randrange(len(data)) :]


def _leave_out(data: bytearray, random: Random, other: bytes) -> None:
    del other
    if data:
        place = random.randrange(len(data))
        del data[place : place + random.randint(1, 8)]


def _repeat(data: bytearray, random: Random, other: bytes) -> None:
    del other
    if data:
        place = random.randrange(len(data))
        piece = data[place : place + random.randint(1, 32)]
        data[place:place] = piece * random.randint(1, 4)


def _insert_random_bytes(data: bytearray, random: Random, other: bytes) -> None:
    del other
    place = random.randint(0, len(data))
    data[place:place] = random.randbytes(random.randint(1, 8))


def _splice(data: bytearray, random: Random, other: bytes) -> None:
    if data and other:
        place = random.randrange(len(data))
        data[place:] = other[random.randrange(len(other)) :]


MUTATIONS: tuple[Callable[[bytearray, Random, bytes], None], ...] = (
    _flip_a_bit,
    _write_an_odd_number,
    _cut,
    _leave_out,
    _repeat,
    _insert_random_bytes,
    _splice,
)
