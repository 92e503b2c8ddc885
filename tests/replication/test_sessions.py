"""Coalesced heartbeats: what a heartbeat stands for, and when it must not. Source:
replication.sessions."""

import random
from collections.abc import Iterator
from itertools import count

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.storage.storage_world import ManualClock

from strandline.model.ids import BrokerId, Epoch, GroupId
from strandline.replication.liveness.liveness import Liveness
from strandline.replication.liveness.sessions import NEVER_MS, FollowSession, LeadSession
from strandline.replication.settings import ReplicationSettings
from strandline.replication.wire import Ability, Heartbeat, HeartbeatAnswer, decode_heartbeat

G1, G2 = GroupId(1), GroupId(2)
E1, E2, E3 = Epoch(1), Epoch(2), Epoch(3)
SETTINGS = ReplicationSettings()
TIMEOUT_MS = SETTINGS.election_timeout_ms


def following(nonces: Iterator[int] | None = None) -> FollowSession:
    """A follower's side, where no other process of its broker gives nonces but from `nonces`."""
    return FollowSession(nonces or count(1), TIMEOUT_MS)


def liveness_at(clock: ManualClock) -> Liveness:
    """What both sides of a broker know of its peers, without a replica."""
    return Liveness(
        self_id=BrokerId(1),
        clock=clock,
        rng=random.Random(1),
        settings=SETTINGS,
        session=7,
        replicas={},
        remembered=lambda group: Epoch(0),
    )


def hear(follow: FollowSession, heartbeat: Heartbeat, now: int) -> HeartbeatAnswer:
    """One heartbeat that arrives; what it is answered."""
    follow.on_heartbeat(heartbeat, now)
    return follow.answer(heartbeat)


def exchange(lead: LeadSession, follow: FollowSession, now: int = 100) -> None:
    """One heartbeat that arrives, and its answer that arrives."""
    lead.on_answer(hear(follow, lead.heartbeat(now), now), now + 10)


def succeed(lead: LeadSession, follow: FollowSession, now: int = 100) -> None:
    """The session takes the place of another one: its second heartbeat brings the nonce back."""
    exchange(lead, follow, now)
    assert not lead.is_confirmed(G1)
    exchange(lead, follow, now)


def test_what_a_release_can_do_goes_with_its_heartbeats() -> None:
    """Earlier ones say nothing of it, and later ones maybe more."""
    lead, follow = LeadSession(7), following()
    assert follow.abilities == Ability(0)
    exchange(lead, follow)
    assert Ability.PEER_CATCHUP in follow.abilities
    heartbeat = lead.heartbeat(200)
    follow.on_heartbeat(msgspec.structs.replace(heartbeat, abilities=0xF00), 200)
    assert follow.abilities == Ability(0)
    session, number, *rest = msgspec.to_builtins(lead.heartbeat(300))
    earlier = decode_heartbeat(memoryview(msgspec.msgpack.encode([session, number, *rest[:-2]])))
    assert (earlier.abilities, earlier.nonce) == (0, -1)


def test_a_leadership_is_confirmed_only_once_the_peer_has_answered() -> None:
    lead, follow = LeadSession(7), following()
    lead.lead(G1, E1)
    assert not lead.is_confirmed(G1)
    exchange(lead, follow)
    assert lead.is_confirmed(G1)
    assert follow.covers(G1, E1)
    assert lead.answered_sent_ms == 100


def test_an_idle_heartbeat_carries_nothing_of_a_thousand_groups() -> None:
    lead, follow = LeadSession(7), following()
    for group in range(1000):
        lead.lead(GroupId(group), E1)
    exchange(lead, follow)
    assert lead.heartbeat(200).changes == []
    assert len(follow.followed) == 1000


def test_a_lost_answer_makes_the_next_heartbeat_bring_the_change_again() -> None:
    lead, follow = LeadSession(7), following()
    lead.lead(G1, E1)
    follow.on_heartbeat(lead.heartbeat(100), 100)
    assert lead.heartbeat(200).changes == [(G1, E1)]


