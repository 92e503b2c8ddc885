"""What the tests of the broker room share."""

from collections.abc import Iterator

import pytest
from tests.broker.broker_world import BrokerWorld
from tests.broker.cluster_world import ClusterWorld, three_brokers


@pytest.fixture
def world() -> Iterator[BrokerWorld]:
    """A broker without sockets; afterwards no background work may have failed."""
    made = BrokerWorld()
    yield made
    made.close()


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """Three brokers that have joined."""
    with three_brokers() as world:
        yield world
