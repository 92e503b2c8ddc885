"""Whose turn it is to be served from the log, and how fast. Source: design section 5."""

from strandline.model.ids import BrokerId, GroupId
from strandline.replication.catchup.throttle import COPYING_MS, CopyLimits, RecoveryThrottle
from strandline.simulation.world.clock import HostClock, SimClock
from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import US_PER_MS, Scheduler

MB = 1_000_000


class Readers:
    """Followers that read as soon as they may, `append_bytes` at a time."""

    def __init__(self, *, bytes_per_s: int, append_bytes: dict[int, int]) -> None:
        self.scheduler = Scheduler()
        clock = SimClock(HostClock(self.scheduler), Process(self.scheduler, "host"))
        self.rate = RecoveryThrottle(
            clock, bytes_per_s=bytes_per_s, cross_region_bytes_per_s=bytes_per_s
        )
        self.append_bytes = append_bytes
        self.left_bytes = dict.fromkeys(append_bytes, 1 << 60)
        self.read_bytes = dict.fromkeys(append_bytes, 0)

    def read(self, group: int) -> None:
        while self.left_bytes[group] > 0:
            if not self.rate.admits((GroupId(group), BrokerId(2)), lambda: self.read(group)):
                return
            self.rate.spend(BrokerId(2), self.append_bytes[group])
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
    readers.rate.spend(BrokerId(2), MB)
    for name in ("before", "now"):
        assert not readers.rate.admits(
            (GroupId(1), BrokerId(2)),
            lambda name=name: called.append(name),  # type: ignore[misc]
        )
    readers.run(2_000)
    assert called == ["now"]


def world(*, far_bytes_per_s: int = 10 * MB) -> tuple[Scheduler, RecoveryThrottle]:
    scheduler = Scheduler()
    clock = SimClock(HostClock(scheduler), Process(scheduler, "host"))
    made = RecoveryThrottle(clock, bytes_per_s=10 * MB, cross_region_bytes_per_s=far_bytes_per_s)
    made.place([BrokerId(3), BrokerId(4)])
    return scheduler, made


def nothing() -> None:
    """Who waits is not called to any purpose."""


def test_other_regions_have_a_rate_of_their_own() -> None:
    _, recovery = world(far_bytes_per_s=MB)
    recovery.spend(BrokerId(3), MB)
    assert not recovery.admits((GroupId(1), BrokerId(4)), nothing)
    assert recovery.admits((GroupId(1), BrokerId(2)), nothing)
    recovery.spend(BrokerId(2), MB)
    assert not recovery.admits((GroupId(1), BrokerId(2)), nothing)
    recovery.place([BrokerId(4)])
    assert not recovery.admits((GroupId(1), BrokerId(3)), nothing)
    recovery.stop()


