"""How much goes into a micro-batch: never more than the limit, and no partition starves."""

from hypothesis import given
from hypothesis import strategies as st

from strandline.spark.reading.admission import Delay, limited, new_count


def places(*offsets: int) -> dict[tuple[str, int], int]:
    return {("orders", index): offset for index, offset in enumerate(offsets)}


def test_partitions_get_shares_of_the_limit_by_what_they_have() -> None:
    assert limited(places(0, 0, 5), places(600, 300, 105), 100) == places(60, 30, 15)


def test_what_rounding_leaves_is_given_to_the_largest_rests() -> None:
    assert limited(places(0, 0, 0), places(10, 10, 10), 4) == places(2, 1, 1)
    assert limited(places(0, 0), places(999, 1), 1) == places(1, 0)


def test_nothing_is_held_back_below_the_limit() -> None:
    assert limited(places(3, 4), places(5, 4), 2) == places(5, 4)


def test_a_log_that_became_shorter_keeps_its_end() -> None:
    assert limited(places(50, 0), places(20, 100), 10) == places(20, 10)


@given(
    logs=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5_000)), min_size=1, max_size=8),
    count_max=st.integers(1, 2_000),
)
def test_the_limit_is_used_up_and_never_exceeded(
    logs: list[tuple[int, int]], count_max: int
) -> None:
    begins, ends = places(*(a for a, _ in logs)), places(*(a + n for a, n in logs))
    found = limited(begins, ends, count_max)
    assert new_count(begins, found) == min(count_max, new_count(begins, ends))
    assert all(begins[one] <= found[one] <= ends[one] for one in ends)


def test_few_records_wait_for_others_but_not_for_ever() -> None:
    delay = Delay(count_min=10, delay_max_ms=1_000)
    assert not delay.waits(1, 5_000)  # The first micro-batch does not wait.
    assert delay.waits(9, 5_100)
    assert not delay.waits(10, 5_200)
    assert delay.waits(1, 6_199)
    assert not delay.waits(1, 6_200)


def test_without_a_least_number_nothing_waits() -> None:
    delay = Delay(count_min=None, delay_max_ms=1_000)
    assert not delay.waits(1, 0)
    assert not delay.waits(0, 1)
