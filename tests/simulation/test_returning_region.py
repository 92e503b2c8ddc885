"""A region that was away gets what it missed once, whatever the number of its replicas: "bytes over
the wire at most 1.1 x what it missed, per region". Source: decision 0022."""

from dataclasses import replace

import pytest
from tests.simulation.plain_scenario import plain_scenario, started

from strandline.base.network import Lane
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, GroupId
from strandline.raft.follower.peer_catchup import PeerCatchup
from strandline.raft.messages import AppendResponse
from strandline.replication.host.replication import Replication
from strandline.replication.leader.followers import Followers
from strandline.replication.liveness import sessions
from strandline.replication.replica.replica import Replica
from strandline.replication.settings import ReplicationSettings
from strandline.simulation.network.network import _Outgoing
from strandline.simulation.scenarios.scenario import ProducerPlan
from strandline.storage.config import LogConfig

MS = 1_000
REGIONS = ("east", "east", "west", "west", "south")
AWAY = (BrokerId(3), BrokerId(4))
GROUP_COUNT = 2
KIB = 1024


class Outage:
    """Five brokers, 2 + 2 + 1, and two partitions with replicas everywhere; west was away."""

    def __init__(
        self,
        seed: int,
        *,
        is_cut: bool = False,
        log: LogConfig | None = None,
        settings: ReplicationSettings | None = None,
        observers: tuple[BrokerId, ...] = (),
        absent: tuple[BrokerId, ...] = (),
        south_us: int = 30_000,
        near_us: int = 500,
        first_group: int = 1,
        key_count: int = 0,
    ) -> None:
        """`absent`: they have room for replicas that they are no members of yet. `south_us`: how
        far east is from south. `first_group`: 0 has one of the logs be the controller's."""
        scenario = plain_scenario(
            seed=seed,
            brokers=5,
            groups=GROUP_COUNT,
            one_way_us=30_000,
            near_one_way_us=near_us,
            producers=tuple(
                ProducerPlan(f"p{group}", GroupId(group), -1, False, 10, 8_000)
                for group in range(first_group, first_group + GROUP_COUNT)
            ),
            log=log,
            settings=settings,
        )
        groups = tuple(
            replace(
                plan,
                group=GroupId(plan.group - 1 + first_group),
                voters=tuple(one for one in plan.voters if one not in (*observers, *absent)),
                observers=observers,
            )
            for plan in scenario.groups
        )
        ways = dict(scenario.one_way_us)
        ways["east", "south"] = ways["south", "east"] = south_us
        world = self.world = started(
            replace(scenario, regions=REGIONS, groups=groups, one_way_us=ways, key_count=key_count)
        )
        self.is_cut = is_cut
        for producer in world.producers:
            producer.start()
        self.run(1_000)
        before = self.log_bytes()
        for broker in AWAY:
            world.hosts[broker].on_down = None
            if not is_cut:
                world.hosts[broker].kill()
        for one, other in self.far():
            if is_cut:
                world.fabric.cut(one, other)
        self.run(6_000)
        for producer in world.producers:
            producer.stop()
        self.run(1_500)
        self.missed_bytes = self.log_bytes() - before
        self.before = dict(world.fabric.counters.way_bytes)

    def end(self) -> None:
        """West is back."""
        for broker in AWAY:
            if not self.is_cut:
                self.world.hosts[broker].start()
        for one, other in self.far():
            if self.is_cut:
                self.world.fabric.heal(one, other)

    def run(self, duration_ms: int) -> None:
        scheduler = self.world.scheduler
        scheduler.run_until(scheduler.now_us + duration_ms * MS)

    def run_until_whole(self) -> None:
        scheduler = self.world.scheduler
        assert scheduler.run_until_true(self.is_whole, limit_us=scheduler.now_us + 30_000 * MS)
        assert self.world.checker.violation is None

    def is_whole(self) -> bool:
        """Whether all replicas are there, and have the same."""
        replicas = self.world.cluster.replicas()
        ends = {(one.group, one.log.last_index, one.high_watermark) for one in replicas}
        return len(replicas) == len(REGIONS) * GROUP_COUNT and len(ends) == GROUP_COUNT

    def log_bytes(self) -> int:
        """Of one replica of each group."""
        sizes: dict[GroupId, int] = {}
        for replica in self.world.cluster.replicas():
            size = max(sizes.get(replica.group, 0), replica.log.size_bytes())
            sizes[replica.group] = size
        return sum(sizes.values())

    @staticmethod
    def far() -> list[tuple[BrokerId, BrokerId]]:
        """Both ways between west and the others."""
        brokers = [BrokerId(number + 1) for number in range(len(REGIONS))]
        return [(a, b) for a in brokers for b in brokers if (a in AWAY) != (b in AWAY)]

    def crossed_ratio(self) -> float:
        """What came into the region since it is back, over what it missed."""
        ways = self.world.fabric.counters.way_bytes
        crossed = sum(
            ways.get(way, 0) - self.before.get(way, 0) for way in self.far() if way[1] in AWAY
        )
        return crossed / self.missed_bytes

    def program(self, broker: BrokerId) -> Replication:
        program = self.world.hosts[broker].program
        assert program is not None
        return program.replication

    def peer_sent_bytes(self) -> int:
        """By the processes that run now."""
        hosts = self.world.hosts.values()
        return sum(
            host.program.replication.peer_sender.peer_sent_bytes for host in hosts if host.program
        )

    def behind(self) -> list[Replica]:
        """Those that are back, and lack something."""
        ends: dict[GroupId, int] = {}
        for one in self.world.cluster.replicas():
            ends[one.group] = max(one.log.last_index, ends.get(one.group, -1))
        return [r for r in self.world.cluster.replicas() if r.log.last_index < ends[r.group]]