class Copies:
    """Copies to brokers 2 (near), 3 and 4 (far), of a group each, in appends that are allowed."""

    def __init__(self) -> None:
        self.scheduler, self.recovery = world()
        self.read_bytes = {2: 0, 3: 0, 4: 0}
        self.reads: list[tuple[int, int, int]] = []
        """(ms, broker, bytes)"""

    def begin(self, *brokers: int, is_copy: bool = True) -> None:
        for one in brokers:
            self._read(one, is_copy)

    def _read(self, broker: int, is_copy: bool) -> None:
        peer = BrokerId(broker)
        reader = GroupId(broker), peer
        while self.recovery.admits(reader, lambda: self._read(broker, is_copy), is_copy=is_copy):
            most = self.recovery.append_bytes_max(peer) if is_copy else None
            size = min(100_000, most or 100_000)
            self.recovery.spend(peer, size, is_copy=is_copy)
            self.read_bytes[broker] += size
            self.reads.append((self.scheduler.now_us // US_PER_MS, broker, size))

    def run(self, duration_ms: int) -> dict[int, int]:
        """{broker: what was copied to it meanwhile}"""
        before = dict(self.read_bytes)
        self.scheduler.run_until(self.scheduler.now_us + duration_ms * US_PER_MS)
        return {one: self.read_bytes[one] - before[one] for one in before}

    def most_in_a_second(self, *brokers: int) -> int:
        """The most bytes that any second saw go to these."""
        reads = [(at, size) for at, broker, size in self.reads if broker in brokers]
        return max(
            sum(size for at, size in reads if begin <= at < begin + 1_000) for begin, _ in reads
        )


def test_copies_keep_to_what_all_and_what_those_to_other_regions_may_take() -> None:
    copies = Copies()
    copies.recovery.limit_copies(CopyLimits(every=2 * MB, far=MB // 2))
    copies.begin(2, 3, 4)
    read = copies.run(10_000)
    assert 19 * MB <= sum(read.values()) <= 20.5 * MB
    assert 4.9 * MB <= read[3] + read[4] <= 5.2 * MB
    assert abs(read[3] - read[4]) <= 0.1 * MB
    assert copies.most_in_a_second(2, 3, 4) <= 2.1 * MB
    assert copies.most_in_a_second(3, 4) <= 0.55 * MB


def test_a_limit_for_one_broker_holds_up_nobody_else() -> None:
    copies = Copies()
    copies.recovery.limit_copies(CopyLimits(to={BrokerId(3): MB}))
    copies.begin(3, 4)
    read = copies.run(10_000)
    assert 9.9 * MB <= read[3] <= 10.3 * MB
    assert read[4] >= 85 * MB


def test_limits_that_change_hold_for_copies_under_way() -> None:
    copies = Copies()
    copies.begin(3)
    assert copies.run(1_000)[3] >= 9 * MB
    copies.recovery.limit_copies(CopyLimits(every=MB))
    copies.run(1_000)
    assert 0.9 * MB <= copies.run(1_000)[3] <= 1.1 * MB
    copies.recovery.limit_copies(CopyLimits(every=0))
    assert copies.recovery.is_halted(BrokerId(3))
    copies.run(100)
    assert copies.run(10_000)[3] == 0
    copies.recovery.limit_copies(CopyLimits(every=3 * MB, far=2 * MB))
    assert 1.9 * MB <= copies.run(1_000)[3] <= 2.1 * MB
    copies.recovery.limit_copies(CopyLimits())
    assert copies.run(1_000)[3] >= 9 * MB


def test_who_returns_is_served_whatever_copies_may_take() -> None:
    copies = Copies()
    copies.recovery.limit_copies(CopyLimits(every=0))
    copies.begin(3)
    copies.begin(2, 4, is_copy=False)
    read = copies.run(1_000)
    assert read[3] == 0 and min(read[2], read[4]) >= 9 * MB


def test_it_is_known_who_is_copied_to_until_a_while_after() -> None:
    copies = Copies()
    copies.begin(2, is_copy=False)
    assert copies.recovery.copying_to() == (frozenset(), frozenset())
    copies.recovery.limit_copies(CopyLimits(every=0))
    copies.begin(3)
    copies.run(10_000)
    assert copies.recovery.copying_to() == ({BrokerId(3)}, {BrokerId(3)})
    copies.recovery.stop()
    copies.run(COPYING_MS + 1)
    assert copies.recovery.copying_to() == (frozenset(), frozenset())


def test_what_is_lent_counts_as_near_and_not_as_what_crosses() -> None:
    readers = Readers(bytes_per_s=MB, append_bytes={1: MB})
    rate, peer = readers.rate, BrokerId(2)
    rate.place([peer])
    rate.limit_copies(CopyLimits(every=10 * MB, far=0))
    assert rate.is_halted(peer)
    assert not rate.is_halted(peer, is_by_peer=True)
    assert rate.append_bytes_max(peer) == 1
    assert rate.append_bytes_max(peer, is_by_peer=True) == 200_000
    reader = GroupId(1), peer
    assert rate.admits(reader, lambda: None, is_copy=True, is_by_peer=True)
    rate.spend(peer, MB, is_copy=True, is_by_peer=True)
    assert rate.copying_to() == (frozenset({peer}), frozenset())
    assert not rate.admits(reader, lambda: None, is_by_peer=True)
    assert rate.admits((GroupId(2), peer), lambda: None)
    rate.admits(reader, lambda: None, is_copy=True)
    assert rate.copying_to() == (frozenset({peer}), frozenset({peer}))
