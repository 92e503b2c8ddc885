"""Simulated connections behave as base/network.py allows, and no worse."""

import random
from collections.abc import Callable

import pytest

from strandline.base.network import Lane, Network
from strandline.model.ids import BrokerId
from strandline.network.opening import UNACKNOWLEDGED_MAX_MS
from strandline.simulation.network.link import Link
from strandline.simulation.network.network import SimFabric, SimNetwork
from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import Scheduler

ONE, TWO = BrokerId(1), BrokerId(2)
SECOND_US = 1_000_000


class Broker:
    """An endpoint that writes down what it is told."""

    def __init__(self, fabric: SimFabric, self_id: BrokerId) -> None:
        self.process = Process(fabric.scheduler, f"broker {self_id}")
        self.network = SimNetwork(fabric, self.process, self_id)
        self.scheduler = fabric.scheduler
        self.told: list[str] = []
        self.messages: list[bytes] = []
        self.arrivals_us: list[int] = []
        self.keeps: list[memoryview] = []
        self.network.bind(self)
        self.network.start()

    def on_message(self, peer: BrokerId, lane: Lane, message: memoryview) -> None:
        self.messages.append(bytes(message))
        self.arrivals_us.append(self.scheduler.now_us)
        self.keeps.append(message)

    def on_peer_connected(self, peer: BrokerId, lane: Lane) -> None:
        self.told.append(f"connected {peer} {lane.name}")

    def on_peer_lost(self, peer: BrokerId, lane: Lane) -> None:
        self.told.append(f"lost {peer} {lane.name}")


class Pair:
    """Two brokers, 10 ms apart."""

    def __init__(self, seed: int = 1, make_link: Callable[[], Link] | None = None) -> None:
        self.scheduler = Scheduler()
        make = make_link or (lambda: Link(latency_us=10_000, jitter_us=2_000, bytes_per_ms=10_000))
        self.fabric = SimFabric(self.scheduler, random.Random(seed), lambda a, b: make())
        self.one, self.two = Broker(self.fabric, ONE), Broker(self.fabric, TWO)
        self.one.network.set_peer(TWO, "two", 1)
        self.two.network.set_peer(ONE, "one", 1)
        self.run(1)

    def run(self, seconds: float) -> None:
        self.scheduler.run_until(self.scheduler.now_us + int(seconds * SECOND_US))

    def send(self, *messages: bytes, lane: Lane = Lane.BULK) -> list[bool]:
        return [self.one.network.send(TWO, lane, [message]) for message in messages]


def numbered(count: int) -> list[bytes]:
    return [number.to_bytes(4, "big") for number in range(count)]


def test_messages_arrive_once_and_in_order_after_the_latency() -> None:
    pair = Pair()
    network: Network = pair.one.network
    assert network.is_connected(TWO, Lane.BULK)
    assert pair.one.told == ["connected 2 CONTROL", "connected 2 BULK"]
    sent_us = pair.scheduler.now_us
    assert all(pair.send(*numbered(100)))
    pair.run(1)
    assert pair.two.messages == numbered(100)
    assert pair.two.arrivals_us[0] - sent_us >= 10_000


def test_nothing_is_queued_for_a_peer_that_is_unknown_or_not_connected() -> None:
    pair = Pair()
    handed: list[int] = []
    assert not pair.one.network.send(BrokerId(9), Lane.BULK, [b"x"], lambda: handed.append(1))
    pair.one.network.remove_peer(TWO)
    assert pair.send(b"x") == [False]
    pair.run(1)
    assert handed == []


def test_the_receivers_memory_is_taken_back_after_the_call() -> None:
    pair = Pair()
    pair.send(b"mine for a moment")
    pair.run(1)
    assert set(bytes(pair.two.keeps[0])) == {0xDD}


def test_a_sender_that_changes_its_memory_too_early_is_found_out() -> None:
    pair = Pair()
    memory = bytearray(b"unchanged until handed")
    pair.one.network.send(TWO, Lane.BULK, [memory], lambda: None)
    memory[0] = 0
    with pytest.raises(AssertionError, match="too early"):
        pair.run(1)


