"""A broker may have as many files open as it is let."""

import logging
import resource

import pytest

from strandline.cli.server.open_files import OPEN_FILES_MIN, raise_open_files_limit


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What was asked of the operating system; the last entry holds."""
    known = [(1_024, 65_536)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: known[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: known.append(limit))
    return known


def test_the_soft_limit_is_raised_to_the_hard_one(
    limits: list[tuple[int, int]], caplog: pytest.LogCaptureFixture
) -> None:
    assert raise_open_files_limit() == 65_536
    assert limits[-1] == (65_536, 65_536)
    assert caplog.messages == []


def test_too_low_a_limit_is_said_at_the_start(
    limits: list[tuple[int, int]], caplog: pytest.LogCaptureFixture
) -> None:
    limits.append((1_024, 4_096))
    with caplog.at_level(logging.WARNING):
        assert raise_open_files_limit() == 4_096
    (line,) = caplog.messages
    assert "4096" in line
    assert str(OPEN_FILES_MIN) in line
