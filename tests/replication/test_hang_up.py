"""A leader that hangs up is not named to clients, and its followers stand in turn. Source:
replication.liveness."""

import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest

from strandline.base.clock import Clock
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId
from strandline.raft.group.configuration import Configuration
from strandline.replication.host.election_priority import ElectionPriority
from strandline.replication.host.led_groups import LedGroups
from strandline.replication.liveness.liveness import (
    CANDIDACY_COUNT_MAX,
    FRESH_PATIENCE_MS,
    Liveness,
)
from strandline.replication.liveness.sessions import LeadSession
from strandline.replication.replica.replica import Replica
from strandline.replication.settings import ReplicationSettings
from strandline.replication.wire import HeartbeatAnswer

LEADER, FIRST, SECOND, SELF = (BrokerId(number) for number in (1, 2, 3, 4))
EPOCH = Epoch(1)
GROUP, OTHER_GROUP = GroupId(7), GroupId(8)
SETTINGS = ReplicationSettings()


class StandingClock:
    """Time as the test sets it."""

    def __init__(self) -> None:
        self.now_ms = 10_000

    def monotonic_ms(self) -> int:
        return self.now_ms


@dataclass
class Follower:
    """What `Liveness` reads and writes of a replica."""

    group: GroupId = GROUP
    self_id: BrokerId = SELF
    leader_id: BrokerId = LEADER
    election_priority: ElectionPriority = field(default_factory=lambda: ElectionPriority(SELF))
    epoch: Epoch = EPOCH
    is_leader: bool = False
    is_fresh: bool = False
    has_restarted: bool = False
    is_spared: bool = False
    is_damaged: bool = False
    raft: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(has_lost_state=False))
    last_contact_ms: int = 0
    timeout_ms: int = 0
    stand_after_ms: int = 0
    look_ms: int = 0
    leading_since_ms: int = 0
    configuration: Configuration = field(
        default_factory=lambda: Configuration(voters=(LEADER, FIRST, SECOND, SELF))
    )

    @property
    def is_preferred(self) -> bool:
        return self.election_priority.preferred == self.self_id

    def has_no_way_back(self, broker: BrokerId) -> bool:
        return False


class World:
    """A broker with followers of one leader, whose heartbeats it hears."""

    def __init__(self, *followers: Follower, is_led: bool = True) -> None:
        self.clock = StandingClock()
        replicas = cast("dict[GroupId, Replica]", {one.group: one for one in followers})
        self.liveness = Liveness(
            self_id=SELF,
            clock=cast("Clock", self.clock),
            rng=random.Random(1),
            settings=SETTINGS,
            session=1,
            replicas=replicas,
            remembered=lambda group: (Epoch(0), False),
        )
        self._session = LeadSession(9)
        for one in followers:
            self.liveness.add(cast("Replica", one))
            if is_led:
                self._session.lead(one.group, one.epoch)
                one.timeout_ms = 100_000
        self.liveness.contacts.on_connected(LEADER)
        self.hear()

    def hear(self) -> None:
        """A heartbeat arrives."""
        self.liveness.contacts.on_received(LEADER)
        heartbeat = self._session.heartbeat(self.clock.now_ms)
        self.liveness.on_heartbeat(LEADER, heartbeat)

    def due_after_ms(self, limit_ms: int = 3_000) -> int:
        """How long after now a replica stands for election."""
        for elapsed in range(limit_ms):
            self.clock.now_ms += 1
            if self.liveness.timed_out():
                return elapsed + 1
        raise AssertionError("nobody stands")


def test_a_peer_has_hung_up_from_its_loss_until_it_is_heard() -> None:
    world = World()
    assert not world.liveness.contacts.has_hung_up(LEADER)
    world.liveness.on_lost(LEADER)
    assert world.liveness.contacts.has_hung_up(LEADER)
    world.hear()
    assert not world.liveness.contacts.has_hung_up(LEADER)


def test_what_was_still_in_the_buffers_does_not_hide_that_a_peer_is_gone() -> None:
    world = World()
    world.liveness.on_lost(LEADER)
    world.hear()
    world.liveness.on_lost(LEADER)  # The attempt at another connection is refused.
    assert world.liveness.contacts.has_hung_up(LEADER)


def test_a_peer_that_cannot_be_reached_but_is_heard_has_not_hung_up() -> None:
    world = World()
    for _ in range(10):
        world.liveness.on_lost(LEADER)
    world.hear()
    world.liveness.on_lost(LEADER)
    assert not world.liveness.contacts.has_hung_up(LEADER)


def test_a_peer_that_was_never_connected_has_not_hung_up() -> None:
    world = World()
    world.liveness.on_lost(FIRST)
    assert not world.liveness.contacts.has_hung_up(FIRST)


def test_the_preferred_follower_stands_as_soon_as_votes_can_be_had_and_no_sooner() -> None:
    world = World(Follower())
    world.liveness.on_lost(LEADER)
    assert world.due_after_ms() == SETTINGS.election_timeout_ms