def test_handing_over_waits_for_room_in_the_socket() -> None:
    pair = Pair()
    pair.two.process.pause()
    handed: list[int] = []
    for number in range(40):
        pair.one.network.send(TWO, Lane.BULK, [bytes(20_000)], lambda n=number: handed.append(n))  # type: ignore[misc]
    pair.run(5)
    assert 0 < len(handed) < 20
    assert pair.one.network.backlog_bytes(TWO, Lane.BULK) == (40 - len(handed)) * 20_000
    pair.two.process.resume()
    pair.run(5)
    assert handed == list(range(40))
    assert len(pair.two.messages) == 40


def test_lanes_do_not_wait_for_each_other() -> None:
    pair = Pair(make_link=lambda: Link(latency_us=1_000, jitter_us=0, bytes_per_ms=100))
    pair.send(bytes(100_000))
    pair.send(b"quick", lane=Lane.CONTROL)
    pair.run(0.1)
    assert pair.two.messages == [b"quick"]
    pair.run(2)
    assert len(pair.two.messages) == 2


def test_a_slow_link_takes_longer() -> None:
    pair = Pair()
    pair.fabric.link(ONE, TWO).slow_factor = 50
    pair.send(b"slow")
    pair.run(0.4)
    assert pair.two.messages == []
    pair.run(1)
    assert pair.two.messages == [b"slow"]


def test_in_a_black_hole_the_connection_stands_and_nothing_arrives() -> None:
    pair = Pair()
    pair.fabric.cut(ONE, TWO)
    assert pair.send(b"swallowed") == [True]
    pair.run(UNACKNOWLEDGED_MAX_MS / 1_000 - 1)
    assert pair.two.messages == []
    assert pair.one.network.is_connected(TWO, Lane.BULK)
    pair.run(2)
    assert "lost 2 BULK" in pair.one.told
    assert pair.send(b"refused") == [False]


def test_what_stalled_in_a_short_cut_arrives_late_and_in_order() -> None:
    pair = Pair()
    pair.send(*numbered(3))
    pair.fabric.cut(ONE, TWO)
    pair.send(*numbered(6)[3:])
    pair.run(2)
    assert pair.two.messages == []
    pair.fabric.heal(ONE, TWO)
    pair.run(4)
    assert pair.two.messages == numbered(6)
    assert pair.one.told == ["connected 2 CONTROL", "connected 2 BULK"]


def test_a_one_way_cut_lets_the_other_direction_through_until_it_times_out() -> None:
    pair = Pair()
    pair.fabric.cut(TWO, ONE)
    pair.send(b"arrives")
    pair.run(1)
    assert pair.two.messages == [b"arrives"]
    pair.run(UNACKNOWLEDGED_MAX_MS / 1_000 + 1)
    assert pair.one.told[-2:] == ["connected 2 BULK", "lost 2 BULK"]


def test_after_a_reset_the_loss_is_told_before_anything_new_arrives() -> None:
    for seed in range(100):
        pair = Pair(seed)
        pair.send(*numbered(10))
        pair.run(0.011)
        pair.fabric.reset(ONE, TWO)
        told_before = len(pair.one.told)
        pair.send(*numbered(20)[10:])
        pair.run(1)
        assert pair.one.told[told_before:].count("lost 2 BULK") == 1
        assert pair.one.told[-1].startswith("connected")
        assert pair.two.messages == numbered(len(pair.two.messages))
        assert len(pair.two.messages) <= 10


def test_messages_of_a_broken_connection_may_arrive_after_those_of_the_next_one() -> None:
    late = 0
    for seed in range(300):
        pair = Pair(seed)
        pair.send(b"old")
        pair.run(0.001)
        pair.fabric.reset(ONE, TWO)
        for _ in range(60):
            pair.run(0.01)
            if pair.send(b"new") == [True]:
                break
        pair.run(2)
        late += pair.two.messages == [b"new", b"old"]
    assert late > 5


def test_everything_queued_is_handed_back_when_a_connection_breaks() -> None:
    pair = Pair()
    pair.fabric.cut(ONE, TWO)
    handed: list[int] = []
    for number in range(40):
        pair.one.network.send(TWO, Lane.BULK, [bytes(20_000)], lambda n=number: handed.append(n))  # type: ignore[misc]
    pair.run(1)
    pair.fabric.reset(ONE, TWO)
    pair.run(1)
    assert handed == list(range(40))
    assert pair.one.network.backlog_bytes(TWO, Lane.BULK) == 0


