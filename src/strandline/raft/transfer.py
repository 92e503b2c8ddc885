"""A leader hands over to a voter of its choice.

Why:    restarts and placement move leaders; waiting for an election time-out would cost seconds.
How:    no proposals meanwhile; once the target has the whole log it is told to stand at once, and
        voters do not protect this leader from it. Only the target's progress is looked at: whoever
        else is behind delays nothing. The driver gives up by `AbandonTransfer`.
            An order to stand may come late, and voters still obey it then. So a leader that gave
        one never leads on in the same epoch, where its lease would say that nobody else can be
        elected: it stands again itself, unprotected too, and late orders are of a past epoch.
Owns:   the target, while role is LEADER.
Source: Raft thesis 3.10; Redpanda RFC 20220119 (recoveries that complicated transfers)."""

from strandline.raft.election import Elections
from strandline.raft.events import AbandonTransfer, TransferLeadership
from strandline.raft.messages import TimeoutNow
from strandline.raft.progress import Progress
from strandline.raft.reign import Reign
from strandline.raft.state import ReplicaState


class Transfers:
    """See the module."""

    def __init__(self, state: ReplicaState, elections: Elections) -> None:
        self._state = state
        self._elections = elections

    def on_transfer(self, event: TransferLeadership) -> None:
        """Begin, unless `to` is not another voter that counts."""
        reign = self._state.reign
        if reign is None or event.to not in self._state.configuration.voters:
            return
        progress = reign.progress.get(event.to)
        if progress is None or progress.is_recovering:
            return
        reign.transferring_to = event.to
        reign.transfer_told = False
        self.advance(reign, progress)
        if not reign.transfer_told:
            self._state.wake.append(progress.ready)

    def on_abandon(self, event: AbandonTransfer) -> None:
        """Accept proposals again, after one more election where somebody was told to stand."""
        reign = self._state.reign
        if reign is None or reign.transferring_to is None:
            return
        reign.transferring_to = None
        reign.transfer_told = False
        if reign.has_told_to_stand:
            self._elections.stand_again()

    def advance(self, reign: Reign, progress: Progress) -> None:
        """The target made progress: tell it to stand once it has everything."""
        state = self._state
        if not reign.transfer_told and progress.match_written == state.log.last_index:
            reign.transfer_told = reign.has_told_to_stand = True
            state.send(progress.peer, TimeoutNow(state.epoch))
