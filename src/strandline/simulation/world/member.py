"""The program under test on one host: `Replication` with its groups, watched from outside.

Why:    the same code that serves real clusters runs here; only the seams differ.
How:    `Member` boots `Replication` on the seams of a host and turns what the code says through its
        own hooks (leaders known, watched marks) into facts. What is above it is either the groups
        of the scenario and nothing else (`GroupMember`), or a whole broker (`broker_member`).
Owns:   nothing that outlives its process.
Source: design section 3 ("only two places put a broker together")."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial

from strandline.base.errors import ApiError, StorageError
from strandline.model.cluster import Labels
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId, Index, Offset
from strandline.protocol.errors import Error
from strandline.raft.group.configuration import Configuration
from strandline.records.batch import iterate_headers
from strandline.replication.host.election_priority import ElectionPriority
from strandline.replication.host.group_spec import GroupSpec
from strandline.replication.host.replication import Replication
from strandline.replication.leader.requests import AppendResult
from strandline.replication.replica.replica import Replica
from strandline.simulation.invariants.checker import Checker
from strandline.simulation.invariants.facts import (
    LeaderElected,
    LeaderKnown,
    MarksMoved,
    ReplicaRemoved,
    TierSeen,
)
from strandline.simulation.scenarios.scenario import GroupPlan, Scenario
from strandline.simulation.world.host import Seams
from strandline.simulation.world.trace import Trace

DATA_DIRECTORY = "/data"
CLEAN_INTERVAL_MS = 400
SCRUB_INTERVAL_MS = 1_000

ReadDone = Callable[[bytes, ApiError | None], None]


class Member(ABC):
    """See the module. `life` counts the processes of its host."""

    checks_leases = False
    """Whether a leader that may be deposed refuses reads; otherwise it answers, and says so."""

    def __init__(
        self,
        broker: BrokerId,
        seams: Seams,
        *,
        life: int,
        scenario: Scenario,
        checker: Checker,
        trace: Trace,
    ) -> None:
        self.broker = broker
        self.life = life
        self.scenario = scenario
        self._clock = seams.clock
        self._checker = checker
        self._trace = trace
        self.replication = Replication(
            self_id=broker,
            clock=seams.clock,
            rng=seams.rng,
            disk=seams.disk,
            network=seams.network,
            settings=scenario.settings,
            data_directory=DATA_DIRECTORY,
        )
        self.replication.on_leader_known.append(self._on_leader_known)
        seams.disk.make_directories(DATA_DIRECTORY)
        self.replication.start()

    @property
    def replicas(self) -> Iterable[Replica]:
        """Those that have not failed."""
        return [r for r in self.replication.replicas.values() if r.failed is None]

    def stop(self) -> None:
        """End in good order."""
        self.replication.stop()

    # ---- what clients ask --------------------------------------------------------------------

    def leader_of(self, group: GroupId) -> BrokerId:
        """The leader as clients are answered; NO_BROKER if the broker knows none."""
        entry = self.replication.leaders.get(group)
        return NO_BROKER if entry is None else entry.leader

    @abstractmethod
    def produce(
        self, group: GroupId, batch: bytearray, *, acks: int, done: Callable[[AppendResult], None]
    ) -> None:
        """Append a batch; `done` as in `Replica.replicate`."""

    @abstractmethod
    def read(self, replica: Replica, position: Offset, max_bytes: int, done: ReadDone) -> None:
        """Read from a replica of this broker; `done` gets the batches, or why there are none."""

    # ---- facts -------------------------------------------------------------------------------

    def show_tier(self, replica: Replica) -> None:
        """Report the state of the replica's tier, if it is known."""
        state = replica.tier.state
        if not replica.tier.is_known or state.index < 0:
            return
        ends = [max(one.retired_before, one.end_offset) for one in state.buckets.values()]
        self._checker.tier_seen(
            TierSeen(
                broker=self.broker,
                group=replica.group,
                index=state.index,
                lineage=state.lineage,
                covered_end=max(ends, default=Offset(0)),
            )
        )

    def watch(self, replica: Replica) -> None:
        """Report how the marks of a replica move from now on."""
        replica.watch(partial(self._on_change, replica))

    def _on_change(self, replica: Replica) -> None:
        self.watch(replica)
        if replica.failed is not None:
            self._trace.add(f"broker {self.broker}", f"{replica.name} failed: {replica.failed}")
            return
        commit = replica.raft.commit
        in_log = replica.log.start_index <= commit <= replica.log.last_index
        self._checker.marks_moved(
            MarksMoved(
                broker=self.broker,
                life=self.life,
                group=replica.group,
                epoch=replica.epoch,
                commit=commit,
                commit_epoch=replica.log.epoch_of(commit) if in_log else Epoch(0),
                high_watermark=replica.high_watermark,
                log_end_offset=replica.log_end_offset,
            )
        )

    def _on_leader_known(self, group: GroupId) -> None:
        entry = self.replication.leaders.get(group)
        assert entry is not None
        if entry.leader == NO_BROKER:
            return
        self._checker.leader_known(LeaderKnown(self.broker, group, entry.epoch, entry.leader))
        replica = self.replication.replicas.get(group)
        if entry.leader == self.broker and replica is not None:
            self._trace.add(f"broker {self.broker}", f"leads {replica.name} in epoch {entry.epoch}")
            self._checker.leader_elected(
                LeaderElected(
                    broker=self.broker,
                    group=group,
                    epoch=entry.epoch,
                    start_index=replica.log.start_index,
                    last_index=replica.log.last_index,
                    epoch_of=replica.log.epoch_of,
                    end_offset=replica.log_end_offset,
                    index_of=replica.log.index_of,
                    at_us=self._trace.now_us,
                )
            )


