"""Measured round trips between regions, in ms.

Why:    a write waits as long as its nearest quorum is far, and only measuring tells.
How:    brokers measure each other; the median over the pairs of two regions stands for them.
Owns:   nothing; built from the last measurements."""

from collections.abc import Mapping
from statistics import median_low

from strandline.model.ids import BrokerId


class RoundTrips:
    """Between regions: symmetric; within a region 0 unless measured."""

    def __init__(
        self,
        between_ms: Mapping[tuple[str, str], int],
        *,
        brokers_ms: Mapping[tuple[BrokerId, BrokerId], int] | None = None,
    ) -> None:
        """`brokers_ms`: what brokers measured themselves, {(from, to): ms}."""
        self._ms = {_pair(a, b): ms for (a, b), ms in between_ms.items()}
        self._brokers_ms = brokers_ms
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
        between = {pair: median_low(sorted(values)) for pair, values in found.items()}
        return cls(between, brokers_ms=between_ms)

    def between(self, a: str, b: str) -> int | None:
        """The round trip between two regions; None if it was not measured."""
        return self._ms.get(_pair(a, b), 0 if a == b else None)

    def between_brokers(self, a: BrokerId, b: BrokerId, *, regions: tuple[str, str]) -> int | None:
        """The round trip from one broker to another one in these regions: what it measured, or
        the other one did, or what stands for the regions; None if it was not measured."""
        if self._brokers_ms is None:
            return self.between(*regions)
        measured = self._brokers_ms.get((a, b), self._brokers_ms.get((b, a)))
        return self._ms.get(_pair(*regions)) if measured is None else measured

    @property
    def brokers(self) -> list[tuple[BrokerId, BrokerId, int]]:
        """(from, to, ms), in the order of their ids."""
        return [(a, b, ms) for (a, b), ms in sorted((self._brokers_ms or {}).items())]

    @property
    def regions(self) -> list[tuple[str, str, int]]:
        """(region, region, ms), in the order of their names."""
        return [(a, b, ms) for (a, b), ms in sorted(self._ms.items())]


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a <= b else (b, a)
