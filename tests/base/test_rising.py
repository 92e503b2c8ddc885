"""When a level that rises reaches a mark.

Source: `base.rising`."""

import pytest

from strandline.base.rising import SAMPLE_MS, SAMPLES_MAX, RisingLevel


def rising(step: int, *, count: int = 5) -> tuple[RisingLevel, int]:
    level = RisingLevel()
    for at in range(count):
        level.note(at * SAMPLE_MS, 100 + at * step)
    return level, (count - 1) * SAMPLE_MS


def test_it_is_reached_at_the_rate_so_far() -> None:
    level, now_ms = rising(10)
    assert level.reaches_in_ms(now_ms, 240) == 10 * SAMPLE_MS
    assert level.reaches_in_ms(now_ms + SAMPLE_MS // 2, 240) == 10 * SAMPLE_MS - SAMPLE_MS // 2


def test_the_rate_is_that_since_it_began_to_rise() -> None:
    level, now_ms = rising(0, count=10)
    for at in range(1, 4):
        level.note(now_ms + at * SAMPLE_MS, 100 + at)
    assert level.reaches_in_ms(now_ms + 3 * SAMPLE_MS, 110) == 7 * SAMPLE_MS


def test_the_rate_is_that_of_the_last_quarter_of_an_hour() -> None:
    level, now_ms = rising(1_000, count=100)
    top = 100 + 99 * 1_000
    for at in range(1, SAMPLES_MAX + 1):
        level.note(now_ms + at * SAMPLE_MS, top + at)
    now_ms += SAMPLES_MAX * SAMPLE_MS
    assert level.reaches_in_ms(now_ms, top + SAMPLES_MAX + 7) == 7 * SAMPLE_MS


@pytest.mark.parametrize("step", [0, -1])
def test_a_level_that_does_not_rise_never_reaches_it(step: int) -> None:
    level, now_ms = rising(step)
    assert level.reaches_in_ms(now_ms, 500) is None


def test_a_level_that_falls_begins_anew_there() -> None:
    level = RisingLevel()
    level.note(0, 90)
    level.note(SAMPLE_MS // 2, 10)
    level.note(2 * SAMPLE_MS, 40)
    assert level.reaches_in_ms(2 * SAMPLE_MS, 60) == SAMPLE_MS


def test_nothing_is_said_before_a_rate_is_known() -> None:
    level = RisingLevel()
    assert level.reaches_in_ms(0, 100) is None
    level.note(0, 10)
    level.note(SAMPLE_MS - 1, 90)
    assert level.reaches_in_ms(SAMPLE_MS - 1, 100) is None


def test_a_level_at_the_mark_has_reached_it() -> None:
    level = RisingLevel()
    level.note(0, 100)
    assert level.reaches_in_ms(0, 100) == 0