class GroupMember(Member):
    """The groups of the scenario without a broker above them: for changes of members, observers and
    reads from followers, which only `Replication` offers yet."""

    def __init__(
        self,
        broker: BrokerId,
        seams: Seams,
        *,
        life: int,
        has_lost_disk: bool,
        scenario: Scenario,
        checker: Checker,
        trace: Trace,
    ) -> None:
        """`has_lost_disk`: its disk is not the first one, and the groups know it as a member."""
        super().__init__(broker, seams, life=life, scenario=scenario, checker=checker, trace=trace)
        for peer in scenario.brokers:
            self.replication.set_peer(peer, f"host-{peer}", 1)
        regions = dict(zip(scenario.brokers, scenario.regions, strict=True))
        self.replication.nearness.place({one: Labels(region=regions[one]) for one in regions})
        for plan in scenario.groups:
            if broker in plan.hosts:
                self._open(plan, is_lost=has_lost_disk)
        self.replication.on_stale_log.append(self._begin_anew)
        self.replication.on_removal.append(self._on_forgotten)
        self.replication.repairs.start(
            rate_bytes=scenario.scrub_bytes_per_s, interval_ms=SCRUB_INTERVAL_MS
        )
        self._clock.call_later(CLEAN_INTERVAL_MS, self._clean)

    def produce(
        self, group: GroupId, batch: bytearray, *, acks: int, done: Callable[[AppendResult], None]
    ) -> None:
        """See `Member`."""
        replica = self.replication.replicas.get(group)
        if replica is None:
            done(AppendResult(Error.UNKNOWN_TOPIC_OR_PARTITION, -1, -1))
        else:
            replica.replicate([batch], list(iterate_headers(batch)), acks=acks, done=done)

    def read(self, replica: Replica, position: Offset, max_bytes: int, done: ReadDone) -> None:
        """See `Member`: any replica answers, whether it leads or not."""
        try:
            data = replica.read(position, max_bytes).bytes()
        except ApiError as error:
            done(b"", error)
        except StorageError as error:
            done(b"", ApiError(Error.KAFKA_STORAGE_ERROR, str(error)))
        else:
            done(data, None)

    def _clean(self) -> None:
        """What the broker does now and then: roll, and let go of old segments."""
        for replica in self.replicas:
            if self.scenario.log.remote_storage:
                self.show_tier(replica)
            replica.clean()
        self._clock.call_later(CLEAN_INTERVAL_MS, self._clean)

    def _on_forgotten(self, group: GroupId) -> None:
        self._checker.replica_removed(
            ReplicaRemoved(group, self.broker, self.life, (), has_state=False)
        )

    def _begin_anew(self, replica: Replica) -> None:
        """Its log is of no use: remove it, and open the group again."""
        if self.replication.replicas.get(replica.group) is replica:
            (plan,) = (one for one in self.scenario.groups if one.group == replica.group)
            self.replication.removal.reset_log(
                replica, partial(self._open, plan, is_lost=True), rejoined=0
            )

    def _open(self, plan: GroupPlan, *, is_lost: bool) -> None:
        scenario = self.scenario
        spec = GroupSpec(
            group=plan.group,
            name=plan.name,
            directory=plan.name,
            configuration=Configuration(
                voters=plan.voters, observers=plan.observers, min_insync=plan.min_insync
            ),
            log=scenario.log,
            election_priority=ElectionPriority(plan.voters[0]),
            is_lost=is_lost and not scenario.asks_voters,
            asks_voters=scenario.asks_voters,
        )
        try:
            replica = self.replication.open_group(spec)
        except StorageError as error:
            self._trace.add(f"broker {self.broker}", f"{plan.name} stays closed: {error}")
            return
        self.watch(replica)


def committed_end(replica: Replica) -> Offset:
    """The offset below which everything is committed, as the replica knows."""
    return end_of(replica, replica.raft.commit)


def visible_end(replica: Replica) -> Offset:
    """The offset below which everything may be seen, as its core says.

    Or what it has said before, while it is ahead of its log: it has taken back already what is to
    be cut there."""
    visible = replica.raft.visible
    return end_of(replica, max(visible, replica.marks.visible) if replica.is_busy else visible)


def end_of(replica: Replica, index: Index) -> Offset:
    """The offset after this index, or the end of the log."""
    if index >= replica.log.last_index:
        return replica.log.end_offset
    return replica.log.offset_of(Index(index + 1))
