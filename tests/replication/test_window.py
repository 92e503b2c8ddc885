"""Windows over modelled links, in virtual time. Source: design section 5 ("sized from the link's
measured bandwidth x round trip")."""

import heapq
import random
from collections import deque
from collections.abc import Callable

import pytest

from strandline.model.ids import BrokerId, Index
from strandline.replication.leader.follower_stream import FollowerStream
from strandline.replication.leader.window import BYTES_MIN, COUNT_MIN, ROUND_TRIP_MS_MIN, Window
from strandline.replication.settings import ReplicationSettings

MB = 1_000_000
SETTINGS = ReplicationSettings(inflight_bytes_max=64 * MB, inflight_count_max=4_096)


class ModelledLink:
    """A leader that always has more to send, a link with a queue, a follower that acknowledges.

    `bytes_per_s` and `round_trip_ms` may change on the way; `flush_ms` is drawn for each append."""

    def __init__(
        self,
        *,
        bytes_per_s: int,
        round_trip_ms: float,
        append_bytes: int = MB,
        flush_ms: Callable[[], float] = lambda: 0.0,
        settings: ReplicationSettings = SETTINGS,
    ) -> None:
        self.bytes_per_s = bytes_per_s
        self.round_trip_ms = round_trip_ms
        self.append_bytes = append_bytes
        self.flush_ms = flush_ms
        self.stream = FollowerStream(settings)
        self.now_ms = 0.0
        self.delivered_bytes = 0
        self.highest_inflight_bytes = 0
        self._free_at_ms = 0.0
        self._acknowledged_at_ms = 0.0
        self._last_index = 0
        self._arrivals: list[tuple[float, int, int]] = []
        self._round_trips: deque[float] = deque()

    def run(self, duration_ms: float) -> float:
        """Let time go by; the share of the link that was used."""
        end_ms = self.now_ms + duration_ms
        before = self.delivered_bytes
        self.highest_inflight_bytes = 0
        while True:
            self._send()
            if not self._arrivals or self._arrivals[0][0] > end_ms:
                self.now_ms = end_ms
                return (self.delivered_bytes - before) * 1000 / duration_ms / self.bytes_per_s
            self.now_ms, index, size = heapq.heappop(self._arrivals)
            self.delivered_bytes += size
            self.stream.on_acknowledged(Index(index), int(self.now_ms))

    def _send(self) -> None:
        while self.stream.has_room:
            self._last_index += 1
            size = self.append_bytes
            self.stream.on_sent(Index(self._last_index), size, int(self.now_ms))
            self._free_at_ms = max(self._free_at_ms, self.now_ms) + size * 1000 / self.bytes_per_s
            arrival_ms = self._free_at_ms + self.round_trip_ms + self.flush_ms()
            self._acknowledged_at_ms = max(self._acknowledged_at_ms, arrival_ms)
            heapq.heappush(self._arrivals, (self._acknowledged_at_ms, self._last_index, size))
            self.highest_inflight_bytes = max(
                self.highest_inflight_bytes, self.stream.inflight_bytes
            )


@pytest.mark.parametrize("append_bytes", [64_000, 1_000_000])
@pytest.mark.parametrize(
    ("bytes_per_s", "round_trip_ms"),
    [(100 * MB, 90), (100 * MB, 100), (100 * MB, 1), (10 * MB, 400), (2 * MB, 30)],
)
def test_a_link_is_full_whatever_its_length(
    bytes_per_s: int, round_trip_ms: int, append_bytes: int
) -> None:
    link = ModelledLink(
        bytes_per_s=bytes_per_s, round_trip_ms=round_trip_ms, append_bytes=append_bytes
    )
    link.run(1_000 + 8 * round_trip_ms)
    # Long enough for the round trip to be measured anew, more than once.
    assert link.run(15_000) >= 0.95
    product = bytes_per_s * max(round_trip_ms, ROUND_TRIP_MS_MIN) // 1000
    assert link.highest_inflight_bytes <= max(BYTES_MIN, 2.5 * product) + 4 * append_bytes


