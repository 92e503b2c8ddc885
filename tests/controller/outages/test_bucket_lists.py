"""A bucket that some broker lacks, or confuses with another, is told of once (decision 0068)."""

from strandline.controller.outages.bucket_lists import bucket_faults
from strandline.controller.outages.fault_alarms import BEGUN_MS, OVER_MS, FaultAlarms
from strandline.controller.outages.happenings import Kind
from strandline.model.ids import BrokerId

ONE, TWO, THREE = map(BrokerId, (1, 2, 3))


def alarms_of_buckets() -> FaultAlarms:
    return FaultAlarms(Kind.TIERED_BUCKETS, noun="bucket", over="all brokers use it")


def test_equal_lists_are_no_fault() -> None:
    assert bucket_faults({}) == {}
    assert bucket_faults({ONE: {}, TWO: {}}) == {}
    assert bucket_faults({ONE: {"east": "", "west": ""}, TWO: {"west": "", "east": ""}}) == {}


def test_the_odd_brokers_are_named() -> None:
    lists = {ONE: {"east": "", "west": ""}, TWO: {"east": ""}, THREE: {"east": "", "west": ""}}
    assert bucket_faults(lists) == {
        "west": "broker 2 lacks it in [tiered] buckets, and brokers 1, 3 have it"
    }
    assert bucket_faults({ONE: {"east": ""}, TWO: {}, THREE: {}}) == {
        "east": "brokers 2, 3 lack it in [tiered] buckets, and broker 1 has it"
    }


def test_what_brokers_say_of_a_bucket_stands_once_for_all_that_say_so() -> None:
    lists = {ONE: {"east": "it is bucket west"}, TWO: {"east": "it is bucket west"}, THREE: {}}
    assert bucket_faults(lists) == {
        "east": "broker 3 lacks it in [tiered] buckets, and brokers 1, 2 have it; "
        "on brokers 1, 2: it is bucket west"
    }


def test_an_alarm_begins_once_and_ends_once() -> None:
    alarms = alarms_of_buckets()
    faults = {"west": "broker 2 lacks it"}
    assert alarms.step(0, {}) == []
    assert alarms.step(1_000, faults) == []
    assert alarms.happenings == []
    (begun,) = alarms.step(1_000 + BEGUN_MS, faults)
    assert (begun.kind, begun.subject, begun.is_over) == (Kind.TIERED_BUCKETS, "bucket west", False)
    assert begun.text == "bucket west: broker 2 lacks it"
    assert alarms.step(2_000 + BEGUN_MS, faults) == []
    (happening,) = alarms.happenings
    assert (happening.key, happening.since_ms) == ((Kind.TIERED_BUCKETS, "bucket west"), 1_000)
    assert alarms.step(20_000, {}) == []
    (over,) = alarms.step(20_000 + OVER_MS, {})
    assert over.is_over and over.text == "bucket west: all brokers use it"
    assert alarms.happenings == [] and alarms.step(99_000, {}) == []


def test_a_short_fault_is_no_alarm() -> None:
    alarms = alarms_of_buckets()
    for now_ms in range(0, 20 * BEGUN_MS, BEGUN_MS // 2):
        faults = {"west": "x"} if now_ms // (BEGUN_MS // 2) % 2 else {}
        assert alarms.step(now_ms, faults) == []
