"""Whose turn it is to be served from the log, and how fast. Source: design section 5."""

from strandline.model.ids import BrokerId, GroupId
from strandline.replication.recovery import RecoveryRate, RecoveryRates
from strandline.simulation.clock import HostClock, SimClock
from strandline.simulation.process import Process
from strandline.simulation.scheduler import US_PER_MS, Scheduler

MB = 1_000_000


class Readers:
    """Followers that read as soon as they may, `append_bytes` at a time."""

    def __init__(self, *, bytes_per_s: int, append_bytes: dict[int, int]) -> None:
        self.scheduler = Scheduler()
        clock = SimClock(HostClock(self.scheduler), Process(self.scheduler, "host"))
        self.rate = RecoveryRate(clock, bytes_per_s=bytes_per_s)
        self.append_bytes = append_bytes
        self.left_bytes = dict.fromkeys(append_bytes, 1 << 60)
        self.read_bytes = dict.fromkeys(append_bytes, 0)

    def read(self, group: int) -> None:
        while self.left_bytes[group] > 0:
            if not self.rate.admits((GroupId(group), BrokerId(2)), lambda: self.read(group)):
                return
            self.rate.spend(self.append_bytes[group])
            self.read_bytes[group] += self.append_bytes[group]
            self.left_bytes[group] -= self.append_bytes[group]

    def run(self, duration_ms: int) -> None:
        self.scheduler.run_until(self.scheduler.now_us + duration_ms * US_PER_MS)


def test_one_reader_gets_the_rate_and_no_more() -> None:
    readers = Readers(bytes_per_s=10 * MB, append_bytes={1: 100_000})
    readers.read(1)
    readers.run(10_000)
    assert 99 * MB <= readers.read_bytes[1] <= 101 * MB


def test_readers_take_turns_append_by_append() -> None:
    readers = Readers(bytes_per_s=10 * MB, append_bytes=dict.fromkeys(range(5), 100_000))
    for group in readers.append_bytes:
        readers.read(group)
    readers.run(10_000)
    shares = [read / MB for read in readers.read_bytes.values()]
    assert 99 <= sum(shares) <= 101
    assert max(shares) - min(shares) <= 0.2


def test_a_reader_that_is_done_leaves_its_share_to_the_others() -> None:
    readers = Readers(bytes_per_s=10 * MB, append_bytes={1: 100_000, 2: 100_000})
    readers.left_bytes[1] = 5 * MB
    for group in (1, 2):
        readers.read(group)
    readers.run(2_000)
    assert readers.read_bytes[1] == 5 * MB
    assert 14 * MB <= readers.read_bytes[2] <= 16 * MB
    assert readers.rate.waiting_count == 1


def test_an_append_larger_than_the_credit_is_paid_for_afterwards() -> None:
    readers = Readers(bytes_per_s=MB, append_bytes={1: 2 * MB})
    readers.read(1)
    assert readers.read_bytes[1] == 2 * MB
    readers.run(1_900)
    assert readers.read_bytes[1] == 2 * MB
    readers.run(200)
    assert readers.read_bytes[1] == 4 * MB


def test_nobody_is_called_after_the_end() -> None:
    readers = Readers(bytes_per_s=MB, append_bytes={1: MB})
    readers.read(1)
    readers.rate.stop()
    readers.run(10_000)
    assert readers.read_bytes[1] == MB


def test_whoever_leads_a_group_now_is_called_in_its_turn() -> None:
    readers = Readers(bytes_per_s=MB, append_bytes={1: MB})
    called: list[str] = []
    readers.rate.spend(MB)
    for name in ("before", "now"):
        assert not readers.rate.admits(
            (GroupId(1), BrokerId(2)),
            lambda name=name: called.append(name),  # type: ignore[misc]
        )
    readers.run(2_000)
    assert called == ["now"]


def test_other_regions_have_a_rate_of_their_own() -> None:
    scheduler = Scheduler()
    clock = SimClock(HostClock(scheduler), Process(scheduler, "host"))
    rates = RecoveryRates(clock, bytes_per_s=10 * MB, cross_region_bytes_per_s=1 * MB)
    rates.place([BrokerId(3), BrokerId(4)])
    assert rates.of(BrokerId(3)) is rates.of(BrokerId(4)) is not rates.of(BrokerId(2))
    rates.of(BrokerId(3)).spend(1 * MB)
    assert not rates.of(BrokerId(4)).admits((GroupId(1), BrokerId(4)), lambda: None)
    assert rates.of(BrokerId(2)).admits((GroupId(1), BrokerId(2)), lambda: None)
    rates.place([BrokerId(4)])
    assert rates.of(BrokerId(3)) is rates.of(BrokerId(2))
    rates.stop()
