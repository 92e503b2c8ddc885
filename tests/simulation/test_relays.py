"""What is appended crosses to a region once, and a relay that fails holds nobody up. Source: design
section 5 ("Relay"); decision 0034."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.simulation.plain_scenario import plain_scenario, started

from strandline.model.ids import NO_BROKER, BrokerId, GroupId
from strandline.raft.messages import NO_HINT, AppendResponse
from strandline.replication.leader.follower_stream import FollowerStream
from strandline.replication.leader.followers import Followers
from strandline.replication.liveness import sessions
from strandline.replication.relay.forwarding import Relaying
from strandline.replication.relay.relay_watch import LOOK_MS
from strandline.replication.relay.relays import ORDER_MS, ROUND_TRIPS, SLACK_MS
from strandline.replication.replica.replica import Replica
from strandline.replication.settings import ReplicationSettings
from strandline.replication.wire import Ability, NotRelayed
from strandline.simulation.scenarios.scenario import ProducerPlan

MS = 1_000
STEP_MS = 5
REGIONS = ("east", "east", "west", "west", "west")
EAST, WEST = (BrokerId(1), BrokerId(2)), (BrokerId(3), BrokerId(4), BrokerId(5))
GROUP = GroupId(1)
ONE_WAY_MS = 30


class Stretched:
    """Five brokers, 2 + 3, 60 ms apart, and one partition that east leads, under load."""

    def __init__(
        self,
        seed: int,
        *,
        settings: ReplicationSettings | None = None,
        absent: tuple[BrokerId, ...] = (),
    ) -> None:
        """`absent`: no members yet."""
        scenario = plain_scenario(
            seed=seed,
            brokers=5,
            one_way_us=ONE_WAY_MS * MS,
            near_one_way_us=500,
            producers=(ProducerPlan("p1", GROUP, -1, False, 10, 8_000),),
            settings=settings,
        )
        groups = tuple(
            replace(plan, voters=tuple(one for one in plan.voters if one not in absent))
            for plan in scenario.groups
        )
        world = self.world = started(replace(scenario, regions=REGIONS, groups=groups))
        self.run(500)
        if self.leader.self_id in WEST:
            self.leader.transfer_leadership(EAST[0])
            self.run(1_000)
        assert self.leader.self_id in EAST
        for producer in world.producers:
            producer.start()
        self.run(2_000)

    @property
    def leader(self) -> Replica:
        return next(one for one in self.world.cluster.replicas() if one.is_serving)

    def run(self, duration_ms: int) -> None:
        scheduler = self.world.scheduler
        scheduler.run_until(scheduler.now_us + duration_ms * MS)
        assert self.world.checker.violation is None

    def crossed_ratio(self, duration_ms: int) -> float:
        """How often what is appended from now on crosses to the west."""
        ways = Counter(self.world.fabric.counters.way_bytes)
        logged = self.leader.log.size_bytes()
        self.run(duration_ms)
        new = Counter(self.world.fabric.counters.way_bytes) - ways
        crossed = sum(size for (here, there), size in new.items() if here in EAST and there in WEST)
        appended = self.leader.log.size_bytes() - logged
        assert appended > 300_000
        return crossed / appended

    def relay(self) -> BrokerId:
        """Through whom the others of the west get what is new."""
        assert self.leader.leadership is not None
        relays = [self.leader.leadership.sender.relays.relay_of(one) for one in WEST]
        (relay,) = {one for one in relays if one != NO_BROKER}
        assert relays.count(relay) == 2
        return relay

    def longest_silence_ms(self, peers: list[BrokerId], duration_ms: int) -> int:
        """How long any of these acknowledged nothing new, while something was appended."""
        longest = 0
        leader = self.leader
        silent_ms = dict.fromkeys(peers, 0)
        matches = {one: leader.raft.progress[one].match_flushed for one in peers}
        for _ in range(duration_ms // STEP_MS):
            self.run(STEP_MS)
            for one in peers:
                match = leader.raft.progress[one].match_flushed
                silent_ms[one] = 0 if match > matches[one] else silent_ms[one] + STEP_MS
                matches[one] = match
                longest = max(longest, silent_ms[one])
        assert leader.is_leader
        return longest

    def end(self) -> None:
        """All producers end, and all replicas have the same."""
        for producer in self.world.producers:
            producer.stop()
        self.run(15_000)
        ends = {(one.log.last_index, one.high_watermark) for one in self.world.cluster.replicas()}
        assert len(self.world.cluster.replicas()) == len(REGIONS)
        assert len(ends) == 1


@pytest.mark.parametrize("seed", range(1, 4))
def test_what_is_appended_crosses_to_a_region_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is refused, for nothing overtakes what comes before it."""
    stretched = Stretched(seed)
    refused: list[AppendResponse] = []
    on_response = Followers.on_response

    def listen(self: Followers, peer: BrokerId, response: AppendResponse) -> None:
        if not response.accepted:
            refused.append(response)
        on_response(self, peer, response)

    monkeypatch.setattr(Followers, "on_response", listen)
    assert stretched.crossed_ratio(5_000) < 1.02
    assert refused == []
    stretched.end()


