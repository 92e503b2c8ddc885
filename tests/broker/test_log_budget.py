"""Lines that others cause are few, and those that are left out are counted."""

import logging

import pytest

from strandline.broker.operations.log_budget import LogBudget


def test_lines_beyond_the_budget_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now_ms = 0.0
    budget = LogBudget(logging.getLogger("x"), lambda: now_ms, burst_count=3, lines_per_s=2)
    for number in range(10):
        budget.write(logging.INFO, "line %d", number)
    assert caplog.messages == ["line 0", "line 1", "line 2"]
    now_ms = 400.0
    budget.write(logging.INFO, "line %d", 10)
    assert len(caplog.messages) == 3
    now_ms = 600.0
    budget.write(logging.INFO, "line %d", 11)
    assert caplog.messages[3:] == ["line 11 (8 such lines before were left out)"]
    now_ms = 100_000.0
    for number in range(20, 30):
        budget.write(logging.INFO, "line %d", number)
    assert caplog.messages[4:] == ["line 20", "line 21", "line 22"]
