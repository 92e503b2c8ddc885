"""Entries go to a follower once and in order: what the invariant says, and what it has found."""

from dataclasses import replace

import pytest

from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.simulation.invariants.entries_sent import EntriesSentOnce
from strandline.simulation.invariants.facts import AnswerReceived, EntriesSent, WayChanged
from strandline.simulation.invariants.invariants import InvariantError
from strandline.simulation.swarm.swarm import run_seed

ONE, TWO, GROUP = BrokerId(1), BrokerId(2), GroupId(7)
FIRST = EntriesSent(ONE, TWO, 1, GROUP, Epoch(1), Index(0), Index(9), at_us=0)
AGAIN = replace(FIRST, at_us=5_000)


def sent_first() -> EntriesSentOnce:
    """And accepted."""
    invariant = EntriesSentOnce(resend_timeout_ms=1_000)
    invariant.on_entries_sent(FIRST)
    invariant.on_answer_received(answer(is_accepted=True, at_us=100))
    invariant.on_entries_sent(
        replace(FIRST, first_index=Index(10), last_index=Index(10), at_us=200)
    )
    return invariant


def answer(*, is_accepted: bool, at_us: int = 4_000) -> AnswerReceived:
    return AnswerReceived(ONE, TWO, GROUP, Epoch(1), is_accepted, at_us)


def test_entries_that_are_sent_twice_without_a_reason_are_found() -> None:
    invariant = sent_first()
    with pytest.raises(InvariantError, match="sends entries 0 to 9 of epoch 1 to broker 2"):
        invariant.on_entries_sent(AGAIN)


def test_entries_out_of_order_are_found() -> None:
    invariant = sent_first()
    invariant.on_entries_sent(replace(AGAIN, first_index=Index(20), last_index=Index(29)))
    with pytest.raises(InvariantError, match="EntriesSentOnce"):
        invariant.on_entries_sent(replace(AGAIN, first_index=Index(10), last_index=Index(19)))


def test_a_refusal_is_a_reason_once() -> None:
    invariant = sent_first()
    invariant.on_answer_received(answer(is_accepted=False))
    invariant.on_entries_sent(AGAIN)
    with pytest.raises(InvariantError, match="EntriesSentOnce"):
        invariant.on_entries_sent(AGAIN)


def test_other_reasons_are_a_new_connection_a_new_epoch_and_silence() -> None:
    for fact in (
        replace(AGAIN, connection=2),
        replace(AGAIN, epoch=Epoch(2)),
        replace(AGAIN, at_us=1_000_000),
    ):
        sent_first().on_entries_sent(fact)
    invariant = sent_first()
    invariant.on_way_changed(WayChanged(ONE, TWO, 4_000))
    invariant.on_entries_sent(AGAIN)


@pytest.mark.simulation
def test_a_leader_that_is_elected_again_does_not_begin_at_the_beginning() -> None:
    """A follower said by its heartbeat that an earlier epoch had passed; its leader, elected once
    more, took that for a log that is empty, and sent all of its own."""
    assert run_seed(17).violation is None