def test_the_others_stand_one_after_the_other() -> None:
    due = []
    for self_id in (FIRST, SECOND, SELF):
        world = World(Follower(self_id=self_id, election_priority=ElectionPriority(SECOND)))
        world.liveness.on_lost(LEADER)
        due.append((world.due_after_ms(), self_id))
    due.sort()
    assert [self_id for _, self_id in due] == [SECOND, FIRST, SELF]
    assert due[1][0] - due[0][0] >= 50
    assert due[2][0] - due[1][0] >= 50


def test_who_is_spared_stands_after_all_others() -> None:
    due = []
    for self_id in (FIRST, SECOND, SELF):
        world = World(
            Follower(
                self_id=self_id,
                election_priority=ElectionPriority(SECOND),
                is_spared=self_id == FIRST,
            )
        )
        world.liveness.on_lost(LEADER)
        due.append((world.due_after_ms(), self_id))
    assert max(due)[1] == FIRST


def test_the_others_stand_by_rank() -> None:
    """The policy prefers SELF to SECOND, and SECOND to FIRST; the preferred one was the leader."""
    election_priority = ElectionPriority(LEADER, {SELF: 1, SECOND: 2, FIRST: 3})
    due = []
    for self_id in (FIRST, SECOND, SELF):
        world = World(Follower(self_id=self_id, election_priority=election_priority))
        world.liveness.on_lost(LEADER)
        due.append((world.due_after_ms(), self_id))
    assert [self_id for _, self_id in sorted(due)] == [SELF, SECOND, FIRST]


def test_time_outs_of_a_better_rank_come_first_and_all_end_within_the_same_spread() -> None:
    """Whatever is drawn: the shares of the spread do not overlap. Without ranks nothing differs."""
    ranked = ElectionPriority(LEADER, {SELF: 1, SECOND: 2, FIRST: 2})
    for election_priority, apart in ((ranked, True), (ElectionPriority(LEADER), False)):
        drawn: dict[BrokerId, list[int]] = {}
        for self_id in (FIRST, SECOND, SELF):
            follower = Follower(self_id=self_id, election_priority=election_priority)
            world = World(follower)
            drawn[self_id] = []
            for _ in range(200):
                world.liveness.on_election_priority(cast("Replica", follower))
                drawn[self_id].append(follower.timeout_ms - SETTINGS.election_timeout_ms)
        assert max(map(max, drawn.values())) <= SETTINGS.election_spread_ms
        assert (max(drawn[SELF]) <= min(drawn[FIRST] + drawn[SECOND])) == apart
        assert max(drawn[FIRST]) > min(drawn[SECOND]) and max(drawn[SECOND]) > min(drawn[FIRST])


def test_the_others_leave_a_new_group_to_its_preferred_broker_while_that_lives() -> None:
    def due_after_ms(alive_for_ms: int) -> int:
        follower = Follower(
            leader_id=NO_BROKER, is_fresh=True, election_priority=ElectionPriority(FIRST)
        )
        world = World(follower, is_led=False)
        for elapsed in range(0, 30_000, 10):
            if elapsed <= alive_for_ms:
                world.liveness.contacts.on_received(FIRST)
            if world.liveness.timed_out():
                return elapsed
            world.clock.now_ms += 10
        raise AssertionError("never stands")

    election_ms = SETTINGS.election_timeout_ms + SETTINGS.election_spread_ms
    assert FRESH_PATIENCE_MS <= due_after_ms(30_000) <= FRESH_PATIENCE_MS + election_ms
    assert 4_000 < due_after_ms(4_000) < 4_000 + 4 * SETTINGS.election_timeout_ms
    assert due_after_ms(-1) <= election_ms


def test_a_hang_up_moves_only_the_followers_of_that_leader() -> None:
    follower = Follower(group=OTHER_GROUP, leader_id=FIRST)
    world = World(Follower(), follower)
    world.liveness.on_lost(LEADER)
    assert follower.timeout_ms == 100_000


def test_after_the_loss_of_a_broker_only_so_many_elections_are_under_way_at_once() -> None:
    followers = [Follower(group=GroupId(number)) for number in range(10 * CANDIDACY_COUNT_MAX)]
    world = World(*followers)
    world.liveness.on_lost(LEADER)
    world.clock.now_ms += SETTINGS.election_timeout_ms
    due = world.liveness.timed_out()
    assert len(due) == CANDIDACY_COUNT_MAX
    for replica in due:
        replica.leader_id = NO_BROKER  # type: ignore[misc]
    assert world.liveness.timed_out() == []
    elected = cast("Follower", due[0])
    elected.leader_id = SELF
    elected.is_leader = True
    assert len(world.liveness.timed_out()) == 1


