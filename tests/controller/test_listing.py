"""What an answer names of many."""

import pytest

from strandline.controller.listing import NAMED_MAX, listed


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "", ""),
        (1, "partitions", "t0"),
        (NAMED_MAX, "", "t0, t1, t2"),
        (NAMED_MAX + 1, "", "t0, t1, t2 and 1 more"),
        (NAMED_MAX + 40, "partitions", "t0, t1, t2 and 40 more partitions"),
    ],
)
def test_the_first_few_are_named_and_the_others_counted(count: int, noun: str, text: str) -> None:
    assert listed([f"t{number}" for number in range(count)], noun=noun) == text