def test_a_killed_process_is_noticed_and_its_successor_is_reached() -> None:
    pair = Pair()
    pair.two.process.kill()
    pair.fabric.process_died(TWO, powered=True)
    pair.run(1)
    assert pair.one.told[2:4] == ["lost 2 CONTROL", "lost 2 BULK"]
    assert pair.one.told.count("connected 2 BULK") == 1
    successor = Broker(pair.fabric, TWO)
    pair.run(1)
    assert pair.one.told.count("connected 2 BULK") == 2
    assert pair.send(b"hello") == [True]
    pair.run(1)
    assert successor.messages == [b"hello"]


def test_a_dark_host_is_noticed_only_when_something_stays_unacknowledged() -> None:
    pair = Pair()
    pair.two.process.kill()
    pair.fabric.process_died(TWO, powered=False)
    pair.run(60)
    assert pair.one.network.is_connected(TWO, Lane.BULK)
    pair.send(b"anybody there?")
    pair.run(UNACKNOWLEDGED_MAX_MS / 1_000 + 1)
    assert "lost 2 BULK" in pair.one.told


def test_one_seed_gives_one_history() -> None:
    checksums = set()
    for _ in range(2):
        pair = Pair(7)
        for number in range(50):
            pair.send(number.to_bytes(4, "big"))
            pair.run(0.005)
            if number % 10 == 5:
                pair.fabric.reset(ONE, TWO)
        checksums.add(pair.fabric.counters.checksum)
    assert len(checksums) == 1


def test_a_swallowed_connection_is_found_out_by_silence_alone_and_a_new_one_works() -> None:
    pair = Pair()
    pair.send(b"before")
    pair.run(1)
    pair.fabric.swallow(ONE, TWO)
    pair.send(b"lost")
    pair.run(UNACKNOWLEDGED_MAX_MS / 1_000 - 1)
    assert pair.one.network.is_connected(TWO, Lane.BULK)
    pair.run(3)
    pair.send(b"after")
    pair.run(1)
    assert pair.two.messages == [b"before", b"after"]
    assert "lost 2 BULK" in pair.one.told


def test_what_was_swallowed_on_one_lane_is_expected_of_the_other_one() -> None:
    """A brief seed: each was found out by what was sent on it, 10 s each, one after the other:
    the bulk lane only once there was a leader again."""
    pair = Pair()
    pair.fabric.swallow(ONE, TWO)
    pair.send(b"heartbeat", lane=Lane.CONTROL)
    pair.run(UNACKNOWLEDGED_MAX_MS / 1_000 + 1)
    pair.send(b"entries")
    pair.run(1)
    assert pair.two.messages == [b"entries"]
    assert {"lost 2 CONTROL", "lost 2 BULK"} <= set(pair.one.told)


def test_what_a_lost_connection_had_under_way_comes_after_what_the_next_one_brings() -> None:
    pair = Pair()
    pair.send(*numbered(3))
    assert pair.fabric.deliver_late(ONE, TWO, 2_000_000) == 3
    pair.run(1)
    pair.send(*numbered(3))
    pair.run(0.5)
    assert pair.two.messages == numbered(3)
    pair.run(3)
    assert pair.two.messages == numbered(3) * 2


def test_within_one_connection_nothing_is_doubled_or_overtaken() -> None:
    """TCP numbers its bytes: a segment that comes twice, or early, never reaches the program."""
    lossy = Link(latency_us=10_000, jitter_us=30_000, bytes_per_ms=1_000, loss_ratio=0.3)
    pair = Pair(seed=5, make_link=lambda: lossy)
    pair.send(*numbered(200))
    pair.run(60)
    assert pair.two.messages == numbered(200)


def replies_of(pair: Pair, *messages: bytes) -> list[bool]:
    """Broker two replies to what broker one has sent, on the connection of that."""
    return [pair.two.network.reply(ONE, Lane.BULK, [message]) for message in messages]


def connected_pair(seed: int = 1) -> Pair:
    pair = Pair(seed)
    pair.send(b"question")
    pair.run(1)
    return pair


