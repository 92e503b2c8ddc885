"""A question has a number and groups."""

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.questions import MeanQuestion, parse_question


def test_means_need_both_a_number_and_groups() -> None:
    assert parse_question(["carrier"], "delay") == MeanQuestion(("carrier",), "delay")
    assert parse_question([], None) is None
    for by, mean in (([], "delay"), (["carrier"], None)):
        with pytest.raises(OperatorError, match="give both or neither"):
            parse_question(by, mean)
