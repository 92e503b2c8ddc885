"""What holds for all tests; how they are shared out where several processes run them (`make test`).

Why:    tests with brokers mostly wait, for processes, clients and disks; all others compute. More
        processes than cores keep the cores busy. The cluster that tests of one file share must not
        be started in each process.
How:    a file of tests with brokers runs in one process, and these files begin first; any other
        test goes wherever there is time. `--dist loadgroup` would do, but pytest-xdist 3.8 marks
        groups in a way that pytest 9.2 does not see. The lanes are those of tests/lanes.py."""

import gc
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings
from tests import lanes

# No test fails for being slow on a busy machine.
settings.register_profile("strandline", deadline=None)
settings.load_profile("strandline")

gc.disable()  # While tests are collected nothing is garbage; each process takes a third less.

WITH_SPARK = "tests/spark/test_"
WITH_BROKERS = ("tests/chaos/test_run.py", "tests/integration/", WITH_SPARK)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before `-m` selects: which lane each test is in, and what begins first."""
    lanes.mark(items)
    items.sort(key=lambda item: not item.nodeid.startswith(WITH_BROKERS))


def pytest_collection_finish() -> None:
    """Ten thousand tests stay until the end: the garbage collector need not look at them."""
    gc.freeze()
    gc.enable()


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
    """Of what begins first, larger files before smaller ones."""
    from xdist.scheduler import LoadScopeScheduling

    class FilesWithBrokers(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(WITH_SPARK):
                return WITH_SPARK
            return nodeid.partition("::")[0] if nodeid.startswith(WITH_BROKERS) else nodeid

    return FilesWithBrokers(config, log)
