"""Two brokers exchange heartbeats over the connections that each of them has opened. Source:
decision 0073."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.clock import Clock
from strandline.base.disk import Buffer
from strandline.base.network import Lane, Network
from strandline.model.ids import BrokerId, Epoch, GroupId
from strandline.replication.liveness.exchange_interval import exchange_interval_ms
from strandline.replication.liveness.heartbeat_exchanges import (
    OWN_CONNECTION_MS,
    HeartbeatExchanges,
)
from strandline.replication.liveness.peer_contacts import PeerContacts
from strandline.replication.liveness.sessions import FollowSession, LeadSession
from strandline.replication.settings import ReplicationSettings
from strandline.replication.wire import (
    Ability,
    Exchange,
    Heartbeat,
    HeartbeatAnswer,
    Kind,
    decode_exchange,
    decode_heartbeat,
    decode_heartbeat_answer,
    encode_control,
)

ONE, TWO = BrokerId(1), BrokerId(2)
GROUP, EPOCH = GroupId(7), Epoch(3)
SETTINGS = ReplicationSettings()
LEASE_MS = SETTINGS.election_timeout_ms * SETTINGS.lease_ratio
ONE_WAY_MS = 40
EARLY_INTERVAL_MS = 150


@dataclass
class Message:
    """`opener`: the broker that opened the connection over which it goes."""

    sender: BrokerId
    opener: BrokerId
    sent_ms: int
    data: bytes

    @property
    def exchange(self) -> Exchange:
        assert self.data[0] == Kind.EXCHANGE
        return decode_exchange(memoryview(self.data)[1:])

    def __str__(self) -> str:
        if self.data[0] != Kind.EXCHANGE:
            return f"{self.sender}: {Kind(self.data[0]).name.lower()}"
        told = [] if self.exchange.heartbeat is None else ["heartbeat"]
        told += [] if self.exchange.answer is None else ["answer"]
        begins = " (begins)" if self.exchange.begins else ""
        return f"{self.sender}: {' + '.join(told)}{begins} over {self.opener}'s"


@dataclass
class World:
    """Two brokers and the two connections between them; time goes by in steps of 1 ms."""

    one_way_ms: int = ONE_WAY_MS
    now_ms: int = 10_000
    # Openers whose connection is dead: what is sent there vanishes.
    dead: set[BrokerId] = field(default_factory=set)
    # Openers whose connection is down, as both know.
    down: set[BrokerId] = field(default_factory=set)
    # How much longer what a broker sends is under way.
    slow_ms: dict[BrokerId, int] = field(default_factory=dict)
    # When, and who renewed its connections.
    renewed: list[tuple[int, BrokerId]] = field(default_factory=list)
    losses: int = 0
    # Of brokers that have others than `SETTINGS`.
    settings: dict[BrokerId, ReplicationSettings] = field(default_factory=dict)
    sent: list[Message] = field(default_factory=list)
    under_way: list[Message] = field(default_factory=list)
    soon: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.one = Broker(self, ONE, TWO)
        self.two = Broker(self, TWO, ONE)
        self.brokers = {ONE: self.one, TWO: self.two}

    def monotonic_ms(self) -> int:
        return self.now_ms

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def transmit(self, sender: BrokerId, opener: BrokerId, parts: Sequence[Buffer]) -> bool:
        if opener in self.down:
            return False
        message = Message(sender, opener, self.now_ms, b"".join(parts))
        self.sent.append(message)
        if self.losses:
            self.losses -= 1
        elif opener not in self.dead:
            self.under_way.append(message)
        return True

    def run(self, duration_ms: int, until: Callable[[], bool] | None = None) -> int:
        """How long it ran."""
        for passed_ms in range(duration_ms):
            if until is not None and until():
                return passed_ms
            self.now_ms += 1
            arrived = [
                m
                for m in self.under_way
                if m.sent_ms + self.one_way_ms + self.slow_ms.get(m.sender, 0) <= self.now_ms
            ]
            for message in arrived:
                self.under_way.remove(message)
                other = self.brokers[TWO if message.sender == ONE else ONE]
                other.receive(message.data)
            for broker in self.brokers.values():
                broker.tick()
            soon, self.soon = self.soon, []
            for callback in soon:
                callback()
        return duration_ms

    def settled(self) -> "World":
        """Both know each other, and are in step."""
        for broker in (self.one, self.two):
            if not broker.is_early_release:
                broker.exchanges.on_connected(broker.peer)
        self.run(3_000)
        return self

    def trace(self, duration_ms: int) -> list[str]:
        """What is sent meanwhile."""
        self.sent.clear()
        self.run(duration_ms)
        return [str(message) for message in self.sent]


class Broker:
    """One side: what `Replication` and `Inbound` do with heartbeats."""

    def __init__(self, world: World, self_id: BrokerId, peer: BrokerId) -> None:
        self.self_id, self.peer, self._world = self_id, peer, world
        self.is_early_release = False
        self._due_ms = world.now_ms
        settings = world.settings.get(self_id, SETTINGS)
        self.contacts = PeerContacts(
            self_id=self_id,
            clock=cast("Clock", world),
            settings=settings,
            session=self_id << 20,
        )
        self.peers = [peer]
        self.exchanges = HeartbeatExchanges(
            self.peers,
            self_id=self_id,
            contacts=self.contacts,
            network=cast("Network", self),
            clock=cast("Clock", world),
            settings=settings,
        )

    @property
    def lead(self) -> LeadSession:
        return self.contacts.lead_session(self.peer)

    @property
    def follow(self) -> FollowSession:
        return self.contacts.follow_session(self.peer)

    # ---- the network -----------------------------------------------------------------------------

    def send(self, peer: BrokerId, lane: Lane, parts: Sequence[Buffer]) -> bool:
        return self._world.transmit(self.self_id, self.self_id, parts)

    def reply(self, peer: BrokerId, lane: Lane, parts: Sequence[Buffer]) -> bool:
        if self._world.brokers[peer].is_early_release or self.is_early_release:
            return False
        return self._world.transmit(self.self_id, peer, parts)

    def is_connected(self, peer: BrokerId, lane: Lane) -> bool:
        return self.self_id not in self._world.down

    def renew(self, peer: BrokerId) -> None:
        self._world.renewed.append((self._world.now_ms, self.self_id))

    # ---- what happens ----------------------------------------------------------------------------

    def tick(self) -> None:
        if self._world.now_ms < self._due_ms:
            return
        if self.is_early_release:
            self._due_ms = self._world.now_ms + EARLY_INTERVAL_MS
            heartbeat = self.lead.heartbeat(self._world.now_ms)
            known = heartbeat.abilities & ~Ability.EXCHANGES
            heartbeat = msgspec.structs.replace(heartbeat, abilities=known)
            self.send(self.peer, Lane.CONTROL, [encode_control(Kind.HEARTBEAT, heartbeat)])
        else:
            self._due_ms = self._world.now_ms + self.exchanges.tick()

    def receive(self, data: bytes) -> None:
        kind, body = data[0], memoryview(data)[1:]
        if kind == Kind.HEARTBEAT:
            self._apply(decode_heartbeat(body), begins=True, came_back=False)
        elif kind == Kind.HEARTBEAT_ANSWER:
            self.contacts.on_heartbeat_answer(self.peer, decode_heartbeat_answer(body))
        else:
            assert not self.is_early_release, "an earlier release knows no such message"
            exchange = decode_exchange(body)
            if exchange.came_back:
                self.exchanges.on_came_back(self.peer)
            if exchange.answer is not None:
                held_ms = exchange.held_ms
                self.contacts.on_heartbeat_answer(self.peer, exchange.answer, held_ms=held_ms)
            if exchange.heartbeat is not None:
                self._apply(
                    exchange.heartbeat, begins=exchange.begins, came_back=exchange.came_back
                )

    def _apply(self, heartbeat: Heartbeat, *, begins: bool, came_back: bool) -> None:
        self.follow.on_heartbeat(heartbeat, self._world.now_ms)
        if self.is_early_release:
            answer = encode_control(Kind.HEARTBEAT_ANSWER, self.follow.answer(heartbeat))
            self.send(self.peer, Lane.CONTROL, [answer])
            return
        self.exchanges.on_heartbeat(self.peer, heartbeat, begins=begins, came_back=came_back)

    def lease_left_ms(self) -> float:
        """How long the answer of the peer extends a lease from now on."""
        return float(self.lead.answered_sent_ms + LEASE_MS - self._world.now_ms)


def led(world: World, *leaders: "Broker") -> World:
    """Each of these leads a group towards the other."""
    for number, broker in enumerate(leaders):
        if broker.is_early_release:
            broker.exchanges.stop()
        broker.lead.lead(GroupId(GROUP + number), EPOCH)
    world.run(1_500)
    return world


# ---- one exchange --------------------------------------------------------------------------------


def test_one_message_each_way_goes_over_one_connection() -> None:
    world = World().settled()
    trace = world.trace(4_000)
    opener = world.sent[0].opener
    other = TWO if opener == ONE else ONE
    begins = f"{opener}: heartbeat + answer (begins) over {opener}'s"
    replies = f"{other}: heartbeat + answer over {opener}'s"
    start = trace.index(begins)
    assert trace[start:] == [begins, replies] * (len(trace[start:]) // 2) + [begins] * (
        len(trace[start:]) % 2
    )
    assert len(trace) <= 2 * (4_000 // 400 + 1)


def test_the_broker_that_leads_something_begins() -> None:
    """The other one's answers can wait; its own cannot."""
    for leader in (ONE, TWO):
        world = World().settled()
        led(world, world.brokers[leader])
        world.run(OWN_CONNECTION_MS)
        world.trace(4_000)
        begun = [m.sender for m in world.sent if m.exchange.begins]
        assert begun.count(leader) >= len(begun) - 1


