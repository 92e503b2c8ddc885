"""Two marks with a gap: a zone does not come and go with each broker. Source: design section 8."""

from hypothesis import given
from hypothesis import strategies as st

from strandline.controller.outages.marks import Marks, Share, is_down


def test_a_zone_is_down_below_the_low_mark_and_back_at_the_high_one() -> None:
    marks = Marks(low_percent=50, high_percent=75)
    assert not is_down(Share(4, 2), marks, was_down=False)
    assert is_down(Share(4, 3), marks, was_down=False)
    assert is_down(Share(4, 2), marks, was_down=True)
    assert not is_down(Share(4, 1), marks, was_down=True)


def test_one_silent_broker_keeps_nothing_down_but_where_all_have_to_be_back() -> None:
    assert not is_down(Share(2, 1), Marks(), was_down=True)
    assert not is_down(Share(2, 1), Marks(silent_min=1), was_down=True)
    assert is_down(Share(2, 1), Marks(low_percent=60, silent_min=1), was_down=True)
    assert is_down(Share(9, 1), Marks(high_percent=100), was_down=True)
    assert is_down(Share(3, 2), Marks(), was_down=True)


def test_those_in_maintenance_count_where_nobody_else_is_left() -> None:
    assert is_down(Share(1, 1, planned_silent=1), Marks(), was_down=False)
    assert is_down(Share(1, 1, planned_silent=2), Marks(), was_down=True)
    assert not is_down(Share(1, 0, planned_silent=2), Marks(), was_down=False)
    assert not is_down(Share(0, 0, planned_silent=3), Marks(), was_down=False)


def test_one_silent_broker_is_a_brokers_failure_whatever_its_share() -> None:
    assert not is_down(Share(1, 1), Marks(), was_down=False)
    assert is_down(Share(1, 1), Marks(silent_min=1), was_down=False)
    assert is_down(Share(2, 2), Marks(), was_down=False)


def test_a_zone_in_which_nobody_is_silent_is_up_whatever_is_configured() -> None:
    assert not is_down(Share(0, 0), Marks(), was_down=True)
    assert not is_down(Share(3, 0), Marks(low_percent=100, high_percent=100), was_down=True)


@given(
    st.integers(1, 30),
    st.lists(st.integers(0, 30), min_size=1, max_size=40),
    st.integers(1, 100),
    st.integers(1, 100),
)
def test_between_the_marks_nothing_changes(
    total: int, history: list[int], low: int, high: int
) -> None:
    marks = Marks(low_percent=low, high_percent=high)
    down = False
    for number in history:
        share = Share(total, min(number, total))
        before, down = down, is_down(share, marks, was_down=down)
        alive_percent = (total - share.silent) * 100 / total
        if before != down:
            is_over = alive_percent >= max(low, high) or number <= 1
            assert alive_percent < low if down else is_over
        if low <= alive_percent < max(low, high) and number > 1:
            assert down == before
