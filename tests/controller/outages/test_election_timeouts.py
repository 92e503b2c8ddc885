"""Election time-outs that differ by more than leases allow are a fault (decision 0073)."""

import msgspec

from strandline.controller.outages.election_timeouts import timeout_faults
from strandline.controller.reports import Report
from strandline.model.ids import BrokerId

ONE, TWO, THREE = map(BrokerId, (1, 2, 3))
KEY = "[replication] election_timeout_ms"


def test_equal_ones_and_steps_of_a_change_are_no_fault() -> None:
    assert timeout_faults({}) == timeout_faults({ONE: 800}) == {}
    assert timeout_faults({ONE: 800, TWO: 800, THREE: 880}) == {}


def test_the_brokers_and_their_values_are_named() -> None:
    faults = timeout_faults({ONE: 800, TWO: 8_000, THREE: 800})
    assert list(faults) == [KEY]
    assert faults[KEY].startswith("800 on brokers 1, 3; 8000 on broker 2: a deposed leader may")
    assert faults[KEY].endswith("; `strandline doctor settings` says what to do")


def test_a_report_of_an_earlier_release_tells_none_and_an_earlier_release_reads_a_report() -> None:
    class EarlierReport(msgspec.Struct, frozen=True, array_like=True):
        used_bytes: int
        free_bytes: int

    earlier = msgspec.msgpack.encode(EarlierReport(1, 2))
    assert msgspec.msgpack.decode(earlier, type=Report).election_timeout_ms == 0
    present = msgspec.msgpack.encode(Report(1, 2, election_timeout_ms=800))
    assert msgspec.msgpack.decode(present, type=EarlierReport) == EarlierReport(1, 2)
    assert msgspec.msgpack.decode(present, type=Report).election_timeout_ms == 800
