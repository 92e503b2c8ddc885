"""A second run is for tests with real brokers, few of them, and for no others.

Source: tests/again.py."""

from tests.again import FAILED_COUNT_MAX, why_not

WITH_BROKERS = "tests/integration/test_kill.py::test_{}"


def test_few_tests_with_brokers_are_run_again() -> None:
    assert why_not([WITH_BROKERS.format(1)]) is None
    assert why_not([WITH_BROKERS.format(one) for one in range(FAILED_COUNT_MAX)]) is None
    assert why_not(["tests/spark/test_connector.py::test_it"]) is None


def test_more_than_a_busy_machine_explains_are_not() -> None:
    refused = why_not([WITH_BROKERS.format(one) for one in range(FAILED_COUNT_MAX + 1)])
    assert refused is not None and "4 tests failed" in refused


def test_what_is_the_same_each_time_is_not() -> None:
    other = "tests/raft/test_elections.py::test_it"
    refused = why_not([WITH_BROKERS.format(1), other])
    assert refused is not None and refused.endswith(f": {other}")


def test_a_run_that_went_wrong_itself_is_not() -> None:
    refused = why_not([])
    assert refused is not None and "the run itself" in refused