class LateOrders:
    """From `begin` on it takes brokers elsewhere so much longer to connect to those of west by the
    lane of orders, once for each connection; to be made before the world is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._late_ms: int | None = None
        self._delayed: set[_Outgoing] = set()
        connect = _Outgoing._connect

        def connect_late(outgoing: _Outgoing) -> None:
            is_order = outgoing.lane is Lane.CONTROL and outgoing.peer in AWAY
            if self._late_ms is None or not is_order or outgoing in self._delayed:
                connect(outgoing)
                return
            self._delayed.add(outgoing)
            outgoing._process.after(self._late_ms * MS, lambda: connect(outgoing))

        monkeypatch.setattr(_Outgoing, "_connect", connect_late)

    def begin(self, late_ms: int) -> None:
        self._late_ms = late_ms


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("is_cut", [False, True])
def test_what_a_region_missed_crosses_once(seed: int, *, is_cut: bool) -> None:
    """It crossed once for each replica: 2.0 x."""
    outage = Outage(seed, is_cut=is_cut)
    assert outage.missed_bytes > 4_000_000
    outage.end()
    outage.run_until_whole()
    outage.run(500)
    assert outage.crossed_ratio() < 1.1
    assert outage.peer_sent_bytes() > 0.75 * outage.missed_bytes


@pytest.mark.parametrize("seed", range(1, 3))
@pytest.mark.parametrize("late_ms", [0, 100, 300, 600])
def test_what_it_missed_crosses_once_whichever_of_its_connections_is_up_first(
    seed: int, late_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was away until all connections had broken, and who is served first cannot be ordered to
    lend yet: 2.02 x, 1.8 where that took 300 ms; and by questions that carry what may be missing
    1.02 where it took no time."""
    late = LateOrders(monkeypatch)
    outage = Outage(seed, is_cut=True)
    outage.run(15_000)
    late.begin(late_ms)
    outage.end()
    outage.run_until_whole()
    assert outage.crossed_ratio() < 1.015


