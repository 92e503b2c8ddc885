"""How much of what is new goes into the next micro-batch. Pure.

How:    `maxOffsetsPerTrigger` is shared out in proportion to what each partition has, and never
        exceeded. `minOffsetsPerTrigger` waits for more, `maxTriggerDelay` at the longest.
Source: Spark's guide to its Kafka connector."""

from collections.abc import Mapping

from strandline.spark.reading.bounds import TopicPartition

Offsets = Mapping[TopicPartition, int]


def new_count(begins: Offsets, ends: Offsets) -> int:
    """How many offsets are between; a partition that ends before it begins has none."""
    return sum(max(end - begins[one], 0) for one, end in ends.items())


def limited(begins: Offsets, ends: Offsets, count_max: int) -> dict[TopicPartition, int]:
    """`ends`, lowered so that at most `count_max` offsets are between. Every partition gets its
    share, rounded down; what rounding leaves goes to the largest rests."""
    lengths = {one: max(end - begins[one], 0) for one, end in ends.items()}
    total = sum(lengths.values())
    if total <= count_max:
        return dict(ends)
    shares = {one: divmod(count_max * length, total) for one, length in lengths.items()}
    left = count_max - sum(share for share, _ in shares.values())
    by_rest = sorted(shares, key=lambda one: (-shares[one][1], one))
    extra = set(by_rest[:left])
    return {
        one: begins[one] + shares[one][0] + (one in extra) if lengths[one] else ends[one]
        for one in ends
    }


class Delay:
    """Whether to wait for more records. `last_ms`: when the last micro-batch was let through; None
    before the first, which does not wait."""

    def __init__(self, *, count_min: int | None, delay_max_ms: int) -> None:
        self._count_min = count_min
        self._delay_max_ms = delay_max_ms
        self._last_ms: int | None = None

    def waits(self, count: int, now_ms: int) -> bool:
        """Whether `count` new offsets are too few yet; a micro-batch that is let through begins the
        next wait."""
        last_ms = self._last_ms
        is_few = self._count_min is not None and count < self._count_min
        if is_few and last_ms is not None and now_ms - last_ms < self._delay_max_ms:
            return True
        self._last_ms = now_ms
        return False
