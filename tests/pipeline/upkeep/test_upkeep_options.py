"""Thresholds that could harm readers, or that mean nothing, are refused."""

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.commands.upkeep import plan_upkeep
from strandline.pipeline.upkeep.options import HOUR_MS, upkeep_options


@pytest.mark.parametrize(
    ("small_files", "small_mib", "target_mib", "keep_hours", "problem"),
    [
        (1, 32, 128, 168, "--small-files 1: must be at least 2"),
        (8, 0, 128, 168, "--small-mib 0: must be between 1 and --target-mib 128"),
        (8, 256, 128, 168, "--small-mib 256: must be between 1 and --target-mib 128"),
        (8, 32, 128, 23, "--keep-hours 23: must be at least 24: queries that read"),
    ],
)
def test_harmful_thresholds_are_refused(
    small_files: int, small_mib: int, target_mib: int, keep_hours: int, problem: str
) -> None:
    with pytest.raises(OperatorError, match=problem):
        upkeep_options(
            small_files=small_files,
            small_mib=small_mib,
            target_mib=target_mib,
            keep_hours=keep_hours,
        )


def test_the_options_are_those_given() -> None:
    options = upkeep_options(small_files=2, small_mib=1, target_mib=4, keep_hours=48)
    assert (options.small_bytes, options.target_bytes) == (1 << 20, 4 << 20)
    assert (options.small_files, options.keep_ms) == (2, 48 * HOUR_MS)


def test_upkeep_has_its_turn_after_every_so_many_batches() -> None:
    upkeep = plan_upkeep(3, keep_hours=24)
    assert [number for number in range(-1, 9) if upkeep.is_due(number)] == [2, 5, 8]
    assert not any(plan_upkeep(0, keep_hours=24).is_due(number) for number in range(9))
    with pytest.raises(OperatorError, match="--upkeep -1"):
        plan_upkeep(-1, keep_hours=24)