def test_the_limits_of_the_configuration_fill_100_mb_per_second_at_90_ms() -> None:
    settings = ReplicationSettings()
    link = ModelledLink(bytes_per_s=100 * MB, round_trip_ms=90, settings=settings)
    link.run(2_000)
    assert link.run(20_000) >= 0.97
    assert link.highest_inflight_bytes <= settings.inflight_bytes_max + MB


def test_a_slow_link_has_little_under_way() -> None:
    """What is under way there comes before whatever the follower must be told."""
    link = ModelledLink(bytes_per_s=50_000, round_trip_ms=30, append_bytes=16_000)
    link.run(60_000)
    assert link.run(60_000) >= 0.99
    assert link.highest_inflight_bytes <= BYTES_MIN + 16_000


def test_a_link_that_becomes_slow_is_given_less() -> None:
    link = ModelledLink(bytes_per_s=100 * MB, round_trip_ms=50, append_bytes=64_000)
    link.run(5_000)
    assert link.highest_inflight_bytes > 8 * MB
    link.bytes_per_s = MB
    link.run(20_000)
    assert link.run(20_000) >= 0.97
    assert link.highest_inflight_bytes <= 300_000


def test_a_link_that_becomes_longer_is_full_again_within_a_few_rounds_of_measuring() -> None:
    link = ModelledLink(bytes_per_s=20 * MB, round_trip_ms=10, append_bytes=64_000)
    link.run(5_000)
    link.round_trip_ms = 200
    link.run(30_000)
    assert link.run(20_000) >= 0.97


def test_flushes_that_take_unequal_times_do_not_close_the_window() -> None:
    rng = random.Random(1)
    link = ModelledLink(
        bytes_per_s=50 * MB,
        round_trip_ms=0.3,
        append_bytes=64_000,
        flush_ms=lambda: rng.choice((0.3, 1.0, 4.0, 12.0)),
    )
    link.run(2_000)
    assert link.run(30_000) >= 0.9


def test_a_producer_that_pauses_keeps_what_was_measured() -> None:
    link = ModelledLink(bytes_per_s=100 * MB, round_trip_ms=100)
    link.run(5_000)
    before = link.stream.window.bytes_max
    # One small append at a time for a minute: it says nothing about the bandwidth.
    for _ in range(100):
        link.now_ms += 600
        now = int(link.now_ms)
        link._last_index += 1
        link.stream.on_acknowledged(Index(link._last_index - 1), now)
        link.stream.on_sent(Index(link._last_index), 100, now)
        link.stream.on_acknowledged(Index(link._last_index), now + 100)
    assert link.stream.window.bytes_max >= before * 0.9


def test_small_appends_are_limited_by_their_number() -> None:
    """A window in requests as well as in bytes."""
    settings = ReplicationSettings()
    link = ModelledLink(bytes_per_s=100 * MB, round_trip_ms=90, append_bytes=100, settings=settings)
    link.run(5_000)
    assert len(link.stream.inflight) == settings.inflight_count_max
    link = ModelledLink(bytes_per_s=100, round_trip_ms=1, append_bytes=100, settings=settings)
    link.run(600_000)
    assert len(link.stream.inflight) <= COUNT_MIN


def test_a_window_is_decided_by_what_it_is_told_alone() -> None:
    def history() -> list[int]:
        rng = random.Random(7)
        link = ModelledLink(
            bytes_per_s=30 * MB, round_trip_ms=40, flush_ms=lambda: rng.random() * 20
        )
        return [int(link.run(500) * 1e6) + link.stream.window.bytes_max for _ in range(40)]

    assert history() == history()


def test_silence_is_longer_on_a_slow_link_and_each_time_that_asking_brought_nothing() -> None:
    link = ModelledLink(bytes_per_s=50_000, round_trip_ms=30, append_bytes=16_000)
    link.run(60_000)
    stream = link.stream
    queued_ms = stream.inflight_bytes * 1000 // 50_000
    assert stream.patience_ms(1_000) == pytest.approx(1_000 + queued_ms, rel=0.1)
    stream.on_asked(60_000)
    assert stream.patience_ms(1_000) == pytest.approx(2_000 + queued_ms, rel=0.1)
    assert len(stream.inflight) > 1, "what was sent is still in flight"