def test_without_relays_it_crosses_for_each_replica() -> None:
    stretched = Stretched(1, settings=ReplicationSettings(relays=False))
    assert stretched.crossed_ratio(2_000) > 2.9


def test_who_becomes_a_replica_is_served_through_others_once_it_is_in_step() -> None:
    """Observers too."""
    new = WEST[2]
    stretched = Stretched(1, absent=(new,))
    leader = stretched.leader
    leader.change_configuration(voters=leader.configuration.voters, observers=(new,))
    stretched.run(3_000)
    assert stretched.leader is leader
    assert leader.leadership is not None
    assert leader.leadership.sender.relays.relay_of(new) in WEST[:2]
    assert stretched.crossed_ratio(2_000) < 1.02
    stretched.end()


def test_who_cannot_relay_is_not_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that knows of none."""
    monkeypatch.setattr(sessions, "ABILITIES", Ability.PEER_CATCHUP)
    assert Stretched(1).crossed_ratio(2_000) > 2.9


def kill(stretched: Stretched, relay: BrokerId) -> None:
    stretched.world.hosts[relay].on_down = None
    stretched.world.hosts[relay].kill()


def pause(stretched: Stretched, relay: BrokerId) -> None:
    stretched.world.hosts[relay].pause()


def cut_off(stretched: Stretched, relay: BrokerId) -> None:
    """From everybody, without a word."""
    for one in (*EAST, *WEST):
        if one != relay:
            stretched.world.fabric.cut(one, relay)
            stretched.world.fabric.cut(relay, one)


def cut_from_its_neighbours(stretched: Stretched, relay: BrokerId) -> None:
    for one in WEST:
        if one != relay:
            stretched.world.fabric.cut(relay, one)


def slow_down(stretched: Stretched, relay: BrokerId) -> None:
    """What comes to it comes late."""
    for one in EAST:
        stretched.world.fabric.link(one, relay).slow_factor = 30


def heal(stretched: Stretched, relay: BrokerId) -> None:
    world = stretched.world
    if world.hosts[relay].process is None:
        world.hosts[relay].start()
    world.hosts[relay].resume()
    for one in (*EAST, *WEST):
        if one != relay:
            world.fabric.heal(one, relay)
            world.fabric.heal(relay, one)
            world.fabric.link(one, relay).slow_factor = 1


def test_who_a_relay_cannot_reach_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many appends the relay could not hand on: each question sends another probe, and
    doubles what is waited for before the next one."""
    stretched = Stretched(1)
    relay = stretched.relay()
    behind = next(one for one in WEST if one != relay)
    asked: list[FollowerStream] = []
    refused: list[NotRelayed] = []
    on_asked, on_refused = FollowerStream.on_asked, Relaying.on_refused

    def note(self: FollowerStream, now_ms: int) -> None:
        asked.append(self)
        on_asked(self, now_ms)

    def count(self: Relaying, relay: BrokerId, message: NotRelayed) -> None:
        refused.append(message)
        on_refused(self, relay, message)

    monkeypatch.setattr(FollowerStream, "on_asked", note)
    monkeypatch.setattr(Relaying, "on_refused", count)
    member = stretched.world.hosts[relay].program
    assert member is not None
    member.replication.network.remove_peer(behind)
    stretched.run(500)
    assert len(refused) > 1
    assert len(asked) == 1
    member.replication.network.set_peer(behind, f"host-{behind}", 1)
    stretched.end()


