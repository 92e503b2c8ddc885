"""A leader and a follower with any two histories end up with the same log, whatever gets lost.

Source: Raft thesis 3.5; the promises that `appends` and `leading` make each other."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.raft.member import Member, epochs_of, of_type, sent, shape

from strandline.raft import events
from strandline.raft.messages import AppendResponse

HISTORIES = st.lists(st.integers(1, 4), max_size=12).map(sorted)


def exchange(leader: Member, follower: Member, rng: random.Random, *, loss: float) -> bool:
    """One request and its answers, each perhaps lost or twice; False when nothing is to be sent."""
    request = leader.send_all(2)
    if request is None:
        return False
    for _ in range(rng.choice((1, 2)) if rng.random() >= loss else 0):
        effects = follower.receive(1, request)
        for answering in (effects, follower.flush()):
            for answer in sent(answering, AppendResponse).values():
                if rng.random() >= loss:
                    leader.receive(2, answer)
    return True


@settings(max_examples=300, deadline=None)
@given(
    common=HISTORIES,
    ours=HISTORIES,
    theirs=HISTORIES,
    dropped=st.integers(0, 12),
    seed=st.integers(0, 1000),
)
def test_any_two_logs_become_equal_and_nothing_that_matches_is_cut(
    common: list[int], ours: list[int], theirs: list[int], dropped: int, seed: int
) -> None:
    rng = random.Random(seed)
    floor = max(common, default=0)
    # Beyond the common part no epoch is on both sides: one epoch has one leader.
    mine = common + [floor + 2 * epoch for epoch in ours]
    others = common + [floor + 2 * epoch - 1 for epoch in theirs]
    epoch = max([0, *mine, *others])
    committed = min(dropped, len(common))
    leader = Member(1, log=shape(*mine), epoch=epoch, voters=(1, 2), commit=committed - 1).lead()
    follower = Member(2, log=shape(*others), epoch=epoch, voters=(1, 2))
    leader.step(events.PrefixDropped(committed, committed))
    for _ in range(30):
        if rng.random() < 0.2:
            leader.step(events.PeerReset(2))
        exchange(leader, follower, rng, loss=0.3)
        assert (
            epochs_of(follower.raft.log)[: len(common)] == common or follower.raft.log.first_index
        )
    for _ in range(30):
        leader.step(events.PeerReset(2))
        if not exchange(leader, follower, rng, loss=0.0):
            break
    logs = leader.raft.log, follower.raft.log
    start = max(log.first_index for log in logs)
    ends = [epochs_of(log)[start - log.first_index :] for log in logs]
    assert ends[0] == ends[1]
    assert leader.raft.progress[2].match_written == leader.raft.log.last_index


@settings(max_examples=200, deadline=None)
@given(history=HISTORIES, lengths=st.tuples(st.integers(0, 12), st.integers(0, 12)))
def test_a_follower_that_is_only_behind_is_found_in_one_refusal(
    history: list[int], lengths: tuple[int, int]
) -> None:
    leader = Member(1, log=shape(*history), voters=(1, 2)).lead()
    follower = Member(2, log=shape(*history[: lengths[0]]), voters=(1, 2))
    rng = random.Random(0)
    exchange(leader, follower, rng, loss=0.0)
    exchange(leader, follower, rng, loss=0.0)
    assert leader.raft.progress[2].match_flushed == leader.raft.log.last_index
    assert of_type(follower.flush(), events.Send) == []


def test_who_refuses_an_earlier_epoch_does_not_send_its_leader_back_to_the_beginning() -> None:
    """An append of epoch 1 comes late to a follower that has voted for its sender in epoch 2."""
    leader = Member(1, log=shape(1, 1, 1, 1), epoch=1, voters=(1, 2)).lead()
    follower = Member(2, log=shape(1, 1), epoch=leader.raft.epoch, voters=(1, 2))
    late = follower.append(prev=(1, 1), epochs=(1, 1), epoch=1, sender=1)
    probe = leader.send_all(2)
    assert probe is not None
    leader.receive(2, sent(follower.receive(1, probe), AppendResponse)[1])
    sent_before = leader.send_all(2)
    assert sent_before is not None
    leader.receive(2, sent(late, AppendResponse)[1])
    assert leader.send_all(2) is None
    assert leader.raft.progress[2].next_index > 2