def test_a_group_led_no_more_is_covered_no_more() -> None:
    lead, follow = LeadSession(7), following()
    lead.lead(G1, E1)
    exchange(lead, follow)
    lead.unlead(G1)
    _, uncovered = follow.on_heartbeat(lead.heartbeat(200), 200)
    assert uncovered == [G1]
    assert not follow.covers(G1, E1)


def test_a_follower_that_moved_on_refuses_in_every_answer() -> None:
    lead, follow = LeadSession(7), following()
    lead.lead(G1, E1)
    exchange(lead, follow)
    follow.moved_on(G1, E2, vouches=True)
    assert lead.on_answer(hear(follow, lead.heartbeat(200), 200), 210) == [(G1, E2)]
    assert not follow.covers(G1, E2)


def test_who_moved_on_is_bound_by_its_last_answer_until_the_peer_leads_no_more() -> None:
    lead, follow = LeadSession(7), following()
    for group in (G1, G2):
        lead.lead(group, E1)
        exchange(lead, follow)
    exchange(lead, follow, now=200)
    assert follow.left_ms(G1) == NEVER_MS
    for now in (250, 350):
        for group in (G1, G2):
            follow.moved_on(group, E2, vouches=True)
        exchange(lead, follow, now=now)  # Each of these answers refuses.
        assert (follow.left_ms(G1), follow.left_ms(G2)) == (200, 200)
    lead.unlead(G1)
    lead.lead(G2, E2)
    exchange(lead, follow, now=400)
    assert (follow.left_ms(G1), follow.left_ms(G2)) == (NEVER_MS, NEVER_MS)


def test_who_never_vouched_for_a_leader_is_not_bound() -> None:
    lead, follow = LeadSession(7), following()
    lead.lead(G1, E1)
    follow.on_heartbeat(lead.heartbeat(100), 100)
    follow.announced(G1, E2, vouches=True)
    follow.moved_on(G1, E3, vouches=True)
    assert follow.left_ms(G1) == NEVER_MS


def test_a_leader_that_tells_everything_anew_is_owed_what_it_still_leads() -> None:
    lead, follow = LeadSession(7), following()
    for group in (G1, G2):
        lead.lead(group, E1)
    exchange(lead, follow)
    for group in (G1, G2):
        follow.moved_on(group, E2, vouches=True)
    again = LeadSession(7)
    again.lead(G1, E1)
    follow.on_heartbeat(msgspec.structs.replace(again.heartbeat(200), number=9), 200)
    assert (follow.left_ms(G1), follow.left_ms(G2)) == (100, NEVER_MS)
    restarted = LeadSession(8)
    restarted.lead(G1, E1)
    succeed(restarted, follow, 300)
    assert follow.left_ms(G1) == NEVER_MS


def test_a_restarted_follower_confirms_nothing_until_it_was_told_everything() -> None:
    lead, follow = LeadSession(7), following()
    lead.lead(G1, E1)
    exchange(lead, follow)
    restarted = following()
    exchange(lead, restarted, 200)
    assert not lead.is_confirmed(G1)
    assert lead.answered_sent_ms < 0
    exchange(lead, restarted, 300)
    assert lead.is_confirmed(G1)
    assert restarted.covers(G1, E1)


def test_a_restarted_leader_broker_covers_nothing_of_its_former_life() -> None:
    follow = following()
    former = LeadSession(7)
    former.lead(G1, E1)
    exchange(former, follow)
    present = LeadSession(8)
    present.lead(G2, E2)
    exchange(present, follow, 200)
    _, uncovered = follow.on_heartbeat(present.heartbeat(250), 250)
    assert uncovered == [G1]
    assert follow.covers(G2, E2)


