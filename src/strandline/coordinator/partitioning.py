"""Which partition of `__consumer_offsets` a group belongs to: Java's string hash, as Kafka has it.

Source: kafka-protocol reference 8.3; `java.lang.String.hashCode`."""

_POSITIVE = 0x7FFF_FFFF


def java_hash(text: str) -> int:
    """Java's `String.hashCode` as an unsigned 32 bit number: over UTF-16 code units."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        unit = (units[position] << 8) | units[position + 1]
        value = (31 * value + unit) & 0xFFFF_FFFF
    return value


def partition_for(group: str, *, partition_count: int) -> int:
    """The partition that keeps this group."""
    return (java_hash(group) & _POSITIVE) % partition_count