@pytest.mark.parametrize("one_way_ms", [1, 40, 120])
def test_a_follower_with_a_shorter_time_out_than_its_leader_hears_it_in_time(
    one_way_ms: int,
) -> None:
    patient = ReplicationSettings(election_timeout_ms=10 * SETTINGS.election_timeout_ms)
    world = World(one_way_ms=one_way_ms, settings={ONE: patient})
    led(world.settled(), world.one)
    for _ in range(10_000):
        world.run(1)
        assert world.two.follow.is_fresh(world.now_ms)


def test_where_both_lead_the_one_that_began_answers_at_once() -> None:
    """Both leases rest on heartbeats that have just been sent."""
    world = World().settled()
    led(world, world.one, world.two)
    world.trace(4_000)
    beginning = [i for i, m in enumerate(world.sent[:-2]) if m.exchange.begins]
    assert beginning
    for index in beginning:
        _, reply, answer = world.sent[index : index + 3]
        assert reply.exchange.heartbeat is not None and reply.exchange.answer is not None
        assert answer.exchange.heartbeat is None and answer.exchange.answer is not None
        assert answer.sent_ms == reply.sent_ms + ONE_WAY_MS
        assert {reply.opener, answer.opener} == {world.sent[index].opener}


def test_the_time_that_an_answer_was_kept_is_no_part_of_the_round_trip() -> None:
    world = World().settled()
    led(world, world.one)
    world.sent.clear()
    world.run(8_000)
    assert world.one.lead.rtt_ms == pytest.approx(2 * ONE_WAY_MS, abs=1)
    assert world.two.lead.rtt_ms == pytest.approx(2 * ONE_WAY_MS, abs=1)
    held = [m.exchange.held_ms for m in world.sent if m.exchange.begins and m.exchange.answer]
    assert max(held) > 300


