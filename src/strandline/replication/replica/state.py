"""The state of one replica: plain data, and the questions that this data alone answers.

Why:    the components of a replica share its log, its Raft core and its marks. Each takes this
        state in its constructor; none takes the whole replica.
How:    `Replica` extends the state with the components that act on it. A field says who changes it.
Owns:   the fields.
Source: STYLE, rule 3; design sections 4 and 5."""

from dataclasses import dataclass, field

from strandline.model.cluster import Roles
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId, Index, Offset
from strandline.raft.core import Raft
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import NO_MARKS, Marks
from strandline.replication.host.election_priority import ElectionPriority
from strandline.replication.host.group_spec import LAG_MS_MAX
from strandline.storage.log.log import Log


@dataclass(kw_only=True, eq=False)
class ReplicaState:
    """See the module. Offsets are Kafka offsets; `high_watermark` and `log_end_offset` are
    exclusive."""

    self_id: BrokerId
    group: GroupId
    name: str
    log: Log
    raft: Raft
    """The core. The replica replaces it when an effect could not be performed."""
    election_priority: ElectionPriority
    base: Configuration
    """The configuration at the start of the log."""
    is_fresh: bool
    """Whether the group is new: no leader of it was known here."""
    has_restarted: bool = field(init=False)
    """Whether this replica took part before this process began."""
    is_spared: bool = False
    """Whether others should be elected: this broker is about to go down."""
    placed: Roles = field(default_factory=lambda: Roles(()))
    """The replicas that hold the log when all are well: a copy to one of them is no move."""
    settled_version: int = 0
    """See `Partition.settled_version`, as far as this broker has heard."""
    rejoined: int = 0
    """When the controller last noted, in this life, that the replica takes part again; 0: never."""
    failed: Exception | None = None
    """Why the replica takes no further part until its broker starts anew."""
    is_busy: bool = False
    """Whether an effect of the core waits for the journal, and all that follow with it."""
    is_damaged: bool = False
    """Whether a part of the log is damaged and not mended yet; `Damage` changes it."""
    lacks_snapshot: bool = False
    """Whether the log begins behind the newest snapshot here: the replica takes no part."""
    snapshot_offset: Offset = field(default_factory=lambda: Offset(0))
    """Durable snapshots hold what the records below this offset make: these may go."""
    lag_ms_max: int = LAG_MS_MAX
    """The topic's `replica.lag.time.max.ms`."""

    # ---- marks -----------------------------------------------------------------------------------

    high_watermark: Offset = field(init=False)
    marks: Marks = NO_MARKS
    """commit and visible as far as the log has what they speak of: the core may be ahead of it,
    and its decisions may come to nothing."""
    leader_outlived: Index = field(default_factory=lambda: Index(-1))
    """`AppendHead.outlived`, as the leader last reported it in this epoch; see `Compactor`."""

    # ---- leadership ------------------------------------------------------------------------------

    is_leader: bool = False
    """Whether the replica leads its epoch; it may not know all that is committed yet."""
    is_serving: bool = False
    """Whether it leads and knows all that is committed."""
    leading_since_ms: int = 0

    # ---- the election timer; `Liveness` changes it -----------------------------------------------

    last_contact_ms: int = 0
    """When the leader was last heard."""
    unheard_epoch: Epoch = field(default_factory=lambda: Epoch(0))
    """The last epoch whose leader was known here, and then not heard for an election timeout."""
    timeout_ms: int = 0
    stand_after_ms: int = 0
    look_ms: int = 0
    """The liveness need not check the timer before then: the deadline only moves on."""

    def __post_init__(self) -> None:
        self.has_restarted = not self.is_fresh
        self.high_watermark = self.log.start_offset

    # ---- group -----------------------------------------------------------------------------------

    @property
    def epoch(self) -> Epoch:
        """The epoch of this replica."""
        return self.raft.state.epoch

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""
        return self.raft.state.configuration

    @property
    def leader_id(self) -> BrokerId:
        """The leader as far as known here, or NO_BROKER."""
        return NO_BROKER if self.failed is not None else self.raft.leader

    @property
    def is_preferred(self) -> bool:
        """Whether elections should favour this replica."""
        return self.election_priority.preferred == self.self_id

    @property
    def is_only_voter(self) -> bool:
        """Whether no other replica can lead or has a vote."""
        return self.configuration.all_voters == (self.self_id,)

    @property
    def was_always_alone(self) -> bool:
        """Whether no other replica has ever had a vote, as far as is known here."""
        known = (self.base, *(one for _, one in self.raft.log.configurations))
        return all(one.all_voters == (self.self_id,) for one in known)

    @property
    def can_append(self) -> bool:
        """Whether the replica leads, and is not handing over: the next leader must have the whole
        log."""
        return self.is_leader and not self.is_busy and self.raft.accepts_proposals

    # ---- log -------------------------------------------------------------------------------------

    @property
    def log_end_offset(self) -> Offset:
        """The offset that the next record will get here."""
        return self.log.end_offset

    @property
    def committed_end(self) -> Offset:
        """All records below this offset are committed, and in this log; 0 while that is unknown."""
        log = self.log
        if self.is_busy:  # The core is ahead of the log, which may have to be cut.
            return Offset(0)
        commit = self.raft.commit
        end = log.end_offset if commit >= log.last_index else log.offset_of(Index(commit + 1))
        return min(end, self.high_watermark)

    @property
    def lag_limit_ms(self) -> int:
        """A replica that has lacked something for so long is not in sync. A flush that no request
        waits for may come `flush.ms` later, so that is added."""
        return self.lag_ms_max + self.log.config.flush_ms

    def has_no_way_back(self, broker: BrokerId) -> bool:
        """For a leader: whether `broker` has lost its log, and the leader cannot tell it yet when
        it may take part again: for that other replicas are needed."""
        progress = self.raft.progress.get(broker)
        return progress is not None and progress.is_recovering and progress.rejoin_at < 0

    @property
    def held_index(self) -> Index:
        """For a leader: every member has flushed the log up to here, as far as they have told; or
        -1."""
        held = self.log.flushed_index
        for member in self.configuration.members:
            if member != self.self_id:
                progress = self.raft.state.progress.get(member)
                held = min(held, Index(-1) if progress is None else progress.match_flushed)
        return held
