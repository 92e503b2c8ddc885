"""The demo's checks hold when all is well; each fails for the fault that it is there to find."""

from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from demo.checks import Evidence, run_checks
from demo.history import History
from demo.ledger import ENTRY, LedgerWriter, count_entries, places, read_entries
from demo.producer import AckGaps
from demo.reports import Audited


def entries(*rows: tuple[int, int, int]) -> numpy.ndarray:
    return numpy.array([(*row, 0.0) for row in rows], ENTRY)


ALL = entries((0, 0, 2), (0, 1, 0), (1, 0, 1))
EQUAL = Audited("equal", 2, 10, 3, digested_bytes=1_000, wire_bytes=10)
HISTORY = History(
    local_records=0,
    objects=6,
    bucket_bytes=900,
    fetched_bytes=300,
    served_bytes=300,
    read=ALL,
    copied=ALL[::-1],
)
GOOD = Evidence(
    flights=3,
    failures=[],
    acknowledged=ALL,
    read=ALL[::-1],
    rows=ALL,
    spark_means={"AA": 1.5},
    pandas_means={"AA": 1.5},
    audited=EQUAL,
    history=HISTORY,
)


def failed(evidence: Evidence) -> set[str]:
    return {check.promise for check in run_checks(evidence) if not check.held}


def test_equal_sets_and_means_hold_every_check() -> None:
    assert failed(GOOD) == set()


def test_records_read_twice_by_the_group_are_no_fault() -> None:
    assert failed(replace(GOOD, read=numpy.concatenate([ALL, ALL]))) == set()


@pytest.mark.parametrize(
    ("fault", "found_by"),
    [
        ({"flights": 4}, {"every flight acknowledged, once"}),
        ({"failures": ["timed out"]}, {"every flight acknowledged, once"}),
        (
            {"read": ALL[1:]},
            {"no acknowledged record lost", "the group read the same set"},
        ),
        (
            {"rows": ALL[:2]},
            {"no acknowledged record lost", "the table holds the same set"},
        ),
        ({"rows": numpy.concatenate([ALL, ALL[:1]])}, {"the table has no row twice"}),
        (
            {"rows": entries((0, 0, 0), (0, 1, 2), (1, 0, 1))},
            {"no acknowledged record lost", "the table holds the same set"},
        ),
        (
            {"read": numpy.concatenate([ALL, entries((1, 1, 7))])},
            {"the group read the same set"},
        ),
        ({"spark_means": {"AA": 1.5 + 1e-6}}, {"mean delays: Spark = pandas"}),
        ({"spark_means": {"UA": 1.5}}, {"mean delays: Spark = pandas"}),
        ({"audited": replace(EQUAL, verdict="incomplete")}, {"all replicas hold the same"}),
        ({"audited": replace(EQUAL, records=2)}, {"all replicas hold the same"}),
        ({"history": replace(HISTORY, read=ALL[1:])}, {"the buckets hold the same set"}),
        ({"history": replace(HISTORY, copied=ALL[1:])}, {"the second cluster too"}),
        ({"history": replace(HISTORY, served_bytes=299)}, {"read out of buckets alone"}),
        ({"history": replace(HISTORY, local_records=1)}, {"read out of buckets alone"}),
        (
            {"history": replace(HISTORY, copied=numpy.concatenate([ALL, ALL[:1]]))},
            {"neither gives a flight twice"},
        ),
    ],
)
def test_each_fault_is_found(fault: dict[str, object], found_by: set[str]) -> None:
    assert failed(replace(GOOD, **fault)) == found_by  # type: ignore[arg-type]


def test_flight_acknowledged_at_two_places_is_found() -> None:
    twice = numpy.concatenate([ALL, entries((2, 0, 1))])
    audited = replace(EQUAL, records=4)
    history = replace(HISTORY, read=twice, copied=twice)
    evidence = replace(
        GOOD, acknowledged=twice, read=twice, rows=twice, audited=audited, history=history
    )
    assert failed(evidence) == {"every flight acknowledged, once"}


class FakeMessage:
    """A message as confluent-kafka hands it out."""

    def __init__(self, partition: int, offset: int, key: bytes) -> None:
        self.partition = lambda: partition
        self.offset = lambda: offset
        self.key = lambda: key
        self.latency = lambda: 0.25


def test_entry_half_written_is_left_for_later(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with LedgerWriter(path) as ledger:
        ledger.add(FakeMessage(1, 5, b"42"))  # type: ignore[arg-type]
    with path.open("ab") as file:
        file.write(b"\x01\x02")
    assert count_entries([path, tmp_path / "none"]) == 1
    assert read_entries([path]).tolist() == [(1, 5, 42, 250.0)]
    assert places(read_entries([path])).tolist() == [(1, 5, 42)]


def test_gap_is_counted_only_while_a_record_waits() -> None:
    now = 0.0
    gaps = AckGaps(clock=lambda: now)
    gaps.on_sent()
    now = 2.0
    gaps.on_ack()
    now = 50.0
    gaps.on_sent()
    now = 50.5
    gaps.on_sent()
    now = 53.0
    gaps.on_ack()
    gaps.on_ack()
    assert gaps.longest_s == 3.0
    assert gaps.pending == 0