def test_brokers_that_begin_together_do_not_go_on_so() -> None:
    """Their heartbeats cross, each is answered, and one of them begins the next exchange."""
    world = World().settled()
    world.one.exchanges.on_connected(TWO)
    world.two.exchanges.on_connected(ONE)
    world.run(2_000)
    world.trace(4_000)
    assert len({m.sender for m in world.sent if m.exchange.begins}) == 1


def test_each_connection_is_used_now_and_then() -> None:
    """One that is dead would be noticed only when something has to go over it."""
    world = World().settled()
    led(world, world.one)
    world.trace(2 * OWN_CONNECTION_MS)
    assert {m.opener for m in world.sent if m.exchange.begins} == {ONE, TWO}


# ---- changes -------------------------------------------------------------------------------------


def test_a_change_goes_out_at_once() -> None:
    world = World().settled()
    world.run(150)
    world.run(1_000, until=lambda: world.now_ms - world.sent[-1].sent_ms > 200)
    world.one.lead.lead(GROUP, EPOCH)
    assert world.run(1_000, until=lambda: GROUP in world.two.follow.followed) <= ONE_WAY_MS + 2
    assert world.run(1_000, until=lambda: world.one.lead.is_confirmed(GROUP)) <= ONE_WAY_MS + 2


def test_changes_that_follow_each_other_wait_for_the_interval() -> None:
    world = World().settled()
    world.run(1_000, until=lambda: world.now_ms - world.sent[-1].sent_ms > 200)
    world.sent.clear()
    for number in range(50):
        world.one.lead.lead(GroupId(100 + number), EPOCH)
        world.run(2)
    world.run(400)
    assert len(world.two.follow.followed) == 50
    assert len([m for m in world.sent if m.exchange.begins]) <= 3


