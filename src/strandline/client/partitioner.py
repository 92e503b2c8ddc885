"""Chooses the partition of a record, as Kafka's Java client does.

How:    with a key: murmur2 of the key, its sign bit cleared, modulo the number of partitions.
        Without a key: records go to one partition until its batch is sent, then to the next.
Source: Kafka's default partitioner; KIP-480 (sticky partitions)."""

from strandline.base.disk import Buffer

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFF_FFFF


def partition_for_key(key: Buffer, partition_count: int) -> int:
    """The partition of a key."""
    return (murmur2(key) & 0x7FFF_FFFF) % partition_count


def murmur2(data: Buffer) -> int:
    """The 32-bit hash that Kafka's clients use, unsigned."""
    length = len(data)
    value = _SEED ^ length
    whole = length & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        value = value * _MULTIPLIER & _MASK ^ word
    if length & 3:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    return value ^ value >> 15
