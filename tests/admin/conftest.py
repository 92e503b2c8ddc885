"""What tests of pages for monitors and people begin with."""

from collections.abc import Iterator

import pytest
from tests.broker.moving_world import MovingWorld, moving_world


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, a topic with voters 1 to 3 and observers 4 and 5, a producer that goes on."""
    with moving_world(monkeypatch) as made:
        made.balance((1, 2, 3), (4, 5))
        made.finish(1, 2, 3, observers=(4, 5))
        made.advance(2_000)
        yield made