def test_a_refusal_is_asked_again_at_the_shortest_interval() -> None:
    """The peer may soon vouch for the leader, whose lease waits for it."""
    world = World().settled()
    led(world, world.one)
    world.two.follow.announced(GROUP, EPOCH, vouches=False)
    world.run(1_000, until=lambda: not world.one.lead.is_confirmed(GROUP))
    world.run(100)
    world.two.follow.announced(GROUP, EPOCH, vouches=True)
    took_ms = world.run(1_000, until=lambda: world.one.lead.is_confirmed(GROUP))
    assert took_ms <= 2 * SETTINGS.heartbeat_interval_ms + 2 * ONE_WAY_MS


def test_who_is_no_peer_any_more_is_not_answered() -> None:
    world = World().settled()
    led(world, world.one)
    world.two.peers.clear()
    world.two.exchanges.remove(ONE)
    world.sent.clear()
    world.run(2_000)
    assert {message.sender for message in world.sent} == {ONE}


def test_a_stopped_broker_announces_nothing() -> None:
    world = World().settled()
    world.one.lead.lead(GROUP, EPOCH)
    world.one.exchanges.stop()
    world.sent.clear()
    for callback in world.soon:
        callback()
    assert world.sent == []


def test_a_change_for_a_broker_that_has_left_is_dropped() -> None:
    world = World().settled()
    world.one.exchanges.remove(TWO)
    world.one.contacts.lead_session(BrokerId(9)).lead(GROUP, EPOCH)
    world.sent.clear()
    for callback in world.soon:
        callback()
    assert world.sent == []


# ---- trouble -------------------------------------------------------------------------------------


@pytest.mark.parametrize("one_way_ms", [1, 15, 40, 45])
def test_a_lease_outlives_one_lost_message(one_way_ms: int) -> None:
    """Whichever it is: the heartbeat is repeated over the other connection."""
    for skipped in range(6):
        world = World(one_way_ms)
        led(world.settled(), world.one, world.two)
        before = len(world.sent) + skipped
        world.run(2_000, until=lambda: len(world.sent) >= before)  # noqa: B023
        world.losses = 1
        for _ in range(1_500):
            world.run(1)
            assert world.one.lease_left_ms() > 0
            assert world.two.lease_left_ms() > 0


@pytest.mark.parametrize("opener", [ONE, TWO])
def test_a_dead_connection_keeps_no_heartbeat_from_its_way(opener: BrokerId) -> None:
    """Neither broker is informed: what goes over the other connection arrives."""
    world = World().settled()
    led(world, world.one, world.two)
    world.dead.add(opener)
    for _ in range(5_000):
        world.run(1)
        for broker in (world.one, world.two):
            assert broker.follow.is_fresh(world.now_ms)
            assert broker.lease_left_ms() > 0


@pytest.mark.parametrize("opener", [ONE, TWO])
def test_a_dead_connection_is_renewed_by_its_opener(opener: BrokerId) -> None:
    """Appends go there too, and nothing else says that they don't arrive."""
    world = World().settled()
    led(world, world.one, world.two)
    world.run(OWN_CONNECTION_MS)
    assert world.renewed == []
    world.dead.add(opener)
    begun_ms = world.now_ms
    world.run(OWN_CONNECTION_MS + 2_000, until=lambda: bool(world.renewed))
    ((renewed_ms, who),) = world.renewed
    assert who == opener
    first_ms = next(m.sent_ms for m in world.sent if m.opener == opener and m.sent_ms >= begun_ms)
    assert renewed_ms - first_ms <= SETTINGS.election_timeout_ms + 4 * 2 * ONE_WAY_MS + 100


def test_nothing_is_renewed_for_a_peer_that_is_not_heard() -> None:
    """It may be paused, and have all of it in its sockets."""
    world = World().settled()
    led(world, world.one, world.two)
    world.dead.update((ONE, TWO))
    world.run(5_000)
    world.dead.clear()
    world.run(5_000)
    assert world.renewed == []


def test_nothing_is_renewed_where_all_connections_are_slow() -> None:
    """Much may wait in front of the way there, and would be sent once more."""
    world = World().settled()
    led(world, world.one)
    world.slow_ms[ONE] = 1_500
    world.run(5_000)
    assert world.renewed == []


@pytest.mark.parametrize("opener", [ONE, TWO])
def test_a_broker_that_cannot_connect_leads_nothing(opener: BrokerId) -> None:
    """Its appends could not go anywhere. It follows, and the other one keeps its lease."""
    world = World().settled()
    led(world, world.one, world.two)
    world.down.add(opener)
    without, other = world.brokers[opener], world.brokers[TWO if opener == ONE else ONE]
    for _ in range(3_000):
        world.run(1)
        assert other.lease_left_ms() > 0
        assert without.follow.is_fresh(world.now_ms)
    assert without.lease_left_ms() < 0
    assert not other.follow.is_fresh(world.now_ms)
    world.down.clear()
    without.exchanges.on_connected(other.self_id)
    world.run(4 * ONE_WAY_MS + 100)
    assert without.lease_left_ms() > 0