@pytest.mark.parametrize("seed", range(1, 3))
def test_nobody_waits_for_long_for_who_cannot_be_ordered_to_lend(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader reaches it for appends alone, for whatever reason."""
    late = LateOrders(monkeypatch)
    outage = Outage(seed, is_cut=True)
    outage.run(15_000)
    late.begin(20_000)
    outage.end()
    outage.run(6_000)
    assert not outage.behind()
    assert outage.crossed_ratio() > 1.5


@pytest.mark.parametrize("seed", range(1, 4))
def test_the_controllers_log_crosses_once_as_any(seed: int) -> None:
    """It crossed once for each replica: 1.5 x, where the other log is a topic's."""
    outage = Outage(seed, first_group=CONTROLLER_GROUP)
    assert outage.missed_bytes > 4_000_000
    outage.end()
    outage.run_until_whole()
    assert outage.crossed_ratio() < 1.1
    assert outage.peer_sent_bytes() > 0.8 * outage.missed_bytes


@pytest.mark.parametrize("seed", range(1, 3))
def test_observers_borrow_and_lend_as_voters_do(seed: int) -> None:
    outage = Outage(seed, observers=AWAY)
    outage.end()
    outage.run_until_whole()
    assert outage.crossed_ratio() < 1.1


@pytest.mark.parametrize("seed", range(1, 3))
def test_a_broker_that_returns_alone_gets_nothing_from_afar_that_is_near(seed: int) -> None:
    """The other one of its region came back before it, and is whole."""
    outage = Outage(seed)
    first, second = AWAY
    outage.world.hosts[first].start()
    outage.run(8_000)
    assert not outage.behind()
    assert 0.9 < outage.crossed_ratio() < 1.1
    outage.world.hosts[second].start()
    outage.run_until_whole()
    assert outage.crossed_ratio() < 1.15


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_region_is_whole_though_who_lends_dies(seed: int) -> None:
    """Its leader sends the rest; what was under way is asked for, and nothing is sent twice
    without a reason (the invariant of every run)."""
    outage = Outage(seed)
    outage.end()
    scheduler = outage.world.scheduler
    assert scheduler.run_until_true(
        lambda: any(
            outage.program(one).peer_sender.peer_sent_bytes > 100_000
            for one in AWAY
            if outage.world.hosts[one].program
        ),
        limit_us=scheduler.now_us + 10_000 * MS,
    )
    fetch_source = max(AWAY, key=lambda one: outage.program(one).peer_sender.peer_sent_bytes)
    outage.world.hosts[fetch_source].kill()
    outage.run(5_000)
    assert not outage.behind()
    outage.world.hosts[fetch_source].start()
    outage.run_until_whole()


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_region_is_whole_though_nothing_comes_from_who_lends(seed: int) -> None:
    """The way within the region swallows everything; the leader sees acknowledgements from both."""
    outage = Outage(seed)
    outage.end()
    scheduler = outage.world.scheduler
    assert scheduler.run_until_true(
        lambda: outage.peer_sent_bytes() > 100_000, limit_us=scheduler.now_us + 10_000 * MS
    )
    one, other = AWAY
    outage.world.fabric.cut(one, other)
    outage.world.fabric.cut(other, one)
    outage.run(12_000)
    assert not outage.behind()
    outage.world.fabric.heal(one, other)
    outage.world.fabric.heal(other, one)
    outage.run_until_whole()


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_region_is_whole_though_the_log_of_who_could_lend_begins_later(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lent what follows, which was refused, and so on without an end."""
    outage = Outage(seed)
    begins = min(one.log.last_index for one in outage.world.cluster.replicas()) - 50
    may_serve_peer = PeerCatchup.may_serve_peer
    monkeypatch.setattr(
        PeerCatchup,
        "may_serve_peer",
        lambda self, request: request.prev_index >= begins and may_serve_peer(self, request),
    )
    outage.end()
    outage.run_until_whole()


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_region_is_whole_though_the_leader_changes_meanwhile(seed: int) -> None:
    outage = Outage(seed)
    outage.end()
    scheduler = outage.world.scheduler
    assert scheduler.run_until_true(
        lambda: outage.peer_sent_bytes() > 100_000, limit_us=scheduler.now_us + 10_000 * MS
    )
    for leader in {r.self_id for r in outage.world.cluster.replicas() if r.is_leader}:
        outage.world.hosts[leader].on_down = None
        outage.world.hosts[leader].kill()
    outage.run(8_000)
    assert not outage.behind()
    for host in outage.world.hosts.values():
        if host.program is None:
            host.start()
    outage.run_until_whole()


def test_who_sends_and_who_lends_keep_to_the_rate_of_recoveries() -> None:
    settings = ReplicationSettings(recovery_bytes_per_s=1_000 * KIB, append_bytes_max=64 * KIB)
    outage = Outage(1, settings=settings)
    outage.end()
    assert outage.world.scheduler.run_until_true(
        lambda: outage.peer_sent_bytes() > 100_000,
        limit_us=outage.world.scheduler.now_us + 10_000 * MS,
    )
    lent = {one: outage.program(one).peer_sender.peer_sent_bytes for one in AWAY}
    outage.run(2_000)
    for one in AWAY:
        assert outage.program(one).peer_sender.peer_sent_bytes - lent[one] < 2_300 * KIB
    assert outage.behind()
    outage.run_until_whole()
    assert outage.crossed_ratio() < 1.1


def test_what_stays_in_the_region_does_not_count_for_what_may_cross() -> None:
    """Half of the time that both would take, at a rate that is spent on one of them."""
    settings = ReplicationSettings(
        recovery_cross_region_bytes_per_s=2_000 * KIB, append_bytes_max=64 * KIB
    )
    outage = Outage(1, settings=settings)
    outage.end()
    begun_us = outage.world.scheduler.now_us
    outage.run_until_whole()
    took_s = (outage.world.scheduler.now_us - begun_us) / 1_000_000
    both_s = 2 * outage.missed_bytes / (2_000 * KIB)
    assert took_s < 0.75 * both_s


def test_a_broker_of_a_release_that_does_not_know_of_it_is_asked_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "ABILITIES", 0)
    outage = Outage(1)
    outage.end()
    outage.run_until_whole()
    assert outage.peer_sent_bytes() == 0
    assert outage.crossed_ratio() > 1.9


@pytest.mark.parametrize("seed", range(1, 3))
def test_who_catches_up_under_load_is_in_step_at_the_end(seed: int) -> None:
    """And gets by its leader what is new: by another one it would have it later, and for ever so
    where others commit sooner than its region has it."""
    outage = Outage(seed, south_us=2_000)
    outage.end()
    for producer in outage.world.producers:
        producer.start()
    outage.run(6_000)
    assert outage.peer_sent_bytes() > 0.8 * outage.missed_bytes
    lent = outage.peer_sent_bytes()
    outage.run(1_000)
    assert outage.peer_sent_bytes() == lent
    for leader in (one for one in outage.world.cluster.replicas() if one.is_leader):
        assert len(leader.in_sync()) == len(REGIONS)
    for producer in outage.world.producers:
        producer.stop()
    outage.run_until_whole()


def crossed_beside_what_is_new(outage: Outage) -> float:
    """The same as `crossed_ratio`, without what was written since, once."""
    before = outage.log_bytes()
    outage.end()
    for producer in outage.world.producers:
        producer.start()
    outage.run(3_000)
    for producer in outage.world.producers:
        producer.stop()
    outage.run_until_whole()
    new_bytes = outage.log_bytes() - before
    assert new_bytes > 0.4 * outage.missed_bytes
    return outage.crossed_ratio() - new_bytes / outage.missed_bytes


CROSSED_AT_MOST = 1.1


@pytest.mark.parametrize("seed", range(1, 5))
def test_what_a_region_missed_crosses_once_under_load_too(seed: int) -> None:
    """And so does what is new: one replica of the region gets it from the leader, and lends it to
    the others, or hands it on."""
    assert crossed_beside_what_is_new(Outage(seed)) < CROSSED_AT_MOST


def test_where_nobody_relays_what_is_new_crosses_for_each_replica_and_that_is_seen() -> None:
    """For as long as they catch up: four seeds were between 1.31 and 1.4."""
    settings = ReplicationSettings(relays=False)
    crossed = [crossed_beside_what_is_new(Outage(seed, settings=settings)) for seed in range(1, 5)]
    assert min(crossed) > CROSSED_AT_MOST
    assert sum(crossed) > 1.25 * len(crossed)


@pytest.mark.parametrize("seed", range(1, 3))
def test_nothing_overtakes_what_is_lent(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader goes on by itself when all is there that others were to send: what comes too early
    is refused, and has to be sent again."""
    outage = Outage(seed, near_us=20_000)
    refused: list[AppendResponse] = []
    on_response = Followers.on_response

    def listen(self: Followers, peer: BrokerId, response: AppendResponse) -> None:
        if outage.peer_sent_bytes() and not response.accepted:
            refused.append(response)
        on_response(self, peer, response)

    monkeypatch.setattr(Followers, "on_response", listen)
    outage.end()
    for producer in outage.world.producers:
        producer.start()
    outage.run(6_000)
    assert outage.peer_sent_bytes() > 0.8 * outage.missed_bytes
    assert refused == []


@pytest.mark.parametrize("seed", range(1, 3))
def test_a_new_replica_is_copied_within_its_region(seed: int) -> None:
    outage = Outage(seed, absent=(AWAY[1],))
    outage.end()
    outage.run(6_000)
    assert outage.crossed_ratio() < 1.1
    for leader in [one for one in outage.world.cluster.replicas() if one.is_leader]:
        configuration = leader.configuration
        leader.change_configuration(voters=configuration.voters, observers=(AWAY[1],))
    before = outage.crossed_ratio()
    outage.run_until_whole()
    assert outage.crossed_ratio() - before < 0.1
    assert outage.peer_sent_bytes() > outage.missed_bytes