def test_a_late_heartbeat_of_an_earlier_process_takes_nothing_from_the_present_one() -> None:
    """That one leads by a lease that rests on what was answered: nobody else may be voted for."""
    earlier, present, follow = LeadSession(7), LeadSession(8), following()
    earlier.lead(G1, E1)
    exchange(earlier, follow)
    late = earlier.heartbeat(200)
    present.lead(G1, E2)
    present.lead(G2, E1)
    succeed(present, follow, 300)
    assert present.is_confirmed(G1)
    follow.moved_on(G2, E3, vouches=True)
    assert follow.left_ms(G2) == 300
    assert follow.on_heartbeat(late, 301) == ([], [])
    assert follow.covers(G1, E2)
    assert (follow.left_ms(G2), follow.last_contact_ms) == (300, 300)


def test_a_process_between_two_others_that_is_heard_too_late_takes_no_place() -> None:
    """Its connection was held up: nothing of it had come before the present one was answered. (The
    present one was taken for a former one from then on, and passed over for ever.)"""
    first, between, present = (LeadSession(session) for session in (7, 8, 9))
    follow = following()
    first.lead(G1, E1)
    exchange(first, follow)
    between.lead(G1, E2)
    blocked_grants = [between.heartbeat(200), between.heartbeat(250)]
    present.lead(G1, E3)
    succeed(present, follow, 300)
    for late in blocked_grants:
        assert follow.on_heartbeat(late, 350) == ([], [])
        assert follow.answer(late).version == -1
    exchange(present, follow, 400)
    assert present.is_confirmed(G1)
    assert follow.covers(G1, E3)
    assert (follow.last_contact_ms, present.answered_sent_ms) == (400, 400)


def test_a_process_that_was_proved_to_live_once_proves_nothing_later() -> None:
    """What it brought back was drawn before the present one began."""
    first, between, present = (LeadSession(session) for session in (7, 8, 9))
    follow = following()
    exchange(first, follow)
    exchange(between, follow)
    blocked_grants = between.heartbeat(200)
    present.lead(G1, E1)
    succeed(present, follow, 300)
    assert follow.on_heartbeat(blocked_grants, 350) == ([], [])
    assert follow.covers(G1, E1)


def test_a_heartbeat_that_is_passed_over_vouches_for_nothing() -> None:
    """Its versions are not those of the session that is followed."""
    other, present, follow = LeadSession(7), LeadSession(8), following()
    for epoch in (E1, E2, E3):
        other.lead(G2, epoch)
    exchange(other, follow)
    follow.moved_on(G2, Epoch(4), vouches=True)
    present.lead(G1, E1)
    answer = hear(follow, present.heartbeat(200), 200)
    assert (answer.version, answer.refused) == (-1, [])
    assert present.on_answer(answer, 210) == []
    assert not present.is_confirmed(G1)
    assert present.answered_sent_ms == NEVER_MS


def test_whoever_cannot_prove_to_be_later_waits_until_nothing_is_owed() -> None:
    """An earlier release brings no nonce back, and nor does who is sent no answers."""
    former, present, follow = LeadSession(7), LeadSession(8), following()
    former.lead(G1, E1)
    exchange(former, follow, 100)
    present.lead(G1, E2)
    for now in (200, 100 + TIMEOUT_MS - 1):
        follow.on_heartbeat(present.heartbeat(now), now)
        assert follow.followed == {G1: E1}
    now = 100 + TIMEOUT_MS
    follow.on_heartbeat(present.heartbeat(now), now)
    assert follow.followed == {G1: E2}


def test_what_was_taken_back_is_taken_back_though_the_peer_says_again_that_it_knows_nothing() -> (
    None
):
    """Three heartbeats are under way, and the last one brings the first one's nonce."""
    former, present, follow = LeadSession(7), LeadSession(8), following()
    exchange(former, follow)
    first, second = (hear(follow, present.heartbeat(200), 200) for _ in range(2))
    present.on_answer(first, 210)
    present.lead(G1, E1)
    third = hear(follow, present.heartbeat(220), 220)
    assert follow.followed == {G1: E1}
    present.unlead(G1)
    present.on_answer(second, 230)
    present.on_answer(third, 240)
    exchange(present, follow, 250)
    assert follow.followed == {}


