"""What a leader sends to a peer next.

Why:    windows, sockets and bytes are the driver's; what may be sent, and what was, is known here.
How:    `plan` says from where to where and with which marks. The driver sends as much of it as
        fits, and reports that (`mark_sent`). Appends to a peer in step follow each other
        without waiting; a probe waits for its answer. If retention removed what the peer needs, the
        leader resets it. A new member gets nothing before its membership is committed.
Owns:   nothing; changes the peer's Progress.
Source: Raft thesis 10.2.2 (pipelining), 5 (instead of a snapshot); design section 5."""

from strandline.model.ids import Index
from strandline.raft.follower.stale_log_reset import is_certain_member, last_certain
from strandline.raft.leader.leader_state import LeaderState
from strandline.raft.leader.progress import AppendPlan, Progress
from strandline.raft.messages import ResetRequest
from strandline.raft.state import RaftState

NO_CONFIGURATION = Index(-2)
"""Below every index, and below what a peer without entries has written."""


def plan(
    state: RaftState, leader_state: LeaderState, progress: Progress
) -> AppendPlan | ResetRequest | None:
    """See `Raft.plan_append`."""
    log = state.log
    is_probe = progress.is_probing
    if is_probe and progress.awaits_answer:
        return None
    last_index = log.last_index
    if (
        not is_probe
        and last_index < progress.next_index
        and progress.sent_commit == state.commit
        and progress.sent_visible == state.visible
    ):
        return None
    configurations = log.configurations
    newest = configurations[-1][0] if configurations else NO_CONFIGURATION
    if newest > state.commit and not is_certain_member(state, progress.peer):
        return None
    prev_index = Index(progress.next_index - 1)
    if prev_index < log.first_index - 1:
        return ResetRequest(
            leader_state.epoch,
            log.first_index,
            log.start_offset,
            log.previous_epoch,
            state.start_configuration,
        )
    if is_probe and progress.probe_is_empty:
        last_index = prev_index
    return AppendPlan(
        leader_state.epoch,
        prev_index,
        log.epoch_at(prev_index),
        progress.next_index,
        last_index,
        state.commit,
        state.visible,
        leader_state.unflushed_visible_last > state.visible,
        is_probe,
        progress.rejoin_at,
        last_certain(state) if progress.match_written < newest else Index(-1),
    )


def mark_sent(state: RaftState, progress: Progress, last_index: Index) -> None:
    """See `Raft.note_sent`."""
    assert last_index <= state.log.last_index, "what is sent is in the log"
    if progress.next_index >= state.log.first_index:
        progress.sent_commit = state.commit
        progress.sent_visible = state.visible
    else:
        progress.is_probing = True  # A reset, which carries no marks.
    if progress.is_probing:
        progress.awaits_answer = True
        progress.asked_from = progress.last_sent
    if last_index >= progress.next_index:
        progress.next_index = Index(last_index + 1)
