"""Fences and appointments, at one core; and what the controller makes of the answers."""

from tests.raft.member import Member, configuration, kinds, of_type, sent, shape

from strandline.controller.arbitration.arbiter import GroupVoters
from strandline.model.ids import BrokerId, Epoch, Index, first_epoch, grant_of
from strandline.raft import events
from strandline.raft.messages import (
    AppendResponse,
    Appoint,
    Fence,
    Fenced,
    VoteRequest,
    VoteResponse,
)

ARBITER = 9
GRANTED = first_epoch(1)
ALONE = configuration((1,), observers=(2, 3))


def appoint(last_epoch: int = 1, last_index: int = 1, epoch: Epoch = GRANTED) -> Appoint:
    return Appoint(epoch, Epoch(last_epoch), Index(last_index), ALONE)


def fenced(log: tuple[int, ...] = (1, 1), **options: object) -> Member:
    member = Member(log=shape(*log), **options)  # type: ignore[arg-type]
    member.receive(ARBITER, Fence(GRANTED))
    return member


def test_epochs_are_counted_within_a_grant() -> None:
    assert [grant_of(Epoch(GRANTED + n)) for n in (-1, 0, 7)] == [0, 1, 1]
    assert first_epoch(2047) + (1 << 20) == 1 << 31


class TestFence:
    def test_it_is_durable_before_it_is_answered(self) -> None:
        effects = Member(log=shape(1, 1)).receive(ARBITER, Fence(GRANTED))
        assert kinds(effects) == ["PersistState", "BecameFollower", "Send"]
        assert sent(effects, Fenced) == {ARBITER: Fenced(GRANTED, Epoch(1), Index(1), False)}

    def test_a_leader_leads_no_more(self) -> None:
        member = Member().lead_established()
        effects = member.receive(ARBITER, Fence(GRANTED), leader_alive=True)
        assert of_type(effects, events.BecameFollower) and not member.raft.is_leader

    def test_no_earlier_leader_is_heeded(self) -> None:
        member = fenced()
        answer = sent(member.append(prev=(1, 1), epochs=(1,)), AppendResponse)[2]
        assert not answer.accepted and answer.epoch == GRANTED

    def test_it_comes_again_and_changes_nothing(self) -> None:
        member = fenced()
        assert kinds(member.receive(ARBITER, Fence(GRANTED))) == ["Send"]

    def test_one_that_is_past_is_told_so(self) -> None:
        member = Member(epoch=first_epoch(3))
        answer = sent(member.receive(ARBITER, Fence(GRANTED)), Fenced)[ARBITER]
        assert answer.epoch == first_epoch(3)

    def test_a_lost_disk_is_reported(self) -> None:
        effects = Member(lost_state=True).receive(ARBITER, Fence(GRANTED))
        assert sent(effects, Fenced)[ARBITER].lost_state

    def test_who_was_fenced_does_not_stand(self) -> None:
        effects = fenced().time_out()
        assert not sent(effects, VoteRequest)

    def test_nor_does_it_count_its_epochs_into_the_next_grant(self) -> None:
        member = Member(log=shape(1), epoch=GRANTED - 1)
        assert not sent(member.time_out(), VoteRequest)

    def test_with_an_entry_of_the_grant_it_stands(self) -> None:
        member = fenced()
        member.append(prev=(1, 1), epochs=(GRANTED,), epoch=GRANTED)
        assert set(sent(member.time_out(), VoteRequest)) == {2, 3}


class TestAppointment:
    def test_it_is_led_without_votes_and_the_first_entry_brings_the_members(self) -> None:
        effects = fenced().receive(ARBITER, appoint())
        assert kinds(effects)[:2] == ["PersistState", "BecameLeader"]
        (state,) = of_type(effects, events.PersistState)
        assert state == events.PersistState(GRANTED, BrokerId(1))
        (marker,) = of_type(effects, events.AppendMarker)
        assert marker == events.AppendMarker(Index(2), GRANTED, ALONE)

    def test_the_successors_decide_what_is_committed(self) -> None:
        member = fenced()
        member.receive(ARBITER, appoint())
        member.flush()
        assert member.raft.commit == 2 and member.raft.may_serve

    def test_it_is_taken_once(self) -> None:
        member = fenced()
        member.receive(ARBITER, appoint())
        assert member.receive(ARBITER, appoint()) == []

    def test_nor_again_after_a_restart_that_lost_its_marker(self) -> None:
        member = Member(log=shape(1, 1), epoch=GRANTED, vote=1)
        assert member.receive(ARBITER, appoint()) == [] and not member.time_out()

    def test_a_log_that_ends_elsewhere_refuses_it(self) -> None:
        assert fenced((1,)).receive(ARBITER, appoint()) == []

    def test_so_does_a_later_grant(self) -> None:
        member = fenced()
        member.receive(ARBITER, Fence(first_epoch(2)))
        assert member.receive(ARBITER, appoint()) == []

    def test_and_one_that_was_never_fenced(self) -> None:
        assert Member(log=shape(1, 1)).receive(ARBITER, appoint()) == []


ANSWERS = {
    BrokerId(1): Fenced(GRANTED, Epoch(1), Index(5), False),
    BrokerId(2): Fenced(GRANTED, Epoch(2), Index(3), False),
    BrokerId(3): Fenced(GRANTED, Epoch(2), Index(3), True),
}


class TestRegister:
    before = GroupVoters(configuration((1, 2, 3, 4), min_insync=3))

    def test_the_best_log_is_appointed(self) -> None:
        assert self.before.begin().candidates(ANSWERS) == [2]

    def test_too_few_are_not_enough(self) -> None:
        """Two of four hold what three had to acknowledge; one does not, nor a lost disk."""
        one = {BrokerId(2): ANSWERS[BrokerId(2)], BrokerId(3): ANSWERS[BrokerId(3)]}
        assert self.before.begin().candidates(one) == []

    def test_answers_to_an_earlier_grant_do_not_count(self) -> None:
        assert self.before.begin().begin().candidates(ANSWERS) == []

    def test_a_grant_has_one_appointment(self) -> None:
        begun = self.before.begin()
        after, told = begun.appoint(BrokerId(2), ANSWERS[BrokerId(2)], configuration((2, 1)))
        assert told.configuration.version == 1 and after.possible == (
            self.before.stable,
            told.configuration,
        )
        assert after.candidates(ANSWERS) == []

    def test_every_configuration_since_the_last_report_must_be_held(self) -> None:
        wanted = configuration((3, 4, 5))
        wanted = type(wanted)(wanted.voters, version=1)
        granted = self.before.request(Epoch(7), wanted)
        assert granted is not None
        assert granted.begin().candidates(ANSWERS) == []
        reported = granted.report(Epoch(7), 1)
        assert reported is not None and reported.possible == (wanted,)

    def test_leaders_of_an_earlier_grant_are_refused(self) -> None:
        begun = self.before.begin()
        wanted = type(ALONE)(ALONE.voters, version=1)
        assert begun.request(Epoch(7), wanted) is None
        assert begun.request(GRANTED, wanted) is not None

    def test_one_change_at_a_time(self) -> None:
        first = self.before.request(Epoch(7), type(ALONE)((BrokerId(1),), version=1))
        assert first is not None
        assert first.request(Epoch(7), type(ALONE)((BrokerId(2),), version=2)) is None


def test_a_fenced_voter_votes_for_who_was_appointed() -> None:
    member = Member(2, log=shape(1, 1), epoch=GRANTED)
    request = VoteRequest(Epoch(GRANTED + 1), Index(2), GRANTED)
    assert sent(member.receive(1, request), VoteResponse)[1].granted