@pytest.mark.parametrize("seed", [4])
def test_what_a_new_leader_sends_through_a_relay_may_overtake_that_it_leads(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who was handed over to sends to all at once; the longer way is the direct one."""
    stretched = Stretched(seed)
    relay = stretched.relay()
    behind = next(one for one in WEST if one != relay)
    for one in EAST:
        stretched.world.fabric.link(one, behind).slow_factor = 2
    stretched.run(1_500)
    (transfer_target,) = (one for one in EAST if one != stretched.leader.self_id)
    refused: list[AppendResponse] = []
    on_response = Followers.on_response

    def listen(self: Followers, peer: BrokerId, response: AppendResponse) -> None:
        if not response.accepted and response.hint != NO_HINT:
            refused.append(response)
        on_response(self, peer, response)

    monkeypatch.setattr(Followers, "on_response", listen)
    stretched.leader.transfer_leadership(transfer_target)
    stretched.run(1_000)
    assert stretched.leader.self_id == transfer_target
    assert refused == []
    stretched.end()


def test_who_is_much_farther_away_than_its_neighbours_is_no_relay() -> None:
    """Nor does it stay one when its way gets longer: the others would have everything later."""
    stretched = Stretched(1)
    relay = stretched.relay()
    for one in EAST:
        for way in ((one, relay), (relay, one)):
            stretched.world.fabric.link(*way).slow_factor = 3
    stretched.run(ORDER_MS + 2_000)
    assert stretched.relay() != relay
    assert stretched.crossed_ratio(2_000) < 1.02
    stretched.end()


def test_no_voter_is_served_through_an_observer() -> None:
    """Nor where the way to the observer is the shorter one: a commit would wait for it."""
    stretched = Stretched(1, absent=WEST[1:])
    leader = stretched.leader
    leader.change_configuration(voters=leader.configuration.voters, observers=WEST[1:])
    stretched.run(3_000)
    for one in EAST:
        for way in ((one, WEST[0]), (WEST[0], one)):
            stretched.world.fabric.link(*way).slow_factor = 3
    stretched.run(ORDER_MS + 3_000)
    assert stretched.relay() == WEST[0]
    assert stretched.crossed_ratio(2_000) < 1.02
    stretched.end()


def slow_world(*, producers: int, bytes_per_ms: int) -> Stretched:
    """East leads, and one producer has begun."""
    load = tuple(ProducerPlan(f"p{n}", GROUP, -1, False, 100, 8_000) for n in range(producers))
    plain = plain_scenario(brokers=5, one_way_us=2_000, near_one_way_us=500, producers=load)
    stretched = Stretched.__new__(Stretched)
    stretched.world = started(
        replace(plain, regions=REGIONS, bytes_per_ms=bytes_per_ms, jitter_ratio=0.0)
    )
    stretched.run(500)
    if stretched.leader.self_id in WEST:
        stretched.leader.transfer_leadership(EAST[0])
        stretched.run(1_000)
    stretched.world.producers[0].start()
    stretched.run(600)
    return stretched


def test_a_burst_over_a_way_of_which_nothing_was_measured_is_waited_for() -> None:
    """It takes longer than two round trips; to ask, and to send to each, would make it longer."""
    stretched = slow_world(producers=60, bytes_per_ms=1_500)
    for producer in stretched.world.producers[1:]:
        producer.start()
    assert stretched.crossed_ratio(1_000) < 1.02
    stretched.run(500)


def test_a_large_append_over_a_slow_way_is_waited_for() -> None:
    """It takes two seconds at the speed that was measured: nothing is wrong with the relay."""
    load = tuple(ProducerPlan(f"p{acks}", GROUP, acks, False, 6, 3_000) for acks in (-1, 1))
    plain = plain_scenario(brokers=5, one_way_us=30_000, near_one_way_us=500, producers=load)
    stretched = Stretched.__new__(Stretched)
    stretched.world = started(replace(plain, regions=REGIONS))
    stretched.run(500)
    if stretched.leader.self_id in WEST:
        stretched.leader.transfer_leadership(EAST[0])
        stretched.run(1_000)
    for producer in stretched.world.producers:
        producer.start()
    stretched.run(2_000)
    for here in EAST:
        for there in WEST:
            stretched.world.fabric.link(here, there).bytes_per_ms = 250
    assert stretched.crossed_ratio(10_000) < 1.1


FAILURES = (kill, pause, cut_off, cut_from_its_neighbours, slow_down)


@pytest.mark.parametrize("seed", range(1, 3))
@pytest.mark.parametrize("fail", FAILURES, ids=lambda fail: fail.__name__)
def test_a_relay_that_fails_is_gone_round(seed: int, fail: Callable[..., None]) -> None:
    """Within a round trip after what it was to hand on should have been acknowledged; what it did
    not hand on comes a question and an answer later. Nothing is lost, sent twice or out of order
    (EntriesSentOnce), and it is a relay again when it is back."""
    stretched = Stretched(seed)
    relay = stretched.relay()
    others = [one for one in (*EAST, *WEST) if one not in (relay, stretched.leader.self_id)]
    usual_ms = stretched.longest_silence_ms(others, 500)
    fail(stretched, relay)
    silent_ms = stretched.longest_silence_ms(others, 1_000)
    until_gone_round_ms = ROUND_TRIPS * 2 * ONE_WAY_MS + SLACK_MS + LOOK_MS
    assert silent_ms < usual_ms + until_gone_round_ms + 2 * 2 * ONE_WAY_MS
    heal(stretched, relay)
    for producer in stretched.world.producers:
        producer.stop()
    stretched.run(20_000)
    for producer in stretched.world.producers:
        producer.start()
    stretched.run(500)
    assert stretched.crossed_ratio(1_000) < 1.1
    stretched.end()
