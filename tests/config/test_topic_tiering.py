"""Topic keys of tiered storage: Kafka's meanings of -1 and -2, and what contradicts itself."""

import pytest

from strandline.config.topic import TopicConfig, conflict_of, validate_topic_config
from strandline.config.topic_tiering import TieringValues

ENABLED = {"remote.storage.enable": "true", "retention.ms": "1000", "retention.bytes": "500"}


def values(**overrides: str) -> TieringValues:
    named = {name.replace("_", "."): value for name, value in overrides.items()}
    return TopicConfig.from_overrides({}, {**ENABLED, **named}).tiering


@pytest.mark.parametrize(
    ("total", "local", "in_force"),
    [
        ("1000", "-2", 1000),
        ("1000", "10", 10),
        ("-1", "-2", -1),
        ("-1", "-1", -1),
        ("-1", "10", 10),
    ],
)
def test_a_local_retention_is_the_total_one_unless_it_is_given(
    total: str, local: str, in_force: int
) -> None:
    assert values(retention_ms=total, local_retention_ms=local).local_retention_ms == in_force
    assert values(retention_bytes=total, local_retention_bytes=local).local_retention_bytes == (
        in_force
    )


def test_a_total_retention_that_became_shorter_bounds_the_local_one() -> None:
    """The cluster's default may change without a look at every topic."""
    assert values(retention_ms="5", local_retention_ms="700").local_retention_ms == 5


@pytest.mark.parametrize(
    ("lag", "in_force"), [("0", 0), ("-1", 100), ("60", 60)], ids=["at once", "local", "given"]
)
def test_a_copy_lag_is_the_local_retention_where_it_is_minus_one(lag: str, in_force: int) -> None:
    """KIP-1241."""
    resolved = values(
        local_retention_ms="100",
        local_retention_bytes="100",
        remote_copy_lag_ms=lag,
        remote_copy_lag_bytes=lag,
    )
    assert (resolved.copy_lag_ms, resolved.copy_lag_bytes) == (in_force, in_force)


def test_a_copy_lag_as_an_unlimited_local_retention_never_comes() -> None:
    assert values(retention_ms="-1", remote_copy_lag_ms="-1").copy_lag_ms == -1


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (
            {"local.retention.ms": "1001"},
            "local.retention.ms (1001) must not be above retention.ms (1000)",
        ),
        (
            {"local.retention.ms": "-1"},
            "local.retention.ms (-1) must not be above retention.ms (1000)",
        ),
        (
            {"local.retention.bytes": "501"},
            "local.retention.bytes (501) must not be above retention.bytes (500)",
        ),
        (
            {"local.retention.ms": "10", "remote.copy.lag.ms": "11"},
            "remote.copy.lag.ms (11) must not be above the local.retention.ms in force (10)",
        ),
        (
            {"local.retention.bytes": "5", "remote.copy.lag.bytes": "6"},
            "remote.copy.lag.bytes (6) must not be above the local.retention.bytes in force (5)",
        ),
    ],
)
def test_values_that_contradict_each_other_are_refused(
    overrides: dict[str, str], reason: str
) -> None:
    assert conflict_of({}, ENABLED | overrides) == reason
    untiered = ENABLED | overrides | {"remote.storage.enable": "false"}
    assert conflict_of({}, untiered) is None


def test_values_in_order_are_no_conflict() -> None:
    for overrides in (
        {},
        {"local.retention.ms": "1000", "remote.copy.lag.ms": "1000"},
        {"remote.copy.lag.ms": "-1", "remote.copy.lag.bytes": "-1"},
        {"retention.ms": "-1", "local.retention.ms": "-1", "remote.copy.lag.ms": "9999999"},
    ):
        assert conflict_of({}, ENABLED | overrides) is None, overrides


def test_bounds_are_kafkas() -> None:
    for name, least in (
        ("local.retention.ms", -2),
        ("local.retention.bytes", -2),
        ("remote.copy.lag.ms", -1),
        ("remote.copy.lag.bytes", -1),
    ):
        assert validate_topic_config(name, str(least)) is None
        assert validate_topic_config(name, str(least - 1)) is not None
