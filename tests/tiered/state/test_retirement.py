"""Which objects of a bucket are too old.

Source: `tiered.state.retirement`; KIP-405."""

import pytest
from msgspec.structs import replace
from tests.tiered.state.entries import BUCKET, entry, intend

from strandline.model.ids import Epoch, Index, Offset
from strandline.tiered.state.commands import GoLive
from strandline.tiered.state.retirement import Limits, retire_before
from strandline.tiered.state.tier import TierState

NOW_MS, AHEAD_MS = 1_000_000, 5_000
CASES = {
    "old by its records": (899_999, NOW_MS, 10),
    "young by its records": (900_000, 0, None),
    "of before 1970, and old": (-1, 899_999, 10),
    "without a time, and young": (-1, 900_000, None),
    "ahead of the clock, as producers may be": (NOW_MS + AHEAD_MS, 0, None),
    "too far ahead, and old": (NOW_MS + AHEAD_MS + 1, 899_999, 10),
    "too far ahead, and young": (NOW_MS + AHEAD_MS + 1, 900_000, None),
    "without any time at all": (-1, -1, None),
}


@pytest.mark.parametrize(("max_timestamp", "live_ms", "before"), CASES.values(), ids=CASES)
def test_an_object_is_as_old_as_its_records_or_as_itself(
    max_timestamp: int, live_ms: int, before: int | None
) -> None:
    state = TierState()
    made = replace(entry(0, 10, max_timestamp=max_timestamp), live_ms=live_ms)
    for index, command in enumerate((intend(0, 10), GoLive(BUCKET, made))):
        assert state.apply(Index(index), Epoch(1), command, log_end=Offset(20)) is None
    limits = Limits(100_000, -1, -1, AHEAD_MS)
    found = retire_before(
        state,
        BUCKET,
        limits,
        local_start=Offset(10),
        local_bytes=0,
        committed_end=Offset(20),
        now_ms=NOW_MS,
    )
    assert found == before