def test_observers_keep_no_voter_from_standing() -> None:
    """They never stand themselves, and come in turns to know that nobody leads."""
    watching = Configuration(voters=(LEADER, FIRST, SECOND), observers=(SELF,))
    observers = [
        Follower(group=GroupId(number), configuration=watching)
        for number in range(3 * CANDIDACY_COUNT_MAX)
    ]
    voters = [
        Follower(group=GroupId(len(observers) + number)) for number in range(CANDIDACY_COUNT_MAX)
    ]
    world = World(*observers, *voters)
    for one in (*observers, *voters):
        one.timeout_ms = SETTINGS.election_timeout_ms
    world.clock.now_ms += SETTINGS.election_timeout_ms
    due = world.liveness.timed_out()
    assert {one.group for one in due} >= {one.group for one in voters}
    assert len(due) == 2 * CANDIDACY_COUNT_MAX
    told = {one.group for one in due}
    for one in voters:
        one.is_leader = True
    for _ in range(2):
        told |= {one.group for one in world.liveness.timed_out()}
    assert told == {one.group for one in (*observers, *voters)}


def test_followers_of_a_silent_leader_are_looked_at_when_their_time_comes_and_not_at_each_tick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    followers = [Follower(group=GroupId(number)) for number in range(1_000)]
    world = World(*followers)
    for number, one in enumerate(followers):
        one.timeout_ms = SETTINGS.election_timeout_ms + 50 * (1 + number % 10)
    looks: list[Follower] = []
    honest = Liveness._is_covered

    def count(liveness: Liveness, replica: Follower, now: int) -> bool:
        looks.append(replica)
        return honest(liveness, cast("Replica", replica), now)

    monkeypatch.setattr(Liveness, "_is_covered", count)
    world.clock.now_ms += SETTINGS.election_timeout_ms
    stood: list[GroupId] = []
    for _ in range(10):
        world.clock.now_ms += 50
        for replica in world.liveness.timed_out():
            stood.append(replica.group)
            cast("Follower", replica).is_leader = True
    assert sorted(stood) == [one.group for one in followers]
    assert len(looks) <= 2 * len(followers)


def test_groups_that_stand_in_vain_do_not_keep_the_others_from_standing() -> None:
    followers = [Follower(group=GroupId(number)) for number in range(5 * CANDIDACY_COUNT_MAX)]
    world = World(*followers)
    for one in followers:
        one.timeout_ms = SETTINGS.election_timeout_ms
    stood: set[GroupId] = set()
    for _ in range(20):
        world.clock.now_ms += 1_000
        for replica in world.liveness.timed_out():
            replica.leader_id = NO_BROKER  # type: ignore[misc]
            stood.add(replica.group)
    assert stood == {one.group for one in followers}


class CountedLeaders(LedGroups):
    """Counts how often all are gone through."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_count = 0

    @property
    def all(self) -> list[Replica]:
        self.looked_count += 1
        return super().all


def test_while_a_peer_is_silent_the_leaders_are_looked_at_once() -> None:
    world = World()
    led = CountedLeaders()
    for peer in (LEADER, FIRST, SECOND):
        world.liveness.contacts.lead_session(peer)
    for number in range(3):
        leader = Follower(group=GroupId(number), leader_id=SELF, is_leader=True)
        led.add(cast("Replica", leader))
        world.liveness.on_leading(cast("Replica", leader), leader.configuration.members)

    def answer(*peers: BrokerId) -> None:
        for peer in peers:
            heartbeat = world.liveness.contacts.lead_session(peer).heartbeat(world.clock.now_ms)
            told = HeartbeatAnswer(
                session=heartbeat.session,
                number=heartbeat.number,
                sent_ms=heartbeat.sent_ms,
                version=heartbeat.version,
                refused=[],
            )
            world.liveness.contacts.on_heartbeat_answer(peer, told)

    for _ in range(40):
        world.clock.now_ms += 100
        answer(FIRST, SECOND)
        assert world.liveness.without_quorum(led) == []
    assert led.looked_count == 1
    for _ in range(40):
        world.clock.now_ms += 100
        lost = world.liveness.without_quorum(led)
    assert len(lost) == 3


def test_a_broker_that_is_always_late_is_forgiven_once() -> None:
    world = World(Follower())
    world.liveness.on_lost(LEADER)
    world.clock.now_ms += SETTINGS.election_timeout_ms
    assert world.liveness.forgive()
    assert world.liveness.timed_out() == []
    for _ in range(3):
        world.clock.now_ms += SETTINGS.election_timeout_ms // 3 + 1
        assert not world.liveness.forgive()
    assert len(world.liveness.timed_out()) == 1
    world.clock.now_ms += 10 * SETTINGS.election_timeout_ms
    assert world.liveness.forgive()


def test_whose_leader_is_a_peer_no_more_stands() -> None:
    """No time-out had put it under its own timer before, as after a while in which the process did
    not run."""
    follower = Follower()
    world = World(follower)
    follower.timeout_ms = SETTINGS.election_timeout_ms
    assert world.liveness.timed_out() == []
    world.liveness.remove_peer(LEADER)
    assert world.due_after_ms() <= SETTINGS.election_timeout_ms
