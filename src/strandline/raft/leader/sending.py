"""What a leader sends to a peer next.

Why:    windows, sockets and bytes are the driver's; what may be sent, and what was, is known here.
How:    `plan` says from where to where and with which marks. The driver sends as much of it as
        fits, and reports that (`note_sent`). Appends to a peer in step follow each other
        without waiting; a probe waits for its answer. If retention removed what the peer needs, the
        leader resets it. A new member gets nothing before its membership is committed.
Owns:   nothing; changes the peer's Progress.
Source: Raft thesis 10.2.2 (pipelining), 5 (instead of a snapshot); design section 5."""

from strandline.model.ids import BrokerId, Index
from strandline.raft.follower.stale_log_reset import is_certain_member, last_certain
from strandline.raft.leader.progress import AppendPlan
from strandline.raft.messages import ResetRequest
from strandline.raft.state import RaftState

NO_CONFIGURATION = Index(-2)
"""Below every index, and below what a peer without entries has written."""


class Sending:
    """See the module."""

    def __init__(self, state: RaftState) -> None:
        self._state = state

    def plan_append(self, peer: BrokerId) -> AppendPlan | ResetRequest | None:
        """What to send to `peer` next; None when there is nothing, or nothing may be sent yet.

        The driver sends a ResetRequest as it is. It reports what it has sent with `note_sent`
        before this core takes any event. Ask at a `ReplicationReady`, or when all effects of the
        last step are performed: earlier, the log may lack a marker."""
        state = self._state
        progress = state.progress.get(peer)
        if progress is None:
            return None
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
        leader_state = state.leader_state
        assert leader_state is not None, "only a leader has progress"
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

    def note_sent(self, peer: BrokerId, last_index: Index) -> None:
        """What `plan_append` planned for `peer` went out, with entries up to `last_index` (the
        plan's `prev_index`: without any; of a ResetRequest, its `start_index` - 1). It has no
        effects, so it does not wait for those of other steps."""
        state = self._state
        progress = state.progress.get(peer)
        if progress is None:
            return
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