def test_who_says_again_that_it_knew_nothing_puts_nothing_off() -> None:
    """It has been told everything since: what it says of that counts."""
    former, present, follow = LeadSession(7), LeadSession(8), following()
    exchange(former, follow)
    present.lead(G1, E1)
    first, second = (hear(follow, present.heartbeat(200), 200) for _ in range(2))
    present.on_answer(first, 210)
    third = hear(follow, present.heartbeat(220), 220)
    for answer in (second, third):
        present.on_answer(answer, 230)
    assert present.is_confirmed(G1)
    assert present.answered_sent_ms == 220


def test_an_earlier_release_is_told_nothing_of_what_is_passed_over() -> None:
    """It would forget what it had just taken back, and never say it again."""
    former, present, follow = LeadSession(7), LeadSession(8), following()
    exchange(former, follow, 100)
    for now, is_answered in ((200, False), (100 + TIMEOUT_MS, True)):
        earlier = msgspec.structs.replace(present.heartbeat(now), nonce=-1)
        follow.on_heartbeat(earlier, now)
        assert follow.is_answered(earlier) == is_answered


def test_an_answer_of_before_everything_was_told_anew_confirms_nothing() -> None:
    """What is taken back between the two is said."""
    lead, follow = LeadSession(7), following()
    lead.lead(G1, E1)
    exchange(lead, follow)
    follow = following()
    second, third, fourth = (lead.heartbeat(now) for now in (200, 210, 220))
    to_second, to_fourth = (hear(follow, one, 230) for one in (second, fourth))
    lead.on_answer(to_second, 240)
    to_fifth, to_third = (hear(follow, one, 260) for one in (lead.heartbeat(250), third))
    lead.on_answer(to_third, 270)
    lead.unlead(G1)
    lead.on_answer(to_fourth, 280)
    lead.on_answer(to_fifth, 290)
    exchange(lead, follow, 300)
    assert follow.followed == {}


def test_what_a_session_says_that_has_yet_to_tell_everything_covers_nothing() -> None:
    """It names a group of the one before, and is not applied: its own timer has to run."""
    present, other, follow = LeadSession(7), LeadSession(8), following()
    exchange(present, follow)
    other.lead(G1, E1)
    follow.on_heartbeat(other.heartbeat(1_000), 1_000)
    assert follow.covers(G1, E1)
    present.lead(G1, E2)
    _, uncovered = follow.on_heartbeat(present.heartbeat(2_000), 2_000)
    assert uncovered == [G1]
    assert follow.followed == {}


def test_what_is_taken_back_before_the_peer_knew_a_session_is_covered_no_more() -> None:
    """It was followed in the one before, and its own timer does not run."""
    former, present, follow = LeadSession(7), LeadSession(8), following()
    former.lead(G1, E1)
    exchange(former, follow)
    present.lead(G1, E2)
    present.unlead(G1)
    now = 100 + TIMEOUT_MS
    _, uncovered = follow.on_heartbeat(present.heartbeat(now), now)
    assert uncovered == [G1]


def test_who_was_forgotten_and_is_a_peer_again_hears_of_another_session() -> None:
    """The numbers begin anew, so it would pass all over that its session has surpassed, and its
    answers would be taken for promises."""
    liveness = liveness_at(ManualClock())
    peer, follow = BrokerId(2), following()
    for now in range(100, 600, 100):
        exchange(liveness.contacts.lead_session(peer), follow, now)
    liveness.remove_peer(peer)
    lead = liveness.contacts.lead_session(peer)
    lead.lead(G1, E1)
    succeed(lead, follow, 600)
    assert lead.is_confirmed(G1)
    assert follow.covers(G1, E1)
    assert follow.last_contact_ms == 600


