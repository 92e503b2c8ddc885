"""A bucket that outlives all processes: its objects, their past, and the switches of its faults.

Why:    tiering must keep its promises over a store that does everything real ones do.
How:    The world turns the switches. Objects that are gone stay in the past, for listings that lag.
        Objects that are lost for good are counted: nothing else may ever be missing.
Owns:   the objects.
Source: reference 2.6; decision 0058."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from strandline.simulation.world.clock import WALL_START_MS
from strandline.simulation.world.scheduler import US_PER_MS, Scheduler
from strandline.tiered.objects.store import ObjectInfo

LATENCY_US = (1_000, 30_000)
FOR_EVER_US = 1 << 62


@dataclass(slots=True)
class BucketFaults:
    """Switches that the world turns. All off at first; a share is of the requests it is about."""

    slow_factor: int = 1
    """Every request takes so many times as long."""
    is_gone: bool = False
    """No request is carried out: the bucket, or the way to it, is down; or refuses credentials."""
    throttled_share: float = 0.0
    """Refused with 503 and not carried out."""
    applied_error_share: float = 0.0
    """Writes that are carried out and answered with an error."""
    lost_before_share: float = 0.0
    """Never answered, and not carried out."""
    lost_after_share: float = 0.0
    """Never answered, and carried out."""
    late_share: float = 0.0
    """Writes that are never answered, and carried out much later."""
    late_us: int = 60_000_000
    taken_share: float = 0.0
    """Creates that are answered with "taken" and not carried out: a 409."""
    wrong_bytes_share: float = 0.0
    """Reads with one wrong bit."""
    half_body_share: float = 0.0
    """Reads whose answer breaks off."""
    missing_share: float = 0.0
    """Reads that are told that an object is not there though it is."""
    list_lag_us: int = 0
    """Listings are so old."""
    clock_skew_ms: int = 0
    """Of the times of objects."""


@dataclass(slots=True)
class _Stored:
    data: bytes
    created_us: int
    deleted_us: int = FOR_EVER_US


@dataclass(slots=True)
class BucketCounters:
    """What was done to a bucket since the start of the run."""

    request_count: int = 0
    put_count: int = 0
    put_bytes: int = 0
    deleted_count: int = 0
    failed_count: int = 0
    """Requests that something went wrong with."""


@dataclass(slots=True)
class SimBucket:
    """See the module. `versions`: {name: what it held, oldest first}."""

    name: str
    scheduler: Scheduler
    rng: random.Random
    latency_us: tuple[int, int] = LATENCY_US
    faults: BucketFaults = field(default_factory=BucketFaults)
    counters: BucketCounters = field(default_factory=BucketCounters)
    versions: dict[str, list[_Stored]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    """Names that the store lost, by its own fault."""
    on_put: Callable[[str], None] = lambda name: None
    """Told after an object was stored."""
    on_deleted: Callable[[str], None] = lambda name: None
    """Told after a command has removed an object."""

    def draw_latency_us(self) -> int:
        """How long the next request takes."""
        return self.rng.randint(*self.latency_us) * self.faults.slow_factor

    def draw(self, share: float) -> bool:
        """Whether something happens to this request; draws no number if it never does."""
        return share > 0 and self.rng.random() < share

    def put(self, name: str, data: bytes) -> None:
        """Store an object now."""
        self._remove(name)
        self.versions.setdefault(name, []).append(_Stored(data, self.scheduler.now_us))
        self.counters.put_count += 1
        self.counters.put_bytes += len(data)
        self.lost.discard(name)
        self.on_put(name)

    def get(self, name: str) -> bytes | None:
        """An object, or None."""
        stored = self._present(name, self.scheduler.now_us)
        return None if stored is None else stored.data

    def delete(self, name: str) -> None:
        """Remove an object now; harmless if it is absent."""
        if self._remove(name):
            self.on_deleted(name)

    def lose(self, name: str) -> None:
        """Lose an object, by no command of a broker."""
        self.lost.add(name)
        self._remove(name)

    def names(self) -> list[str]:
        """All objects that are there now, in order."""
        return [one.name for one in self.present("")]

    def present(self, prefix: str) -> Iterator[ObjectInfo]:
        """The objects whose names begin so, as they are in truth, in order."""
        return self._listed(prefix, self.scheduler.now_us)

    def listing(self, prefix: str) -> Iterator[ObjectInfo]:
        """The same as a listing has them."""
        return self._listed(prefix, self.scheduler.now_us - self.faults.list_lag_us)

    def _listed(self, prefix: str, moment_us: int) -> Iterator[ObjectInfo]:
        for name in sorted(one for one in self.versions if one.startswith(prefix)):
            stored = self._present(name, moment_us)
            if stored is not None:
                modified_ms = WALL_START_MS + stored.created_us // US_PER_MS
                yield ObjectInfo(name, len(stored.data), modified_ms + self.faults.clock_skew_ms)

    def _remove(self, name: str) -> bool:
        """Whether it was there."""
        stored = self._present(name, self.scheduler.now_us)
        if stored is None:
            return False
        stored.deleted_us = self.scheduler.now_us
        self.counters.deleted_count += 1
        return True

    def _present(self, name: str, moment_us: int) -> _Stored | None:
        """What was there at a moment. What is deleted at that moment is gone."""
        for stored in reversed(self.versions.get(name, ())):
            if stored.created_us <= moment_us < stored.deleted_us:
                return stored
        return None
