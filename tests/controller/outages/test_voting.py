"""Partitions that go on with less are told of once for all of them. Source: decision 0029."""

from dataclasses import replace

import pytest

from strandline.controller.outages.happenings import Kind
from strandline.controller.outages.voting import BEGUN_MS, OVER_MS, VotingAlarms
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId

STEP_MS = 1_000


def brokers(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


class Told:
    """Five partitions with voters 1 to 3 and observer 4, looked at each second."""

    def __init__(self) -> None:
        self.alarms = VotingAlarms()
        self.now_ms = 7
        self.groups = {
            GroupId(one): Partition(
                "flights", one, GroupId(one), brokers(1, 2, 3), observers=brokers(4)
            )
            for one in range(5)
        }
        self.refusing: set[GroupId] = set()
        self.leaderless: set[GroupId] = set()
        self.lagging: set[GroupId] = set()
        self.full: set[GroupId] = set()
        self.full_in_ms: int | None = None

    def act(self, *voters: int, of: range) -> None:
        """These vote in some of them; nobody: who should."""
        for one in map(GroupId, of):
            self.groups[one] = replace(self.groups[one], acting=brokers(*voters))

    def wait(self, ms: int) -> list[str]:
        """What is told meanwhile; a line that begins with "-" tells what is over."""
        found = []
        for _ in range(0, ms, STEP_MS):
            self.now_ms += STEP_MS
            found += self.alarms.step(
                self.now_ms,
                self.groups,
                refusing=self.refusing,
                leaderless=self.leaderless,
                lagging=self.lagging,
                full=self.full,
                full_in_ms=self.full_in_ms,
            )
        return [f"{'- ' if one.is_over else ''}{one.kind}: {one.text}" for one in found]


@pytest.fixture
def told() -> Told:
    made = Told()
    assert made.wait(STEP_MS) == []
    return made


def test_many_partitions_are_one_alarm_when_it_begins_and_when_it_is_over(told: Told) -> None:
    told.act(1, 2, of=range(5))
    assert told.wait(BEGUN_MS + STEP_MS) == [
        "fewer-voters: fewer voters than placement requires: 5 partitions, flights-0, flights-1, "
        "flights-2 and 2 more"
    ]
    assert told.alarms.counts[Kind.FEWER_VOTERS] == 5
    told.act(of=range(3))
    assert told.wait(120_000) == []
    (shown,) = told.alarms.happenings
    assert (shown.kind, shown.subject) == (Kind.FEWER_VOTERS, "partitions")
    assert shown.text.endswith(": 2 partitions, flights-3, flights-4")
    assert told.now_ms - shown.since_ms >= 120_000
    told.act(of=range(5))
    assert told.wait(STEP_MS) == []
    assert [one.text for one in told.alarms.happenings] == [
        "all voters are back since a moment ago"
    ]
    assert told.wait(OVER_MS + STEP_MS) == ["- fewer-voters: all voters are back, after 2 min"]
    assert told.alarms.reported == [] and told.alarms.happenings == []


def test_observers_that_stand_in_are_told_though_as_many_vote_as_should(told: Told) -> None:
    told.act(1, 2, 4, of=range(1))
    assert told.wait(BEGUN_MS + STEP_MS) == [
        "observers-vote: observers stand in for voters: 1 partition, flights-0"
    ]
    told.act(of=range(1))
    assert told.wait(OVER_MS + STEP_MS) == ["- observers-vote: no observer stands in"]


def test_leaders_that_refuse_acks_all_are_told(told: Told) -> None:
    told.refusing = {GroupId(1), GroupId(9)}
    assert told.wait(BEGUN_MS + STEP_MS) == [
        (
            "low-quorum: acks=all writes are rejected: fewer voters are in sync than "
            "min.insync.replicas requires: 1 partition, flights-1"
        )
    ]
    assert told.alarms.reported == [Kind.LOW_QUORUM]


def test_partitions_that_nobody_leads_are_told(told: Told) -> None:
    told.leaderless = {GroupId(3), GroupId(0), GroupId(9)}
    assert told.wait(BEGUN_MS + STEP_MS) == [
        "no-leader: no reachable leader: 2 partitions, flights-0, flights-3"
    ]
    told.leaderless.clear()
    assert told.wait(OVER_MS + STEP_MS) == ["- no-leader: all have a leader"]


def test_partitions_that_are_late_in_a_bucket_are_told(told: Told) -> None:
    told.lagging = {GroupId(2), GroupId(9)}
    assert told.wait(BEGUN_MS + STEP_MS) == [
        (
            "tiered-lag: closed segments are missing from a bucket for longer than "
            "remote.copy.lag.max.ms, or are more than remote.copy.lag.max.bytes: 1 partition, "
            "flights-2"
        )
    ]
    told.lagging.clear()
    assert told.wait(OVER_MS + STEP_MS) == ["- tiered-lag: all buckets have caught up"]


@pytest.mark.parametrize(
    ("full_in_ms", "when"),
    [(0, "0 min"), (90 * 60_000, "90 min"), (5 * 3_600_000 + 59 * 60_000, "5 h")],
)
def test_the_alarm_of_a_bucket_says_when_disks_are_full(
    told: Told, full_in_ms: int, when: str
) -> None:
    told.lagging, told.full_in_ms = {GroupId(2)}, full_in_ms
    (line,) = told.wait(BEGUN_MS + STEP_MS)
    assert line.endswith(
        f"flights-2; at the present rate the first disk or limit is full in {when}"
    )
    told.full_in_ms = None
    assert told.wait(STEP_MS) == []
    assert told.alarms.happenings[0].text.endswith("flights-2")


def test_partitions_that_refuse_writes_for_a_bucket_are_told(told: Told) -> None:
    told.full = {GroupId(2)}
    assert told.wait(BEGUN_MS + STEP_MS) == [
        (
            "tiered-full: writes are refused: closed segments that wait for a bucket are more than "
            "remote.copy.lag.max.bytes: 1 partition, flights-2"
        )
    ]
    told.full.clear()
    assert told.wait(OVER_MS + STEP_MS) == [
        "- tiered-full: writes are taken again: buckets have caught up"
    ]


def test_what_comes_and_goes_is_neither_begun_nor_over_each_time(told: Told) -> None:
    for _ in range(5):
        told.act(1, 2, of=range(2))
        assert told.wait(BEGUN_MS - STEP_MS) == []
        told.act(of=range(2))
        assert told.wait(STEP_MS) == []
    told.act(1, 2, of=range(2))
    assert len(told.wait(BEGUN_MS + STEP_MS)) == 1
    for _ in range(5):
        told.act(of=range(2))
        assert told.wait(OVER_MS - STEP_MS) == []
        told.act(1, 2, of=range(2))
        assert told.wait(BEGUN_MS + STEP_MS) == []


def test_the_next_controller_tells_again_what_goes_on_and_what_is_over(told: Told) -> None:
    told.act(1, 2, of=range(2))
    assert len(told.wait(60_000)) == 1
    told.alarms = VotingAlarms()
    assert len(told.wait(60_000)) == 1
    told.act(of=range(2))
    assert told.wait(OVER_MS + STEP_MS) == ["- fewer-voters: all voters are back, after 1 min"]


def test_what_a_controller_had_no_time_to_tell_is_told_by_the_next_one(told: Told) -> None:
    """It is lost with the region whose voters leave."""
    told.act(1, 2, of=range(2))
    assert told.wait(BEGUN_MS - STEP_MS) == []
    told.alarms = VotingAlarms()
    assert len(told.wait(BEGUN_MS + STEP_MS)) == 1
