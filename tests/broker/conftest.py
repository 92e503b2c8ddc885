"""What the tests of the broker room share."""

import logging
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


class _Reprs(logging.Handler):
    """Keeps what a log line would show as Python sees it: tuples, structs."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        for one in record.args if isinstance(record.args, tuple) else ():
            is_plain = isinstance(one, str | int | float)
            if not is_plain and type(one).__str__ is object.__str__:
                self.found.append(f"{record.name}: {record.msg!r} with {one!r}")


@pytest.fixture(autouse=True)
def logs_are_for_people() -> Iterator[None]:
    """No log line of any of these tests shows a value as Python does."""
    log, handler = logging.getLogger("strandline"), _Reprs()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield
    log.setLevel(before)
    log.removeHandler(handler)
    assert not handler.found
