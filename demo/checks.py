"""The promises, each held against what the clients and the table say."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from demo.history import History
from demo.ledger import places
from demo.reports import Audited

MEAN_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Check:
    """One promise: whether it held, and by which figures."""

    promise: str
    held: bool
    figures: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is compared. The arrays have ledger entries; the means are by carrier."""

    flights: int
    failures: Sequence[str]
    acknowledged: numpy.ndarray
    read: numpy.ndarray
    rows: numpy.ndarray
    spark_means: dict[str, float]
    pandas_means: dict[str, float]
    audited: Audited
    history: History


def run_checks(evidence: Evidence) -> list[Check]:
    """Every check, in the order in which they are told."""
    acknowledged, read = places(evidence.acknowledged), places(evidence.read)
    rows = places(evidence.rows)
    lost = numpy.union1d(numpy.setdiff1d(acknowledged, read), numpy.setdiff1d(acknowledged, rows))
    return [
        _check_acknowledged(evidence, acknowledged),
        Check("no acknowledged record lost", len(lost) == 0, f"{len(lost):,} lost"),
        _check_equal("the group read the same set", read, acknowledged),
        _check_equal("the table holds the same set", rows, acknowledged),
        Check(
            "the table has no row twice",
            len(evidence.rows) == len(rows),
            f"{len(evidence.rows):,} rows, {len(rows):,} different",
        ),
        _check_means(evidence.spark_means, evidence.pandas_means),
        _check_replicas(evidence.audited, len(acknowledged)),
        _check_equal("the buckets hold the same set", places(evidence.history.read), acknowledged),
        _check_source(evidence.history),
        _check_equal("the second cluster too", places(evidence.history.copied), acknowledged),
        _check_once(evidence.history),
    ]


def _check_acknowledged(evidence: Evidence, acknowledged: numpy.ndarray) -> Check:
    flights = numpy.unique(acknowledged["flight"])
    once = len(flights) == len(acknowledged) == len(evidence.acknowledged)
    held = once and len(flights) == evidence.flights and not evidence.failures
    figures = f"{len(flights):,} of {evidence.flights:,}"
    if evidence.failures:
        figures += f", given up: {evidence.failures[0]}"
    return Check("every flight acknowledged, once", held, figures)


def _check_equal(promise: str, found: numpy.ndarray, wanted: numpy.ndarray) -> Check:
    missing, extra = len(numpy.setdiff1d(wanted, found)), len(numpy.setdiff1d(found, wanted))
    return Check(
        promise,
        missing == extra == 0,
        f"{len(found):,}: {missing:,} missing, {extra:,} extra",
    )


def _check_source(history: History) -> Check:
    """No byte came from a broker's log: there was none left, and the counters say so."""
    return Check(
        "read out of buckets alone",
        history.local_records == 0 and history.served_bytes >= history.fetched_bytes > 0,
        f"{history.served_bytes:,} of {history.fetched_bytes:,} bytes",
    )


def _check_once(history: History) -> Check:
    rows = len(history.read), len(history.copied)
    twice = sum(rows) - len(places(history.read)) - len(places(history.copied))
    return Check("neither gives a flight twice", twice == 0, f"{twice:,} twice")


def _check_means(spark: dict[str, float], pandas: dict[str, float]) -> Check:
    worst = math.inf
    if spark.keys() == pandas.keys():
        worst = max(abs(spark[carrier] - pandas[carrier]) for carrier in pandas)
    return Check(
        "mean delays: Spark = pandas",
        worst <= MEAN_TOLERANCE,
        f"{len(pandas)} carriers, difference {worst:.0e}",
    )


def _check_replicas(audited: Audited, acknowledged: int) -> Check:
    return Check(
        "all replicas hold the same",
        audited.verdict == "equal" and audited.records == acknowledged,
        f"{audited.verdict}: {audited.replicas} replicas, {audited.records:,} records in each set",
    )