def test_no_nonce_is_given_twice_not_to_who_is_a_peer_again() -> None:
    """What it brought back may still be under way."""
    liveness, peer, given = liveness_at(ManualClock()), BrokerId(2), set()
    for session in range(5):
        heartbeat = LeadSession(session).heartbeat(100)
        liveness.on_heartbeat(peer, heartbeat)
        given.add(liveness.contacts.follow_session(peer).answer(heartbeat).nonce)
        liveness.remove_peer(peer)
    assert len(given) == 5


def test_nobody_is_told_to_be_silent_before_that_can_be_known() -> None:
    """At the start nobody was heard yet, and after a while in which the process did not run."""
    clock = ManualClock()
    liveness = liveness_at(clock)
    peers = BrokerId(2), BrokerId(3)
    limit_ms = 2 * TIMEOUT_MS
    clock.advance(limit_ms - 1)
    liveness.contacts.on_received(peers[0])
    assert liveness.contacts.silent(peers) == ()
    clock.advance(1)
    assert liveness.contacts.silent(peers) == peers[1:]
    clock.advance(2 * limit_ms)
    assert liveness.contacts.silent(peers) == peers
    assert liveness.forgive()
    assert liveness.contacts.silent(peers) == ()
    clock.advance(limit_ms)
    assert liveness.contacts.silent(peers) == peers