def test_an_answer_is_overdue_a_tick_after_the_round_trip() -> None:
    world = World().settled()
    led(world, world.one)
    assert not world.one.exchanges.is_overdue(TWO)
    world.brokers[TWO].receive = lambda data: None  # type: ignore[method-assign]
    world.sent.clear()
    world.run(1_000, until=lambda: bool(world.sent))
    tick_ms = world.one.exchanges.tick_ms
    world.run(2 * ONE_WAY_MS + tick_ms - 3)
    assert not world.one.exchanges.is_overdue(TWO)
    world.run(6)
    assert world.one.exchanges.is_overdue(TWO)


def test_what_is_not_answered_is_repeated_as_often_as_an_interval_allows() -> None:
    world = World().settled()
    led(world, world.one)
    world.brokers[TWO].receive = lambda data: None  # type: ignore[method-assign]
    world.run(1_000)
    world.sent.clear()
    world.run(3_000)
    count = len([m for m in world.sent if m.sender == ONE])
    assert 3_000 // 150 - 1 <= count <= 3_000 // SETTINGS.heartbeat_interval_ms + 1
    assert {m.opener for m in world.sent if m.sender == ONE} == {ONE, TWO}


# ---- releases ------------------------------------------------------------------------------------


@pytest.mark.parametrize("early", [ONE, TWO])
def test_an_earlier_release_gets_what_it_knows(early: BrokerId) -> None:
    """A heartbeat an interval, and an answer of its own to each."""
    world = World()
    world.brokers[early].is_early_release = True
    led(world.settled(), world.one, world.two)
    world.trace(3_000)
    for _ in range(3_000):
        world.run(1)
        for broker in (world.one, world.two):
            assert broker.follow.is_fresh(world.now_ms)
            assert broker.lease_left_ms() > LEASE_MS / 3
    assert {m.data[0] for m in world.sent} == {Kind.HEARTBEAT, Kind.HEARTBEAT_ANSWER}
    assert all(m.opener == m.sender for m in world.sent)


@pytest.mark.parametrize("early", [ONE, TWO])
def test_a_release_that_is_replaced_takes_part_in_exchanges(early: BrokerId) -> None:
    world = World()
    world.brokers[early].is_early_release = True
    world.settled()
    world.brokers[early].is_early_release = False
    world.run(2_000)
    world.trace(2_000)
    assert {m.data[0] for m in world.sent} == {Kind.EXCHANGE}


def test_fields_of_later_releases_are_ignored() -> None:
    later = [True, False, None, [1, 2, 3, 4, [], 5, "new"], 6, "newer"]
    exchange = decode_exchange(memoryview(msgspec.msgpack.encode(later)))
    assert exchange.answer == HeartbeatAnswer(1, 2, 3, 4, [], 5)
    assert decode_exchange(memoryview(msgspec.msgpack.encode([True]))) == Exchange(begins=True)


# ---- the interval --------------------------------------------------------------------------------


def _settings() -> Iterator[ReplicationSettings]:
    for interval_ms in (50, 100, 266):
        for timeout_ms in (800, 1_000, 3_000):
            yield ReplicationSettings(
                heartbeat_interval_ms=interval_ms, election_timeout_ms=timeout_ms
            )


@given(st.sampled_from(list(_settings())), st.floats(0, 2_000))
def test_the_interval_follows_the_round_trip(settings: ReplicationSettings, rtt_ms: float) -> None:
    """Longer ones leave no room for a repetition; never shorter than the configured one."""
    interval_ms = exchange_interval_ms(settings, rtt_ms)
    assert interval_ms >= settings.heartbeat_interval_ms
    assert exchange_interval_ms(settings, rtt_ms + 10) <= interval_ms
    if interval_ms > settings.heartbeat_interval_ms:
        lease_ms = settings.election_timeout_ms * settings.lease_ratio
        assert interval_ms + 2 * rtt_ms < lease_ms
        assert interval_ms < 0.6 * settings.election_timeout_ms


@pytest.mark.parametrize(
    ("rtt_ms", "interval_ms"), [(0, 440), (30, 440), (90, 425), (150, 305), (250, 105), (300, 100)]
)
def test_the_interval_with_the_defaults(rtt_ms: int, interval_ms: int) -> None:
    assert exchange_interval_ms(SETTINGS, rtt_ms) == interval_ms