def test_replies_come_on_the_connection_of_what_they_answer() -> None:
    pair = Pair()
    assert replies_of(pair, b"to nothing") == [False]
    pair = connected_pair()
    pair.two.network.remove_peer(ONE)
    replied_us = pair.scheduler.now_us
    assert all(replies_of(pair, *numbered(100)))
    pair.run(1)
    assert pair.one.messages == numbered(100)
    assert pair.one.arrivals_us[0] - replied_us >= 10_000
    assert pair.one.told == ["connected 2 CONTROL", "connected 2 BULK"]


def test_replies_are_lost_with_their_connection_and_none_comes_after_the_loss_is_told() -> None:
    lost_count = 0
    for seed in range(100):
        pair = connected_pair(seed)
        replies_of(pair, *numbered(10))
        pair.run(0.011)
        pair.fabric.reset(ONE, TWO)
        replies_of(pair, *numbered(20)[10:])
        pair.run(0.000_001)
        while "lost 2 BULK" not in pair.one.told:
            pair.run(0.001)
        count = len(pair.one.messages)
        pair.run(2)
        assert pair.one.messages == numbered(count)
        lost_count += count < 10
        assert replies_of(pair, b"before a question came on the new one") == [False]
        assert pair.send(b"again") == [True]
        pair.run(1)
        assert replies_of(pair, b"new") == [True]
        pair.run(1)
        assert pair.one.messages == [*numbered(count), b"new"]
    assert lost_count > 20


def test_a_cut_of_the_way_back_stalls_replies_until_the_connection_times_out() -> None:
    pair = connected_pair()
    pair.fabric.cut(TWO, ONE)
    replies_of(pair, b"stalled")
    pair.run(2)
    assert pair.one.messages == []
    pair.fabric.heal(TWO, ONE)
    pair.run(4)
    assert pair.one.messages == [b"stalled"]
    pair.fabric.cut(TWO, ONE)
    replies_of(pair, b"lost")
    pair.run(UNACKNOWLEDGED_MAX_MS / 1_000 + 1)
    assert replies_of(pair, b"given up") == [False]
    pair.fabric.heal(TWO, ONE)
    pair.run(UNACKNOWLEDGED_MAX_MS / 1_000 + 1)
    assert pair.one.messages == [b"stalled"]


def test_a_cut_of_the_way_there_lets_replies_through_and_then_ends_the_connection() -> None:
    pair = connected_pair()
    pair.fabric.cut(ONE, TWO)
    replies_of(pair, b"arrives")
    pair.run(UNACKNOWLEDGED_MAX_MS / 1_000 + 1)
    assert pair.one.messages == [b"arrives"]
    assert pair.one.told[2:] == ["lost 2 BULK"]


def test_a_swallowed_connection_swallows_replies() -> None:
    pair = connected_pair()
    pair.fabric.swallow(ONE, TWO)
    assert replies_of(pair, b"swallowed") == [True]
    pair.run(2)
    assert pair.one.messages == []


def test_a_silent_endpoint_does_not_reply() -> None:
    pair = connected_pair()
    pair.two.network.silence(is_silent=True)
    assert replies_of(pair, b"silent") == [False]


def test_replies_that_are_not_read_end_the_connection() -> None:
    pair = connected_pair()
    pair.one.process.pause()
    count = 0
    while replies_of(pair, bytes(1_000_000)) == [True]:
        count += 1
        assert count < 100
    pair.one.process.resume()
    pair.run(2)
    assert "lost 2 BULK" in pair.one.told


def test_no_reply_of_the_earlier_process_comes_after_its_next_one_was_seen() -> None:
    """A dark host's connections stand until its next process listens, or longer."""
    stale_count = 0
    for seed in range(50):
        pair = connected_pair(seed)
        pair.fabric.link(TWO, ONE).slow_factor = 20
        replies_of(pair, b"stale")
        pair.run(0.001)
        pair.two.process.kill()
        pair.fabric.process_died(TWO, powered=False)
        pair.fabric.link(TWO, ONE).slow_factor = 1
        successor = Broker(pair.fabric, TWO)
        successor.network.set_peer(ONE, "one", 1)
        while "connected 1 CONTROL" not in successor.told:
            pair.run(0.001)
        assert successor.network.send(ONE, Lane.CONTROL, [b"next"])
        pair.run(3)
        assert pair.one.messages in ([b"next"], [b"stale", b"next"], [])
        stale_count += pair.one.messages == [b"next"]
    assert stale_count > 10
