"""Narrows a range whose digests differ to the first offset that differs.

Why:    "somewhere in these 16 MiB" helps nobody; an offset can be looked at.
How:    ask for 64 smaller ranges, go into the first that differs, until it holds one batch on each
        replica. Then RECORDS, in the same way, down to one offset. LATEST goes down to one offset
        at once; each of its requests covers the whole partition.
Source: decision 0052."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from strandline.pipeline.audit.comparing import describe, groups_of, names_of, odd_holders
from strandline.pipeline.audit.planning import split
from strandline.pipeline.audit.tasks import Bounds, Digest, Holder, Rot
from strandline.storage.digests.ranges import DigestKind

PARTS = 64
H = TypeVar("H", bound=Holder)


class Answer(Protocol):
    """What a broker, or a reader of a bucket, says of some ranges: see `TaskResult`."""

    @property
    def digests(self) -> Mapping[Bounds, Digest]:
        """Of the ranges that were read."""

    @property
    def damage(self) -> Mapping[Bounds, Rot]:
        """What was met instead."""

    @property
    def problem(self) -> str:
        """Why ranges are lacking; empty if none is."""


Ask = Callable[[DigestKind, Sequence[Bounds], Sequence[H]], Mapping[H, Answer]]
"""(kind, ranges, holders) -> {holder: what it says}."""


@dataclass(frozen=True, slots=True)
class Narrowed(Generic[H]):
    """The first difference within a range. `holders` have it; none: the range does not differ any
    more. `rot`: {holder: damage that was met on the way}. `problem`: why it is no smaller."""

    offset: int
    end_offset: int
    holders: tuple[H, ...]
    reason: str
    rot: Mapping[H, Rot]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Step(Generic[H]):
    """The first of some ranges that differs, and its digests; None: none does."""

    bounds: Bounds | None
    digests: Mapping[H, Digest]
    rot: Mapping[H, Rot]
    problem: str


class Narrowing(Generic[H]):
    """One partition. `leader`: the holder that is right if numbers are equal. `whole`: what LATEST
    has to cover."""

    def __init__(self, ask: Ask[H], *, leader: H, whole: Bounds) -> None:
        self._ask = ask
        self._leader = leader
        self._whole = whole

    def narrow(self, kind: DigestKind, bounds: Bounds, digests: Mapping[H, Digest]) -> Narrowed[H]:
        """The first difference in a range with these digests, which differ."""
        bounds, digests, failed = self._descend(kind, bounds, digests)
        if failed is not None:
            return failed
        if not kind.is_latest:
            return self._narrow_batch(bounds, digests)
        odd = odd_holders(digests, self._leader)
        reason = f"the last record of a key: {describe(digests)}"
        return Narrowed(*bounds, odd, reason, {})

    def _narrow_batch(self, bounds: Bounds, digests: Mapping[H, Digest]) -> Narrowed[H]:
        """Within one batch of each replica."""
        firsts = [one.first_offset for one in digests.values() if one.first_offset >= 0]
        lasts = [one.last_offset for one in digests.values()]
        odd = odd_holders(digests, self._leader)
        if not firsts:
            reason = f"Raft's own entries: {describe(digests)}"
            return Narrowed(*bounds, odd, reason, {})
        batch = (min(firsts), max(max(lasts) + 1, min(firsts) + 1))
        batch = (batch[0], min(batch[1], max(self._whole[1], bounds[1])))
        step = self._look(DigestKind.RECORDS, [batch], list(digests))
        if step.problem or step.rot:
            return Narrowed(*batch, odd, describe(digests), step.rot, step.problem)
        if step.bounds is None:
            is_cut = len({(one.first_offset, one.last_offset) for one in digests.values()}) > 1
            what = "other batches" if is_cut else "another header or encoding of the batch"
            return Narrowed(*batch, odd, f"the same records in {what}: {describe(digests)}", {})
        record, found, failed = self._descend(DigestKind.RECORDS, batch, step.digests)
        if failed is not None:
            return failed
        reason = f"another record: {describe(found)}"
        return Narrowed(*record, odd_holders(found, self._leader), reason, {})

    def _descend(
        self, kind: DigestKind, bounds: Bounds, digests: Mapping[H, Digest]
    ) -> tuple[Bounds, Mapping[H, Digest], Narrowed[H] | None]:
        """(the smallest range that differs, its digests, None), or a reason to end."""
        while not _is_small(kind, bounds, digests):
            step = self._look(kind, split(bounds, PARTS), list(digests))
            odd = odd_holders(digests, self._leader)
            if step.problem or step.rot:
                failed = Narrowed(*bounds, odd, describe(digests), step.rot, step.problem)
                return bounds, digests, failed
            if step.bounds is None:
                return bounds, digests, Narrowed(*bounds, (), "", {})
            bounds, digests = step.bounds, step.digests
        return bounds, digests, None

    def _look(self, kind: DigestKind, ranges: Sequence[Bounds], holders: Sequence[H]) -> _Step[H]:
        asked = list(ranges)
        if kind.is_latest:
            start, end = self._whole
            if start < asked[0][0]:
                asked.insert(0, (start, asked[0][0]))
            if asked[-1][1] < end:
                asked.append((asked[-1][1], end))
        results = self._ask(kind, asked, holders)
        rot = {
            holder: next(iter(one.damage.values())) for holder, one in results.items() if one.damage
        }
        problems = [
            f"{names_of([holder])}: {one.problem}" for holder, one in results.items() if one.problem
        ]
        if rot or problems:
            return _Step(None, {}, rot, "; ".join(problems))
        for bounds in ranges:
            digests = {
                holder: one.digests[bounds]
                for holder, one in results.items()
                if bounds in one.digests
            }
            if len(groups_of(digests)) > 1:
                return _Step(bounds, digests, {}, "")
        return _Step(None, {}, {}, "")


def _is_small(kind: DigestKind, bounds: Bounds, digests: Mapping[H, Digest]) -> bool:
    if bounds[1] - bounds[0] <= 1:
        return True
    if kind not in (DigestKind.BYTES, DigestKind.BATCHES):
        return False
    return all(one.batches + one.markers <= 1 for one in digests.values())
