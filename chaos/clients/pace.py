"""When which record is due: an even pace, partition by partition in turn."""

import time
from collections.abc import Sequence

BEHIND_MAX = 200
"""Records that a producer makes up for after it was held up; more are left out."""


class Pace:
    """Numbers the records of one producer."""

    def __init__(self, partitions: Sequence[tuple[str, int]], per_second: int) -> None:
        self._partitions = partitions
        self._per_second = per_second
        self._begun = time.monotonic()
        self._number = 0

    def due(self) -> list[tuple[int, str, int]]:
        """(number, topic, partition) of the records that are due by now."""
        wanted = int((time.monotonic() - self._begun) * self._per_second)
        if wanted - self._number > BEHIND_MAX:
            self._begun += (wanted - self._number - BEHIND_MAX) / self._per_second
            wanted = self._number + BEHIND_MAX
        numbers = range(self._number, max(wanted, self._number))
        self._number = max(wanted, self._number)
        return [(n, *self._partitions[n % len(self._partitions)]) for n in numbers]
