"""The state that all parts of a Raft core share: plain data, and the one way to change roles.

Why:    elections, appends and membership act on the same few fields; each field is explained once.
How:    `follow`, `become` and `lead` take the cause of a change; `transitions.NEXT_ROLE` names the
        role that follows. `follow` also adopts higher epochs.
Owns:   everything here; the parts of this room change it, during `Raft.step` only.
Source: Raft thesis, figure 3.1."""

from collections.abc import Mapping

from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId, Index
from strandline.raft.events import BecameFollower, Effect, PersistState, ReplicationReady, Send
from strandline.raft.group.configuration import Configuration
from strandline.raft.group.log_shape import LogShape
from strandline.raft.leader.leader_state import HandOver, LeaderState
from strandline.raft.leader.progress import Progress
from strandline.raft.messages import LeaderContact, Message, TimeoutNow
from strandline.raft.transitions import NEXT_ROLE, Cause, Role

NO_EPOCH = Epoch(0)
"""No replica votes in it, so no vote of it is delegated."""
NO_PROGRESS: Mapping[BrokerId, Progress] = {}


class RaftState:
    """See the module."""

    __slots__ = (
        "commit",
        "configuration",
        "delegated_epoch",
        "effects",
        "epoch",
        "group",
        "handing_over",
        "is_compacted",
        "is_outdated",
        "is_outdated_reported",
        "joined",
        "leader",
        "leader_state",
        "log",
        "lost_state",
        "must_check_outdated",
        "pending_request",
        "progress",
        "role",
        "self_id",
        "start_configuration",
        "visible",
        "vote",
        "wake",
    )

    def __init__(
        self,
        *,
        group: GroupId,
        self_id: BrokerId,
        log: LogShape,
        epoch: Epoch,
        vote: BrokerId,
        configuration: Configuration,
        commit: Index,
        visible: Index,
        lost_state: bool,
        delegated_epoch: Epoch,
        joined: Index | None = None,
    ) -> None:
        assert epoch >= log.last_epoch, "entries of an epoch that was never persisted"
        self.group = group
        self.self_id = self_id
        self.log = log
        self.epoch = epoch
        # The replica that this one voted for in `epoch`; durable together with it.
        self.vote = vote
        # The epoch, this or the next one, whose vote is delegated to the leader of the epoch
        # before; 0 for none. Durable together with `epoch`.
        self.delegated_epoch = delegated_epoch if delegated_epoch >= epoch else NO_EPOCH
        self.role = Role.FOLLOWER
        # The leader of `epoch`, NO_BROKER while unknown.
        self.leader = NO_BROKER
        # Entries leave the front of a log only once committed.
        self.commit = Index(max(commit, log.first_index - 1))
        # >= commit; falls only if a truncation removes unflushed entries that were lost elsewhere.
        self.visible = Index(max(visible, self.commit))
        # In force before the first configuration entry of the log.
        self.start_configuration = configuration
        # In force: the last configuration in the log, committed or not.
        self.configuration = log.configurations[-1][1] if log.configurations else configuration
        # The disk was lost: no votes, no acknowledgements (see `rejoin`).
        self.lost_state = lost_state
        # What its leader had committed for certain, or the last configuration of that, when the
        # first entry of this log came; durable before that. None: unknown (`stale_log_reset`).
        self.joined = joined
        # Whether compaction removes entries by key.
        self.is_compacted = False
        # Whether to check if this log is outdated, before anything is acknowledged.
        self.must_check_outdated = True
        # Whether this log must begin anew, and whether the driver knows.
        self.is_outdated = False
        self.is_outdated_reported = False
        # What only a leader has; None unless role is LEADER.
        self.leader_state: LeaderState | None = None
        # What a leader knows of its peers (not of itself); empty for others.
        self.progress: Mapping[BrokerId, Progress] = NO_PROGRESS
        # What this replica appended before it handed over, while not all is committed.
        self.handing_over: HandOver | None = None
        # A leader asked this replica to stand, or to vote, and its log lacks what that takes.
        self.pending_request: tuple[BrokerId, TimeoutNow | LeaderContact] | None = None
        # The effects of the event being stepped, in order.
        self.effects: list[Effect] = []
        # Go to the end of the effects: by then markers are in the log.
        self.wake: list[ReplicationReady] = []

    @property
    def is_established(self) -> bool:
        """Whether this replica leads and an entry of its epoch is committed: then it knows all
        earlier commits."""
        leader_state = self.leader_state
        return leader_state is not None and self.commit >= leader_state.first_index

    def still_leads(self, leader_state: LeaderState) -> bool:
        """Whether the leadership that has this state goes on."""
        return self.leader_state is leader_state

    def send(self, to: BrokerId, message: Message) -> None:
        """Emit a message."""
        self.effects.append(Send(to, message))

    def adopt(self, epoch: Epoch, *, vote: BrokerId) -> None:
        """Make a new epoch and vote durable before anything later."""
        self._move_on(epoch, vote)
        self.persist()

    def persist(self) -> None:
        """Make epoch, vote and delegated vote durable before anything later."""
        self.effects.append(PersistState(self.epoch, self.vote, self.delegated_epoch))

    def follow(
        self, epoch: Epoch, leader: BrokerId, cause: Cause, *, vote: BrokerId = NO_BROKER
    ) -> None:
        """Be a follower in `epoch`, of `leader` or of none known.

        `vote` counts only if the epoch is new."""
        assert epoch >= self.epoch
        changed = epoch > self.epoch or self.role != Role.FOLLOWER or leader != self.leader
        if epoch > self.epoch:
            self.adopt(epoch, vote=vote)
        if changed:
            self.become(cause, leader)

    def lead(self, cause: Cause, leader_state: LeaderState) -> None:
        """Lead the present epoch; `Leading` emits what follows."""
        assert self.leader == NO_BROKER and leader_state.epoch == self.epoch, "two leaders"
        assert not self.lost_state, "a replica that lost its disk does not lead"
        self._change_role(cause)
        self.leader = self.self_id
        self.leader_state = leader_state
        self.progress = leader_state.progress
        self.handing_over = self.pending_request = None

    def hand_over(self, transfer_target: BrokerId) -> None:
        """Lead no more, and vote for `transfer_target` in the next epoch.

        If this vote was delegated it is as good as durable, so it can wait (`persist`)."""
        epoch = Epoch(self.epoch + 1)
        if self.delegated_epoch == epoch:
            self._move_on(epoch, transfer_target)
        else:
            self.adopt(epoch, vote=transfer_target)
        self.become(Cause.HANDED_OVER, NO_BROKER, transfer_target=transfer_target)

    def become(
        self, cause: Cause, leader: BrokerId, *, transfer_target: BrokerId = NO_BROKER
    ) -> None:
        """Take the role that follows from `cause`, which is not LEADER, and tell the driver."""
        self._change_role(cause)
        assert self.role != Role.LEADER, "only `lead` makes a leader"
        self.leader = leader
        self.leader_state = None
        self.progress = NO_PROGRESS
        self.wake.clear()
        self.effects.append(BecameFollower(self.epoch, leader, transfer_target))

    def _change_role(self, cause: Cause) -> None:
        role = NEXT_ROLE.get((self.role, cause))
        assert role is not None, (self.role, cause)
        self.role = role

    def _move_on(self, epoch: Epoch, vote: BrokerId) -> None:
        assert epoch > self.epoch or (epoch == self.epoch and self.vote in (NO_BROKER, vote)), (
            "an epoch never goes back, and a replica votes once in it"
        )
        self.epoch = epoch
        self.vote = vote
        if self.delegated_epoch < epoch:
            self.delegated_epoch = NO_EPOCH
        if self.handing_over is not None and epoch > self.handing_over.epoch + 1:
            self.handing_over = None
