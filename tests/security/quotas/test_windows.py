"""Rates over a window, and throttle times: Kafka's formula, and what follows from it.

Source: Kafka 4.3's Rate, SampledStat, QuotaUtils and their tests; KIP-13."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.security.quotas.windows import Usage

LIMIT = 1_000.0
LONG_MS = 1_000_000


def usage(limit: float = LIMIT, *, bound_ms: int = LONG_MS) -> Usage:
    return Usage(limit, throttle_ms_max=bound_ms, now_ms=0)


def test_ten_seconds_worth_may_be_used_at_once() -> None:
    one = usage()
    one.note(10_000, 0)
    assert one.throttle_ms(0) == 0
    one.note(1, 0)
    assert one.throttle_ms(0) == 1


@pytest.mark.parametrize(
    ("amount", "at_ms", "throttle_ms"),
    # X = S / T - W; W is ten seconds and the part of the second that has gone by.
    [(20_000, 0, 10_000), (20_000, 500, 9_500), (10_500, 700, 0), (11_000, 999, 1)],
)
def test_throttle_times_are_kafkas(amount: float, at_ms: int, throttle_ms: int) -> None:
    one = usage()
    one.note(0, 0)
    one.note(amount, at_ms)
    assert one.throttle_ms(at_ms) == throttle_ms


def test_after_ten_seconds_the_window_has_its_real_length() -> None:
    one = usage()
    for second in range(11):
        one.note(1_000, second * 1_000)
    assert one.throttle_ms(10_000) == 1_000  # 11,000 in 10 seconds.


def test_what_is_older_than_the_window_counts_no_more() -> None:
    one = usage()
    one.note(10_000, 0)
    one.note(10_000, 10_999)
    assert one.throttle_ms(10_999) > 0
    other = usage()
    other.note(10_000, 0)
    assert not other.is_idle(10_999)
    assert other.is_idle(11_000)
    assert not Usage(1, throttle_ms_max=1, now_ms=1).is_idle(11_000)
    other.note(10_000, 11_000)
    assert other.throttle_ms(11_000) == 0


def test_much_at_one_moment_is_paid_for_once_its_sample_has_expired() -> None:
    one = usage()
    one.note(21_000, 0)
    assert one.throttle_ms(0) == 11_000
    one.note(21_000, 11_000)  # Kafka forgets the first 21 seconds' worth here.
    assert one.throttle_ms(11_000) == 20_000


def test_an_answer_throttles_for_a_bounded_time_and_the_rest_is_not_forgiven() -> None:
    one = usage(bound_ms=60_000)
    one.note(110_000, 0)  # 100 seconds too much.
    assert one.throttle_ms(0) == 60_000
    assert one.throttle_ms(60_000) == 40_000
    one.note(5_000, 60_000)  # The sample has expired, and yet these add their own time.
    assert one.throttle_ms(60_000) == 44_000
    assert not one.is_idle(60_000)
    assert one.throttle_ms(104_000) == 0


def test_a_larger_limit_ends_the_throttling() -> None:
    one = usage()
    one.note(20_000, 0)
    one.set_limit(LIMIT)
    assert one.throttle_ms(0) == 10_000
    one.set_limit(2_000)
    assert one.throttle_ms(0) == 0
    one.note(1_000, 0)
    assert one.throttle_ms(0) == 500


def test_there_is_room_for_what_keeps_the_rate_and_for_one_second_at_least() -> None:
    one = usage()
    assert one.room(0) == 10_000
    one.note(4_000, 0)
    assert one.room(0) == 6_000
    one.note(6_000, 0)
    assert one.room(0) == 1_000


class KafkaRate:
    """The rate as Kafka's classes compute it, sample by sample."""

    def __init__(self) -> None:
        self.samples: list[tuple[int, int, float]] = []

    def record(self, amount: float, now_ms: int) -> None:
        if self.samples and now_ms - self.samples[-1][0] < 1_000:
            start, _, before = self.samples.pop()
            self.samples.append((start, now_ms, before + amount))
        else:
            self.samples.append((now_ms, now_ms, amount))

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        kept = [one for one in self.samples if now_ms - one[1] < 11_000]
        elapsed_ms = now_ms - min((one[0] for one in kept), default=now_ms)
        full = elapsed_ms // 1_000
        window_ms = max(1, elapsed_ms + (max(0, 10 - full) * 1_000))
        rate = sum(one[2] for one in kept) / window_ms * 1_000
        return 0 if rate <= limit else round((rate - limit) / limit * window_ms)


@given(st.lists(st.tuples(st.integers(0, 4_000), st.floats(1, 30_000)), min_size=1, max_size=60))
def test_a_client_that_waits_as_told_is_throttled_for_no_less_than_by_kafka(
    steps: list[tuple[int, float]],
) -> None:
    one, kafka, now_ms = usage(), KafkaRate(), 0
    for pause_ms, amount in steps:
        now_ms += pause_ms
        one.note(amount, now_ms)
        kafka.record(amount, now_ms)
        told_ms = one.throttle_ms(now_ms)
        assert told_ms >= kafka.throttle_ms(LIMIT, now_ms) - 1
        now_ms += told_ms


@given(
    st.lists(st.tuples(st.integers(0, 3_000), st.floats(1, 50_000)), min_size=2, max_size=80),
    st.integers(1_000, 60_000),
)
def test_over_any_time_no_more_is_used_than_the_limit_and_one_burst(
    steps: list[tuple[int, float]], bound_ms: int
) -> None:
    one, now_ms = usage(bound_ms=bound_ms), 0
    used: list[tuple[int, float]] = []
    for pause_ms, amount in steps:
        now_ms += pause_ms
        while wait_ms := one.throttle_ms(now_ms):
            assert wait_ms <= bound_ms
            now_ms += wait_ms
        one.note(amount, now_ms)
        used.append((now_ms, amount))
    most = max(amount for _, amount in used)
    for first in range(len(used)):
        total = 0.0
        for at_ms, amount in used[first:]:
            total += amount
            spent_s = (at_ms - used[first][0]) / 1_000
            assert total <= LIMIT * (spent_s + 11) + most + 1
