"""All buckets of a run: what processes open, and what they hold in truth.

Why:    invariants compare what brokers believe with what is there.
Owns:   one `SimBucket` a region.
Source: decisions 0057 and 0058."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from strandline.model.cluster import Labels
from strandline.model.ids import Offset
from strandline.simulation.buckets.backend import SimBackend
from strandline.simulation.buckets.bucket import SimBucket
from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import Scheduler
from strandline.tiered.objects.bucket_store import BucketStore
from strandline.tiered.objects.buckets import Buckets
from strandline.tiered.objects.limits import StoreLimits
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import Trailer, TrailerError

TIMEOUT_MS = 400
Range = tuple[Offset, Offset]


@dataclass(slots=True)
class SimBuckets:
    """See the module. `buckets`: {region: its bucket}."""

    buckets: dict[str, SimBucket] = field(default_factory=dict)
    _sound: dict[tuple[str, SegmentEntry], bool] = field(default_factory=dict)
    """Whether an object is as its entry says: objects never change."""

    @classmethod
    def of(cls, regions: Sequence[str], scheduler: Scheduler, seed: int) -> "SimBuckets":
        """Empty buckets of these regions."""
        return cls(
            {
                region: SimBucket(region, scheduler, random.Random(f"bucket {region} {seed}"))
                for region in regions
            }
        )

    def open(self, process: Process) -> Buckets:
        """The buckets as a process has them."""
        limits = StoreLimits()
        return Buckets(
            {
                name: BucketStore(
                    SimBackend(bucket, process),
                    title=f"bucket {name}",
                    limits=limits,
                    timeout_ms=TIMEOUT_MS,
                )
                for name, bucket in self.buckets.items()
            },
            {name: Labels(region=name) for name in self.buckets},
        )

    def ranges(self, name: str, live: Sequence[SegmentEntry]) -> tuple[Range, ...]:
        """The records of these objects that the bucket has in truth, or that its store has lost:
        joined, in order."""
        joined: list[Range] = []
        for entry in live:
            is_lost = entry.name in self.buckets[name].lost
            if not is_lost and not self._is_sound(name, entry):
                continue
            if joined and joined[-1][1] == entry.base_offset:
                joined[-1] = joined[-1][0], entry.end_offset
            else:
                joined.append((entry.base_offset, entry.end_offset))
        return tuple(joined)

    def data(self, name: str, entry: SegmentEntry) -> bytes | None:
        """The batches of an object; None if it is not there."""
        found = self.buckets[name].get(entry.name)
        return None if found is None else found[: entry.data_bytes]

    def _is_sound(self, name: str, entry: SegmentEntry) -> bool:
        found = self.buckets[name].get(entry.name)
        if found is None or len(found) != entry.size_bytes:
            return False
        known = self._sound.get((name, entry))
        if known is None:
            known = self._sound[name, entry] = _matches(found, entry)
        return known


def _matches(data: bytes, entry: SegmentEntry) -> bool:
    try:
        trailer = Trailer.parse(data[entry.data_bytes :], crc=entry.trailer_crc)
    except TrailerError:
        return False
    view = memoryview(data)
    return all(
        trailer.chunk_matches(chunk, view[start:end]) for chunk, start, end in _chunks(trailer)
    )


def _chunks(trailer: Trailer) -> Iterator[tuple[int, int, int]]:
    for chunk in range(trailer.chunk_count):
        yield chunk, *trailer.chunk_range(chunk)
