"""No test here waits before it asks a bucket again."""

import pytest

from strandline.pipeline.audit.buckets import reading


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAUSE_S", 0)
