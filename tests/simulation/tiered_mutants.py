"""Bugs planted on purpose in tiered storage: each loses records, or serves what is not one.

A simulator that finds nothing may be looking nowhere: what it must find is kept here."""

from collections.abc import Collection

import pytest
from tests.simulation.mutants import Plant

from strandline.base.disk import Buffer
from strandline.model.ids import Offset
from strandline.tiered.segments.trailer import Trailer
from strandline.tiered.state.tier import TierState

EVERYTHING = Offset(1 << 60)


def let_go_of_what_is_nowhere_else(patch: pytest.MonkeyPatch) -> None:
    """Local retention does not wait for uploads."""

    def covered_end(
        self: TierState, copies_min: int, buckets: Collection[str], *, from_offset: Offset
    ) -> Offset:
        return EVERYTHING

    patch.setattr(TierState, "covered_end", covered_end)


def be_content_with_one_bucket(patch: pytest.MonkeyPatch) -> None:
    """Local retention waits for the first of several buckets."""
    honest = TierState.covered_end

    def covered_end(
        self: TierState, copies_min: int, buckets: Collection[str], *, from_offset: Offset
    ) -> Offset:
        return honest(self, 1, buckets, from_offset=from_offset)

    patch.setattr(TierState, "covered_end", covered_end)


def believe_every_byte(patch: pytest.MonkeyPatch) -> None:
    """Chunks from a bucket are not compared with their checksums."""

    def chunk_matches(self: Trailer, chunk: int, data: Buffer) -> bool:
        return True

    patch.setattr(Trailer, "chunk_matches", chunk_matches)


MUTANTS: dict[Plant, tuple[str, int]] = {
    let_go_of_what_is_nowhere_else: ("NothingDeletedBeforeUploaded", 1),
    be_content_with_one_bucket: ("RemovedOnlyIfInEveryBucket", 1),
    believe_every_byte: ("NoDamageServed", 1),
}
"""{mistake: (the promise that it breaks, a seed that shows it)}"""
