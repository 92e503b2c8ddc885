"""Members that were removed and never heard of it fall silent, and nobody else does.

Source: Raft thesis 4.2.3 (disruptive servers); `raft.membership`."""

import pytest
from tests.raft.member import Member, configuration, kinds, of_type, sent, shape

from strandline.model.ids import Epoch, Index
from strandline.raft import events
from strandline.raft.messages import (
    AppendRequest,
    LeaderContact,
    Removal,
    Run,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from strandline.raft.transitions import Role

OLD = configuration((1, 2, 3))
JOINT = configuration((1, 4), old=(1, 2, 3))
NEW = configuration((1, 4))
REMOVAL = Removal(Epoch(1), Index(2), NEW)


def removed(**changes: object) -> Member:
    """Broker 2, which has the joint configuration at 1 and missed the final one at 2."""
    return Member(2, log=shape(1, 1, configurations=((1, JOINT),)), **changes)  # type: ignore[arg-type]


def voter(commit: int = 2, **changes: object) -> Member:
    """Broker 1, which has both."""
    log = shape(1, 1, 1, configurations=((1, JOINT), (2, NEW)))
    return Member(1, log=log, commit=commit, **changes)  # type: ignore[arg-type]


def refusal(epoch: int = 1, *, pre: bool = True) -> VoteResponse:
    return VoteResponse(epoch, granted=False, pre=pre, removal=REMOVAL)


def pre_vote(configuration_index: int, *, configuration_epoch: int = 1) -> VoteRequest:
    """Of a log that ends with its configuration."""
    at = configuration_index
    return VoteRequest(
        Epoch(configuration_epoch + 1), Index(at), Epoch(configuration_epoch), True, False,
        Epoch(configuration_epoch), Index(at),
    )  # fmt: skip


def ask(member: Member, sender: int, request: VoteRequest, *, alive: bool = False) -> VoteResponse:
    return sent(member.receive(sender, request, leader_alive=alive), VoteResponse)[sender]


def test_who_asks_says_which_configuration_it_has() -> None:
    request = VoteRequest(2, 1, 1, True, False, 1, 1)
    assert sent(removed().time_out(), VoteRequest) == {1: request, 3: request, 4: request}


@pytest.mark.parametrize("alive", [True, False])
@pytest.mark.parametrize("pre", [True, False])
@pytest.mark.parametrize("epoch", [1, 2])
def test_a_voter_that_no_committed_configuration_has_learns_of_its_removal(
    *, alive: bool, pre: bool, epoch: int
) -> None:
    member = voter(epoch=2)
    request = VoteRequest(epoch, 1, 1, pre, False, 1, 1)
    answer = ask(member, 2, request, alive=alive)
    assert (answer.granted, answer.removal) == (False, REMOVAL)


def test_nothing_is_told_of_a_configuration_that_may_yet_be_lost() -> None:
    request = pre_vote(1)
    assert ask(voter(commit=1), 2, request).removal is None


def test_members_get_no_removal() -> None:
    request = pre_vote(1)
    assert ask(voter(), 4, request).removal is None
    observed = configuration((1, 4), observers=(2,))
    log = shape(1, 1, 1, configurations=((1, JOINT), (2, observed)))
    assert ask(Member(1, log=log, commit=2), 2, request).removal is None


def test_a_member_that_knows_a_later_configuration_gets_no_removal() -> None:
    """It was added again, and this voter has yet to hear of it."""
    request = pre_vote(3)
    assert ask(voter(), 2, request).removal is None


def test_who_has_the_entry_and_does_not_know_that_it_is_committed_is_told() -> None:
    request = pre_vote(2)
    log = shape(1, 1, 1, 2, configurations=((1, JOINT), (2, NEW)))
    assert ask(Member(1, log=log, commit=3), 2, request).removal == Removal(2, 3, NEW)


def test_a_member_added_by_a_lost_entry_learns_of_its_removal() -> None:
    """Its configuration stands above all that this voter has, of an epoch that has passed."""
    member = Member(1, log=shape(1, 1, 2, 2), voters=(1, 2, 3), commit=2)
    removal = Removal(Epoch(2), Index(2), OLD)
    assert ask(member, 6, pre_vote(9)).removal == removal
    assert ask(member, 6, pre_vote(9, configuration_epoch=2)).removal is None
    added = configuration((2, 3, 6), old=(1, 2, 3))
    stranger = Member(6, log=shape(1, 1, 1, configurations=((2, added),)))
    stranger.time_out()
    stranger.receive(1, VoteResponse(1, granted=False, pre=True, removal=removal))
    assert stranger.time_out() == []


def test_nothing_is_told_where_nothing_is_known_to_be_committed() -> None:
    assert ask(Member(1), 9, VoteRequest(1, -1, 0, pre=True)).removal is None
    assert ask(Member(1, epoch=4), 9, VoteRequest(1, -1, 0, pre=True)).removal is None


def test_what_retention_took_is_told_as_of_the_beginning_of_the_log() -> None:
    member = voter()
    member.step(events.PrefixDropped(Index(3), 3))  # type: ignore[arg-type]
    request = pre_vote(1)
    assert ask(member, 2, request).removal == REMOVAL


@pytest.mark.parametrize("pre", [True, False])
def test_a_removed_member_that_was_informed_stops_asking(*, pre: bool) -> None:
    member = removed()
    member.time_out()
    if not pre:
        for granter in (1, 4, 3):
            member.receive(granter, VoteResponse(2, granted=True, pre=True))
        assert member.raft.role == Role.CANDIDATE
    effects = member.receive(1, refusal(member.raft.epoch, pre=pre))
    assert kinds(effects) == ["BecameFollower"]
    assert member.raft.role == Role.FOLLOWER
    assert member.time_out() == []
    assert sent(member.receive(1, TimeoutNow(member.raft.epoch)), VoteRequest) == {}


def test_a_removed_member_adopts_the_later_epoch_of_a_refusal() -> None:
    member = removed()
    member.time_out()
    assert of_type(member.receive(1, refusal(7)), events.PersistState) == [
        events.PersistState(7, -1)
    ]
    assert member.time_out() == []


def test_a_removed_member_that_was_informed_still_votes_and_follows() -> None:
    """4.2.1: a voter that has yet to receive the entry which made it one must not block."""
    member = removed()
    member.time_out()
    member.receive(1, refusal())
    assert ask(member, 4, VoteRequest(2, 9, 1)).granted
    member.receive(4, LeaderContact(2, -1, -1))
    assert member.raft.leader == 4


def test_a_removed_member_that_was_informed_informs_other_removed_ones() -> None:
    """They may know none of the present voters."""
    member = removed()
    member.time_out()
    member.receive(1, refusal())
    request = pre_vote(-1)
    assert ask(member, 3, request).removal == REMOVAL
    assert ask(member, 4, request).removal is None


def test_a_member_that_is_added_again_stands_again() -> None:
    member = removed()
    member.time_out()
    member.receive(1, refusal())
    again = configuration((1, 2, 4), old=(1, 4))
    entries = ((Index(2), NEW), (Index(3), again))
    runs = (Run(Epoch(1), Index(3)),)
    nothing = Index(-1)
    member.receive(1, AppendRequest(Epoch(1), Index(1), Epoch(1), nothing, nothing, runs, entries))
    assert set(sent(member.time_out(), VoteRequest)) == {1, 4}


def test_what_comes_late_does_not_silence_who_was_added_again() -> None:
    log = shape(1, 1, 1, 1, configurations=((1, JOINT), (2, NEW), (3, OLD)))
    member = Member(2, log=log)
    member.time_out()
    member.receive(1, refusal())
    assert member.raft.role == Role.PRECANDIDATE
    assert set(sent(member.time_out(), VoteRequest)) == {1, 3}


def test_a_restart_forgets_and_asks_once_more() -> None:
    """Nothing of it is durable: the next to be asked tells it again."""
    assert sent(removed().time_out(), VoteRequest) != {}
