"""Measured round trips between regions, in ms.

Why:    what a write waits for depends on how far its nearest quorum is, and only measuring tells.
How:    brokers measure each other; the median over the pairs of two regions stands for them.
Owns:   nothing; made anew from what was measured last."""

from collections.abc import Mapping
from statistics import median_low

from strandline.model.ids import BrokerId


class RoundTrips:
    """Symmetric; within a region 0 unless measured."""

    def __init__(self, between_ms: Mapping[tuple[str, str], int]) -> None:
        self._ms = {_pair(a, b): ms for (a, b), ms in between_ms.items()}
        self.longest_ms = max(self._ms.values(), default=0)

    @classmethod
    def measured(
        cls,
        between_ms: Mapping[tuple[BrokerId, BrokerId], int],
        regions: Mapping[BrokerId, str],
    ) -> "RoundTrips":
        """From round trips between brokers; pairs of brokers without a region are left out."""
        found: dict[tuple[str, str], list[int]] = {}
        for (a, b), ms in between_ms.items():
            if regions.get(a) and regions.get(b):
                found.setdefault(_pair(regions[a], regions[b]), []).append(ms)
        return cls({pair: median_low(sorted(values)) for pair, values in found.items()})

    def between(self, a: str, b: str) -> int | None:
        """The round trip between two regions; None where nobody measured it."""
        return self._ms.get(_pair(a, b), 0 if a == b else None)


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a <= b else (b, a)
