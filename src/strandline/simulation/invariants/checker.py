"""Hands every fact to every invariant, and keeps the first one that is broken.

Why:    facts arise deep inside the code under test, which must not see the verdict: an exception
        there might be caught, or change what happens.
Owns:   the verdict of one run.
Source: design section 10."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from strandline.model.ids import BrokerId, GroupId, Offset
from strandline.simulation.invariants.bucket_facts import BucketFact
from strandline.simulation.invariants.bucket_promises import bucket_invariants
from strandline.simulation.invariants.committed_offsets import GroupOffsetsMonotonic
from strandline.simulation.invariants.compacted import (
    CompactedPrefixEqual,
    CompactedTablesEqual,
    DeletedKeysStayDeleted,
)
from strandline.simulation.invariants.controller_states import ControllerStatesEqual
from strandline.simulation.invariants.crossings import EachByteOncePerRegion
from strandline.simulation.invariants.declared_losses import (
    OldSideNeverAcknowledges,
    OnlyShownIsLost,
)
from strandline.simulation.invariants.deleted_records import DeletedStaysDeleted
from strandline.simulation.invariants.endings import (
    BalancerProgress,
    Convergence,
    DamageMended,
    HeartbeatsCoalesced,
    Progress,
)
from strandline.simulation.invariants.entries_sent import EntriesSentOnce
from strandline.simulation.invariants.facts import (
    NOWHERE,
    Acknowledged,
    AnswerReceived,
    BalanceAwaited,
    BalancerMoved,
    BucketRead,
    BucketSeen,
    CommitBegun,
    CommitEnded,
    ConfigurationCommitted,
    DamageAwaited,
    Deleted,
    DeletionAsked,
    Disturbed,
    EntriesPassed,
    EntriesSent,
    IdlePassed,
    LeaderElected,
    LeaderKnown,
    LocalLogCut,
    LogAudited,
    LogShortened,
    LossConfirmed,
    LossRecorded,
    MarksMoved,
    OffsetFetched,
    PlacementKnown,
    Produced,
    RecordsRead,
    RegionsInStep,
    ReplicaRemoved,
    RestAwaited,
    ServiceAwaited,
    StateReached,
    Subject,
    TableRead,
    TierSeen,
    VotersRecorded,
    WayChanged,
)
from strandline.simulation.invariants.invariants import (
    CommittedPrefixEqual,
    HighWatermarkMonotonic,
    Invariant,
    InvariantError,
    LeaderCompleteness,
    LogMatching,
    NoAcknowledgedRecordLost,
    NoDuplicateFromIdempotentProducer,
    NoReadOfWhatDisappeared,
    NoStaleLeaderRead,
    NothingShownTooEarly,
    OffsetsDense,
    SingleLeaderPerEpoch,
)
from strandline.simulation.invariants.leader_acknowledged import LeaderAcknowledgedKept
from strandline.simulation.invariants.outages import RepairHeldIffZoneDown
from strandline.simulation.invariants.placements import PlacementHolds
from strandline.simulation.invariants.promotions import PromotionKeepsRpoZero
from strandline.simulation.invariants.removals import OneGrantPerVersion, RemovedWhereStable
from strandline.simulation.invariants.role_changes import RoleChanges
from strandline.simulation.invariants.shortened_logs import OnlyExpiredIsRemoved
from strandline.simulation.invariants.successors import AtMostOneSuccessor
from strandline.simulation.invariants.superseding import Superseding
from strandline.simulation.invariants.tiered import tier_invariants

F = TypeVar("F")


class Checker:
    """See the module. `violation` is one line, or None while every promise holds."""

    def __init__(
        self,
        *,
        idempotent_producers: Sequence[str],
        power_fails: bool,
        has_leader_acks: bool,
        resend_timeout_ms: int,
        regions: Mapping[BrokerId, str] | None = None,
        key_count: int = 0,
        is_cached: bool = False,
        is_tiered: bool = False,
        logs_of: Callable[[GroupId], Iterable[LogAudited]] = lambda group: (),
    ) -> None:
        """`is_cached`: acks=all waits for writes, not for flushes, and promises only what acks=1
        does if `power_fails`. `logs_of`: the present logs of a group's living replicas."""
        may_lose_all = is_cached and power_fails
        superseding = Superseding(key_count)
        self.violation: str | None = None
        self.subject = NOWHERE
        """The place of the violation."""
        self.on_violation: Callable[[], None] | None = None
        self.on_fact: Callable[[object], None] | None = None
        """For the report of a failure."""
        self.election_count = 0
        self.balanced: set[BalancerMoved] = set()
        """The moves that the balancer has set."""
        self.voters: dict[GroupId, VotersRecorded] = {}
        """{group: the last voters in the controller's log}"""
        self.losses: dict[GroupId, list[LossRecorded]] = {}
        """{group: its declared losses, in order}"""
        self.roles = RoleChanges()
        self.shown_losses = OnlyShownIsLost(superseding, may_lose=may_lose_all)
        self._invariants: list[Invariant] = [
            SingleLeaderPerEpoch(),
            LeaderCompleteness(),
            *self._equality(superseding, logs_of),
            OffsetsDense(superseding),
            HighWatermarkMonotonic(
                may_lose_unflushed=power_fails and (has_leader_acks or is_cached)
            ),
            NothingShownTooEarly(),
            NoAcknowledgedRecordLost(superseding, may_lose=may_lose_all),
            LeaderAcknowledgedKept(superseding),
            NoReadOfWhatDisappeared(superseding, power_fails=power_fails),
            NoStaleLeaderRead(may_lose=may_lose_all),
            NoDuplicateFromIdempotentProducer(idempotent_producers),
            DeletedStaysDeleted(),
            OnlyExpiredIsRemoved(),
            *(*tier_invariants(is_tiered=is_tiered), *bucket_invariants(is_tiered=is_tiered)),
            RemovedWhereStable(),
            OneGrantPerVersion(),
            AtMostOneSuccessor(),
            PromotionKeepsRpoZero(superseding, may_lose=may_lose_all),
            self.shown_losses,
            OldSideNeverAcknowledges(),
            ControllerStatesEqual(),
            PlacementHolds(),
            RepairHeldIffZoneDown(),
            Progress(),
            BalancerProgress(),
            Convergence(),
            DamageMended(),
            HeartbeatsCoalesced(),
        ]
        self._looking: dict[object, list[Callable[..., None]]] = {}
        """{a handler of `Invariant`: the handlers of the invariants that override it}"""
        self._offsets = GroupOffsetsMonotonic()
        self._producer_ids: dict[int, str] = {}
        self._sent = EntriesSentOnce(resend_timeout_ms=resend_timeout_ms)
        self._crossed = EachByteOncePerRegion(regions or {})

    @staticmethod
    def _equality(
        superseding: Superseding, logs_of: Callable[[GroupId], Iterable[LogAudited]]
    ) -> list[Invariant]:
        """The invariants that compare two logs of a group."""
        if superseding.is_possible:
            return [
                # The others use its notes.
                DeletedKeysStayDeleted(superseding, logs_of=logs_of),
                CompactedPrefixEqual(),
                CompactedTablesEqual(superseding),
            ]
        return [LogMatching(), CommittedPrefixEqual()]

    def leader_known(self, fact: LeaderKnown) -> None:
        """See `facts.LeaderKnown`."""
        self._judge(fact, Invariant.on_leader_known)

    def leader_elected(self, fact: LeaderElected) -> None:
        """See `facts.LeaderElected`."""
        self.election_count += 1
        self._judge(fact, Invariant.on_leader_elected)

    def marks_moved(self, fact: MarksMoved) -> None:
        """See `facts.MarksMoved`."""
        self._judge(fact, Invariant.on_marks_moved)

    def produced(self, fact: Produced) -> None:
        """See `facts.Produced`: nothing is promised yet."""
        self._tell(fact)

    def acknowledged(self, fact: Acknowledged) -> None:
        """See `facts.Acknowledged`."""
        self._judge(fact, Invariant.on_acknowledged)

    def records_read(self, fact: RecordsRead) -> None:
        """See `facts.RecordsRead`."""
        self._judge(fact, Invariant.on_records_read)

    def table_read(self, fact: TableRead) -> None:
        """See `facts.TableRead`."""
        self._judge(fact, Invariant.on_table_read)

    def deletion_asked(self, fact: DeletionAsked) -> None:
        """See `facts.DeletionAsked`."""
        self._judge(fact, Invariant.on_deletion_asked)

    def deleted(self, fact: Deleted) -> None:
        """See `facts.Deleted`."""
        self._judge(fact, Invariant.on_deleted)

    def configuration_committed(self, fact: ConfigurationCommitted) -> None:
        """See `facts.ConfigurationCommitted`."""
        self._judge(fact, Invariant.on_configuration_committed)
        self.roles.note_configuration(fact)

    def voters_recorded(self, fact: VotersRecorded) -> None:
        """See `facts.VotersRecorded`."""
        self._judge(fact, Invariant.on_voters_recorded)
        last = self.voters.get(fact.group)
        if last is None or last.state_version < fact.state_version:
            self.voters[fact.group] = fact
            self.roles.note(fact)

    def loss_confirmed(self, fact: LossConfirmed) -> None:
        """See `facts.LossConfirmed`."""
        self._judge(fact, Invariant.on_loss_confirmed)

    def state_reached(self, fact: StateReached) -> None:
        """See `facts.StateReached`."""
        self._judge(fact, Invariant.on_state_reached)

    def loss_recorded(self, fact: LossRecorded) -> None:
        """See `facts.LossRecorded`; each broker reports it, each time that it starts."""
        known = self.losses.setdefault(fact.declaration.group, [])
        if fact not in known:
            known.append(fact)
            self._judge(fact, Invariant.on_loss_recorded)

    def was_at_risk(self, group: GroupId, offset: Offset) -> bool:
        """Whether a declared loss put this offset at risk."""
        return any(offset >= one.declaration.at_risk_from for one in self.losses.get(group, ()))

    def replica_removed(self, fact: ReplicaRemoved) -> None:
        """See `facts.ReplicaRemoved`."""
        self._judge(fact, Invariant.on_replica_removed)

    def placement_known(self, fact: PlacementKnown) -> None:
        """See `facts.PlacementKnown`."""
        self._judge(fact, Invariant.on_placement_known)

    def balancer_moved(self, fact: BalancerMoved) -> None:
        """See `facts.BalancerMoved`."""
        self._judge(fact, Invariant.on_balancer_moved)
        self.balanced.add(fact)

    def disturbed(self, fact: Disturbed) -> None:
        """See `facts.Disturbed`."""
        self._judge(fact, Invariant.on_disturbed)

    def log_audited(self, fact: LogAudited) -> None:
        """See `facts.LogAudited`."""
        self._judge(fact, Invariant.on_log_audited)

    def log_shortened(self, fact: LogShortened) -> None:
        """See `facts.LogShortened`."""
        self._judge(fact, Invariant.on_log_shortened)

    def local_log_cut(self, fact: LocalLogCut) -> None:
        """See `facts.LocalLogCut`."""
        self._judge(fact, Invariant.on_local_log_cut)

    def tier_seen(self, fact: TierSeen) -> None:
        """See `facts.TierSeen`."""
        self._judge(fact, Invariant.on_tier_seen)

    def bucket_seen(self, fact: BucketSeen) -> None:
        """See `facts.BucketSeen`."""
        self._judge(fact, Invariant.on_bucket_seen)

    def bucket_read(self, fact: BucketRead) -> None:
        """See `facts.BucketRead`."""
        self._judge(fact, Invariant.on_bucket_read)

    def bucket_fact(self, fact: BucketFact) -> None:
        """See `bucket_facts`."""
        self._judge(fact, Invariant.on_bucket_fact)

    def service_awaited(self, fact: ServiceAwaited) -> None:
        """See `facts.ServiceAwaited`."""
        self._judge(fact, Invariant.on_service_awaited)

    def balance_awaited(self, fact: BalanceAwaited) -> None:
        """See `facts.BalanceAwaited`."""
        self._judge(fact, Invariant.on_balance_awaited)

    def rest_awaited(self, fact: RestAwaited) -> None:
        """See `facts.RestAwaited`."""
        self._judge(fact, Invariant.on_rest_awaited)

    def damage_awaited(self, fact: DamageAwaited) -> None:
        """See `facts.DamageAwaited`."""
        self._judge(fact, Invariant.on_damage_awaited)

    def idle_passed(self, fact: IdlePassed) -> None:
        """See `facts.IdlePassed`."""
        self._judge(fact, Invariant.on_idle_passed)

    def entries_sent(self, fact: EntriesSent) -> None:
        """See `facts.EntriesSent`."""
        try:
            self._sent.on_entries_sent(fact)
        except InvariantError as error:
            self.fail(str(error), error.subject)

    def entries_passed(self, fact: EntriesPassed) -> None:
        """See `facts.EntriesPassed`."""
        try:
            self._crossed.on_entries_passed(fact)
        except InvariantError as error:
            self.fail(str(error), error.subject)

    def regions_in_step(self, fact: RegionsInStep) -> None:
        """See `facts.RegionsInStep`."""
        self._tell(fact)
        self._crossed.on_regions_in_step(fact)

    def answer_received(self, fact: AnswerReceived) -> None:
        """See `facts.AnswerReceived`."""
        self._sent.on_answer_received(fact)

    def way_changed(self, fact: WayChanged) -> None:
        """See `facts.WayChanged`."""
        self._sent.on_way_changed(fact)

    def producer_id_given(self, producer: str, producer_id: int) -> None:
        """No id goes to two producers: brokers could not tell them apart."""
        owner = self._producer_ids.setdefault(producer_id, producer)
        if owner != producer:
            self.fail(f"ProducerIdsUnique: {producer} and {owner} both got {producer_id}")

    def moment(self) -> int:
        """How many commits have begun or ended; orders requests and commits."""
        return self._offsets.moment

    def commit_begun(self, fact: CommitBegun) -> int:
        """See `facts.CommitBegun`; the number of this commit."""
        self._tell(fact)
        return self._offsets.on_begun(fact)

    def commit_ended(self, fact: CommitEnded) -> None:
        """See `facts.CommitEnded`."""
        self._tell(fact)
        self._offsets.on_ended(fact)

    def offset_fetched(self, fact: OffsetFetched) -> None:
        """See `facts.OffsetFetched`."""
        self._tell(fact)
        try:
            self._offsets.on_fetched(fact)
        except InvariantError as error:
            self.fail(str(error), error.subject)

    def fail(self, message: str, subject: Subject = NOWHERE) -> None:
        """A promise is broken; the first failure counts."""
        if self.violation is None:
            self.violation = message
            self.subject = subject
            if self.on_violation is not None:
                self.on_violation()

    def _tell(self, fact: object) -> None:
        if self.on_fact is not None:
            self.on_fact(fact)

    def _judge(self, fact: F, handler: Callable[[Invariant, F], None]) -> None:
        """Hand a fact to the invariants that handle its kind; most do not."""
        self._tell(fact)
        looking = self._looking.get(handler)
        if looking is None:
            name = handler.__name__
            looking = self._looking[handler] = [
                getattr(one, name)
                for one in self._invariants
                if getattr(type(one), name) is not handler
            ]
        for look in looking:
            try:
                look(fact)
            except InvariantError as error:
                self.fail(str(error), error.subject)
                return