def test_an_answer_to_an_older_heartbeat_does_not_lengthen_a_lease() -> None:
    lead, follow = LeadSession(7), following()
    lead.lead(G1, E1)
    answer_to_first = hear(follow, lead.heartbeat(100), 100)
    exchange(lead, follow, 200)
    assert lead.on_answer(answer_to_first, 300) == []
    assert lead.answered_sent_ms == 200


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("lead"), st.integers(1, 3), st.integers(1, 5)),
        st.tuples(st.just("unlead"), st.integers(1, 3), st.just(0)),
        st.tuples(st.just("exchange"), st.booleans(), st.booleans()),
        st.tuples(st.just("restart follower"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@given(STEPS)
def test_what_is_confirmed_is_what_the_follower_holds(steps: list[tuple[str, int, int]]) -> None:
    """Whatever is lost, restarted or changed: confirmed at the leader implies followed at the peer,
    unless the
    peer has restarted since its last answer."""
    lead, follow = LeadSession(1), following()
    led: dict[int, int] = {}
    answered_since_restart = False
    for step, first, second in steps:
        if step == "lead":
            led[first] = max(second, led.get(first, 0))
            lead.lead(GroupId(first), Epoch(led[first]))
        elif step == "unlead":
            led.pop(first, None)
            lead.unlead(GroupId(first))
        elif step == "restart follower":
            follow = following()
            answered_since_restart = False
        else:
            heartbeat = lead.heartbeat(1)
            if first:
                follow.on_heartbeat(heartbeat, 1)
                if second:
                    lead.on_answer(follow.answer(heartbeat), 2)
                    answered_since_restart = True
        if answered_since_restart:
            for group, epoch in led.items():
                if lead.is_confirmed(GroupId(group)):
                    assert follow.followed.get(GroupId(group)) == epoch


WHICH = st.integers(0, 2)
TURNS = st.lists(
    st.one_of(
        st.just(("send", 0)),
        st.just(("send", 0)),
        st.tuples(st.just("hear"), WHICH),
        st.tuples(st.just("hear"), WHICH),
        st.tuples(st.just("hear an answer"), WHICH),
        st.tuples(st.just("hear an answer"), WHICH),
        st.tuples(st.just("lead"), WHICH),
        st.tuples(st.just("unlead"), WHICH),
        st.tuples(st.just("wait"), st.sampled_from([100, TIMEOUT_MS])),
        st.just(("restart leader", 0)),
        st.just(("restart follower", 0)),
    ),
    min_size=30,
    max_size=60,
)


class Sessions:
    """Both sides. Heartbeats and answers of any process are under way, and arrive in any order or
    not at all."""

    def __init__(self) -> None:
        self._now = 100
        self._epochs, self._sessions, self._nonces = count(1), count(1), count(1)
        self._heartbeats: list[Heartbeat] = []
        # With the follower that gave it.
        self._answers: list[tuple[HeartbeatAnswer, FollowSession]] = []
        self.restart_leader()
        self.restart_follower()

    def restart_leader(self) -> None:
        self._lead = LeadSession(next(self._sessions))
        self._lead.lead(GroupId(0), Epoch(next(self._epochs)))
        # Whose answer was the last one that counted.
        self._answered_by: FollowSession | None = None

    def restart_follower(self) -> None:
        self._follow = following(self._nonces)

    def turn(self, what: str, which: int) -> None:
        """One of `TURNS`."""
        if what == "send":
            self._heartbeats.append(self._lead.heartbeat(self._now))
        elif what == "hear" and self._heartbeats:
            heartbeat = self._heartbeats.pop(which % len(self._heartbeats))
            self._answers.append((hear(self._follow, heartbeat, self._now), self._follow))
        elif what == "hear an answer" and self._answers:
            answer, follow = self._answers.pop(which % len(self._answers))
            last = self._lead.answered_number
            self._lead.on_answer(answer, self._now)
            if self._lead.answered_number > last:
                self._answered_by = follow
        elif what == "lead":
            self._lead.lead(GroupId(which), Epoch(next(self._epochs)))
        elif what == "unlead":
            self._lead.unlead(GroupId(which))
        elif what == "wait":
            self._now += which
        elif what == "restart leader":
            self.restart_leader()
        elif what == "restart follower":
            self.restart_follower()

    def check(self) -> None:
        """What the leader may count on is followed, by the follower that said so."""
        is_counted_on = self._now - self._lead.answered_sent_ms < TIMEOUT_MS
        if is_counted_on and self._answered_by is self._follow:
            for group, epoch in self._lead._led.items():
                if self._lead.is_confirmed(group):
                    assert self._follow.followed[group] == epoch

    def calm_down(self) -> None:
        """Nothing else is under way any more."""
        for _ in range(3):
            exchange(self._lead, self._follow, self._now)
        assert self._follow.followed == self._lead._led
        assert all(self._lead.is_confirmed(group) for group in self._lead._led)


@settings(max_examples=400)
@given(TURNS)
def test_whatever_is_held_up_the_present_process_is_followed(turns: list[tuple[str, int]]) -> None:
    """And what it counts on holds. Two heartbeats that are answered are enough in the end, and one
    more where a process that is gone was heard first."""
    sessions = Sessions()
    for what, which in turns:
        sessions.turn(what, which)
        sessions.check()
    sessions.calm_down()


def test_a_heartbeat_that_comes_late_changes_nothing_and_is_no_sign_of_life() -> None:
    """A connection that broke may still deliver what it had, after the next one."""
    lead, follow = LeadSession(7), following()
    lead.lead(G1, E1)
    exchange(lead, follow)
    lead.unlead(G1)
    late = lead.heartbeat(200)
    lead.lead(G1, E2)
    exchange(lead, follow, now=300)
    assert lead.is_confirmed(G1)
    assert follow.on_heartbeat(late, 400) == ([], [])
    assert follow.covers(G1, E2)
    assert follow.last_contact_ms == 300


def test_heartbeats_in_any_order_take_back_nothing_that_is_confirmed() -> None:
    """On two connections the last may come first. What is answered late says no more than the
    heartbeat did: otherwise the answers of those between would seem to forget something."""
    lead, follow = LeadSession(7), following()
    exchange(lead, follow)
    first, second, third = [_led_anew(lead, group) for group in (3, 4, 5)]
    answers = [hear(follow, heartbeat, 200) for heartbeat in (second, third, first)]
    for answer in sorted(answers, key=lambda one: one.number):
        lead.on_answer(answer, 210)
        assert lead.answered_sent_ms != NEVER_MS
    assert all(lead.is_confirmed(GroupId(group)) for group in (3, 4, 5))


def _led_anew(lead: LeadSession, group: int) -> Heartbeat:
    lead.lead(GroupId(group), E1)
    return lead.heartbeat(200)
