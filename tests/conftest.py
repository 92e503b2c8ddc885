"""What holds for all tests; how they are shared out where several processes run them (`make test`).

Why:    one core computes while the other one waits for brokers, clients and disks. Whoever starts
        brokers has the machine's ports, file systems and the cluster that many tests share to
        itself: all of them run in one process, one after the other.
How:    `--dist loadgroup` would do, but pytest-xdist 3.8 marks groups in a way that pytest 9.2 does
        not see."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# No test fails for being slow on a busy machine.
settings.register_profile("strandline", deadline=None)
settings.load_profile("strandline")

WITH_BROKERS = ("tests/chaos/test_run.py", "tests/integration/", "tests/spark/")


@pytest.fixture(autouse=True)
def sigterm_is_left_as_it_was() -> Iterator[None]:
    """What a test leaves would be that of the next ones, and of the processes that they fork."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if signal.getsignal(signal.SIGTERM) != before:
        signal.signal(signal.SIGTERM, before)
        pytest.fail("the test left another handler of SIGTERM")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """What is to be run in one process begins first; any other test goes wherever there is time."""
    from xdist.scheduler import LoadScopeScheduling

    class OneProcessForBrokers(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "brokers" if nodeid.startswith(WITH_BROKERS) else nodeid

    return OneProcessForBrokers(config, log)