def test_little_that_was_sent_says_nothing_about_how_much_may_be() -> None:
    """Of a follower with a full disk only small appends had come back: it was given the smallest
    window, and hours to answer."""
    stream = FollowerStream(ReplicationSettings())
    before = stream.window.bytes_max, stream.window.count_max
    for index in range(10):
        stream.on_sent(Index(index), 94, index * 1_000)
        stream.on_acknowledged(Index(index), index * 1_000 + 900)
    assert (stream.window.bytes_max, stream.window.count_max) == before
    stream.on_sent(Index(10), 200_000, 10_000)
    assert stream.patience_ms(1_000) == 1_000


def test_no_follower_is_believed_to_be_busy_for_ever() -> None:
    stream = FollowerStream(ReplicationSettings())
    stream.on_sent(Index(1), MB, 0)
    stream.on_acknowledged(Index(1), 3_600_000)
    stream.on_sent(Index(2), MB, 3_600_000)
    assert stream.patience_ms(1_000) == 31_000


def test_a_silence_says_nothing_about_the_speed_of_the_way() -> None:
    """A brief seed: what came back after a silence of 6 s made 8 KB look like 5 minutes, and the
    answers of these were lost: the follower was asked only after 30 s."""
    stream = FollowerStream(ReplicationSettings(inflight_count_max=1))
    stream.on_sent(Index(1), 97, 0)
    stream.on_sent(Index(1), 33, 6_000)  # It is asked, and is heard in the same millisecond.
    stream.on_returned(6_000)
    stream.on_acknowledged(Index(1), 6_001)
    stream.on_sent(Index(2), 8_000, 6_001)
    assert stream.patience_ms(1_000) < 1_500


def test_a_silence_does_not_make_the_way_look_fast_either() -> None:
    """All that was acknowledged after it was counted for the first append that left after it."""
    window = Window(bytes_limit=64 << 20, count_limit=1_000)
    left = [
        window.depart(100_000, ahead_bytes=one * 100_000, ahead_count=one, now_ms=one * 100)
        for one in range(50)
    ]
    window.on_silence_ended(5_000)
    asked = window.depart(100_000, ahead_bytes=5_000_000, ahead_count=50, now_ms=5_001)
    window.deliver([*left, asked], 5_101)
    assert window.bytes_per_s <= 1_000_000


def test_what_was_measured_before_a_silence_says_nothing_of_what_leaves_first() -> None:
    """A new connection begins slowly, and what is little comes in its first round trip. An answer
    to a question measures nothing."""
    window = Window(bytes_limit=64 << 20, count_limit=1_000)
    window.deliver([window.depart(MB, ahead_bytes=0, ahead_count=0, now_ms=0)], 50)
    assert window.is_measured
    window.on_silence_ended(60_000)
    window.deliver([window.depart(28, ahead_bytes=0, ahead_count=0, now_ms=60_000)], 60_050)
    assert window.bytes_per_s > 0
    assert not window.is_measured
    window.deliver([window.depart(14_000, ahead_bytes=0, ahead_count=0, now_ms=60_050)], 60_100)
    assert not window.is_measured
    left = [
        window.depart(size, ahead_bytes=0, ahead_count=0, now_ms=60_100) for size in (80_000, 500)
    ]
    window.deliver(left, 60_600)
    assert window.is_measured
    stream = FollowerStream(ReplicationSettings())
    assert stream.window.is_measured
    stream.reset()
    assert not stream.window.is_measured


def test_what_another_replica_was_to_send_is_not_waited_for_as_long() -> None:
    """Outage seed 5646863 of dad5807: a cut had made the way look slow, an order to lend was lost,
    and the follower lacked the controller's log for 34 s."""
    stream = FollowerStream(ReplicationSettings())
    stream.on_sent(Index(1), MB, 0)
    stream.on_acknowledged(Index(1), 3_600_000)
    stream.fetch_source = BrokerId(2)
    stream.on_sent(Index(2), MB, 3_600_000)
    assert stream.patience_ms(1_000) == 6_000
