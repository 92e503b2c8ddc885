"""The promises that must hold at all times, one class for each.

Why:    a history is judged by promises that have names; a failure names the one that was broken.
How:    the checker hands each fact to the invariants. An invariant that finds its promise broken
        raises `InvariantError`. It remembers what it needs, and asks no other part.
Owns:   what each invariant has seen; one set for each run.
Source: design section 10; reference/reliability.md sections 1b and 6; Raft thesis, figure 3.2."""

from collections.abc import Sequence

from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset, grant_of
from strandline.simulation.invariants.bucket_facts import BucketFact
from strandline.simulation.invariants.facts import (
    Acknowledged,
    AuditedBatch,
    BalanceAwaited,
    BalancerMoved,
    BucketRead,
    BucketSeen,
    ConfigurationCommitted,
    DamageAwaited,
    Declaration,
    Deleted,
    DeletionAsked,
    Disturbed,
    IdlePassed,
    LeaderElected,
    LeaderKnown,
    LocalLogCut,
    LogAudited,
    LogShortened,
    LossConfirmed,
    LossRecorded,
    MarksMoved,
    PlacementKnown,
    RecordsRead,
    ReplicaRemoved,
    RestAwaited,
    ServiceAwaited,
    StateReached,
    Subject,
    TableRead,
    TierSeen,
    VotersRecorded,
)
from strandline.simulation.invariants.superseding import Superseding

QUORUM_ACK = -1
NOTHING = Superseding()
"""Logs are not compacted."""


class InvariantError(Exception):
    """A promise was broken. The message says which one, and how; `subject` where."""

    def __init__(self, message: str, subject: Subject) -> None:
        super().__init__(message)
        self.subject = subject


class Invariant:
    """The base: looks at nothing."""

    def broken(self, message: str, subject: Subject) -> InvariantError:
        """The error to raise."""
        return InvariantError(f"{type(self).__name__}: {message}", subject)

    def on_leader_known(self, fact: LeaderKnown) -> None:
        """See `facts.LeaderKnown`."""

    def on_leader_elected(self, fact: LeaderElected) -> None:
        """See `facts.LeaderElected`."""

    def on_marks_moved(self, fact: MarksMoved) -> None:
        """See `facts.MarksMoved`."""

    def on_acknowledged(self, fact: Acknowledged) -> None:
        """See `facts.Acknowledged`."""

    def on_records_read(self, fact: RecordsRead) -> None:
        """See `facts.RecordsRead`."""

    def on_deletion_asked(self, fact: DeletionAsked) -> None:
        """See `facts.DeletionAsked`."""

    def on_deleted(self, fact: Deleted) -> None:
        """See `facts.Deleted`."""

    def on_log_shortened(self, fact: LogShortened) -> None:
        """See `facts.LogShortened`."""

    def on_tier_seen(self, fact: TierSeen) -> None:
        """See `facts.TierSeen`."""

    def on_local_log_cut(self, fact: LocalLogCut) -> None:
        """See `facts.LocalLogCut`."""

    def on_bucket_seen(self, fact: BucketSeen) -> None:
        """See `facts.BucketSeen`."""

    def on_bucket_read(self, fact: BucketRead) -> None:
        """See `facts.BucketRead`."""

    def on_bucket_fact(self, fact: BucketFact) -> None:
        """See `bucket_facts`."""

    def on_configuration_committed(self, fact: ConfigurationCommitted) -> None:
        """See `facts.ConfigurationCommitted`."""

    def on_voters_recorded(self, fact: VotersRecorded) -> None:
        """See `facts.VotersRecorded`."""

    def on_loss_confirmed(self, fact: LossConfirmed) -> None:
        """See `facts.LossConfirmed`."""

    def on_state_reached(self, fact: StateReached) -> None:
        """See `facts.StateReached`."""

    def on_loss_recorded(self, fact: LossRecorded) -> None:
        """See `facts.LossRecorded`."""

    def on_replica_removed(self, fact: ReplicaRemoved) -> None:
        """See `facts.ReplicaRemoved`."""

    def on_placement_known(self, fact: PlacementKnown) -> None:
        """See `facts.PlacementKnown`."""

    def on_balancer_moved(self, fact: BalancerMoved) -> None:
        """See `facts.BalancerMoved`."""

    def on_disturbed(self, fact: Disturbed) -> None:
        """See `facts.Disturbed`."""

    def on_log_audited(self, fact: LogAudited) -> None:
        """See `facts.LogAudited`."""

    def on_table_read(self, fact: TableRead) -> None:
        """See `facts.TableRead`."""

    def on_service_awaited(self, fact: ServiceAwaited) -> None:
        """See `facts.ServiceAwaited`."""

    def on_balance_awaited(self, fact: BalanceAwaited) -> None:
        """See `facts.BalanceAwaited`."""

    def on_rest_awaited(self, fact: RestAwaited) -> None:
        """See `facts.RestAwaited`."""

    def on_damage_awaited(self, fact: DamageAwaited) -> None:
        """See `facts.DamageAwaited`."""

    def on_idle_passed(self, fact: IdlePassed) -> None:
        """See `facts.IdlePassed`."""


class SingleLeaderPerEpoch(Invariant):
    """No two brokers ever lead one group in one epoch."""

    def __init__(self) -> None:
        self._leaders: dict[tuple[GroupId, Epoch], BrokerId] = {}

    def on_leader_known(self, fact: LeaderKnown) -> None:
        """One leader for each epoch, whichever broker reports it."""
        leader = self._leaders.setdefault((fact.group, fact.epoch), fact.leader)
        if leader != fact.leader:
            raise self.broken(
                f"group {fact.group} epoch {fact.epoch} is led by {leader} and by {fact.leader}",
                Subject(fact.group),
            )


class LeaderCompleteness(Invariant):
    """The leader of every later epoch has all entries that were committed in an epoch. Entries
    committed before a declared loss count only if they were not at risk."""

    def __init__(self) -> None:
        self._declared: dict[GroupId, Declaration] = {}
        """{group: a declared loss without an election since}"""
        self._committed: dict[GroupId, dict[Epoch, tuple[Index, Epoch]]] = {}
        """{group: {epoch of a replica: the last entry it knew to be committed, and its epoch}}."""

    def on_marks_moved(self, fact: MarksMoved) -> None:
        """Remember the last committed entry for each epoch."""
        if fact.commit_epoch > 0:
            known = self._committed.setdefault(fact.group, {})
            if fact.commit > known.get(fact.epoch, (Index(-1), 0))[0]:
                known[fact.epoch] = (fact.commit, fact.commit_epoch)

    def on_loss_recorded(self, fact: LossRecorded) -> None:
        """The log of the next leader may lack the entries at risk."""
        self._declared[fact.declaration.group] = fact.declaration

    def _forgive(self, fact: LeaderElected) -> None:
        """From now on leaders need not have the entries at risk that earlier grants committed."""
        declared = self._declared.get(fact.group)
        if declared is None or grant_of(fact.epoch) < declared.grant or fact.index_of is None:
            return
        del self._declared[fact.group]
        last = fact.start_index - 1
        if declared.at_risk_from:
            last = max(last, fact.index_of(Offset(declared.at_risk_from - 1)))
        safe = Index(min(last, fact.last_index))
        for epoch, (index, _) in self._committed.get(fact.group, {}).items():
            if grant_of(epoch) < declared.grant and index > safe:
                self._committed[fact.group][epoch] = safe, fact.epoch_of(safe)

    def on_leader_elected(self, fact: LeaderElected) -> None:
        """A leader has all entries that were committed before its epoch."""
        self._forgive(fact)
        for epoch, (index, entry_epoch) in self._committed.get(fact.group, {}).items():
            if epoch >= fact.epoch or index < fact.start_index:
                continue
            if fact.last_index < index:
                raise self.broken(
                    f"broker {fact.broker} leads group {fact.group} in epoch {fact.epoch} with a "
                    f"log up to {fact.last_index}; {index} was committed by epoch {epoch}",
                    Subject(fact.group, index=index),
                )
            if fact.epoch_of(index) != entry_epoch:
                raise self.broken(
                    f"broker {fact.broker} leads group {fact.group} in epoch {fact.epoch} with an "
                    f"entry of epoch {fact.epoch_of(index)} at {index}; one of epoch {entry_epoch} "
                    "was committed there",
                    Subject(fact.group, index=index),
                )


class LogMatching(Invariant):
    """Two logs with an entry of the same epoch at the same index are equal up to there."""

    def __init__(self) -> None:
        self._batches: dict[tuple[GroupId, Index, Epoch], tuple[int, Epoch]] = {}
        """{(group, index, epoch): (checksum, epoch of the entry before)}."""

    def on_log_audited(self, fact: LogAudited) -> None:
        """Equal entries have equal contents and equal predecessors."""
        before: Epoch | None = None
        for batch in fact.batches:
            found = (batch.checksum, before)
            key = (fact.group, batch.index, batch.epoch)
            if before is not None:
                known = self._batches.setdefault(key, (batch.checksum, before))
                if known != found:
                    raise self.broken(
                        f"group {fact.group}: broker {fact.broker} has at index {batch.index} of "
                        f"epoch {batch.epoch} (checksum, epoch before) {found}, another {known}",
                        Subject(fact.group, index=batch.index),
                    )
            before = batch.epoch


class CommittedPrefixEqual(Invariant):
    """If one replica knows an entry as committed, every replica keeps it for ever, unless it was at
    risk in a declared loss."""

    def __init__(self) -> None:
        self._committed: dict[GroupId, dict[Index, AuditedBatch]] = {}

    def on_loss_recorded(self, fact: LossRecorded) -> None:
        """From now on other entries may stand in the place of those at risk."""
        committed = self._committed.get(fact.declaration.group, {})
        at_risk_from = fact.declaration.at_risk_from
        for index, batch in list(committed.items()):
            if batch.base_offset >= at_risk_from or batch.next_offset > at_risk_from:
                del committed[index]

    def on_log_audited(self, fact: LogAudited) -> None:
        """Compare with the known committed entries, then add to them."""
        committed = self._committed.setdefault(fact.group, {})
        for batch in fact.batches:
            if batch.index + batch.index_count - 1 > fact.commit:
                break
            known = committed.setdefault(batch.index, batch)
            if (known.checksum, known.epoch) != (batch.checksum, batch.epoch):
                raise self.broken(
                    f"group {fact.group}: broker {fact.broker} has committed at {batch.index} "
                    f"an entry of epoch {batch.epoch}; one of epoch {known.epoch} was committed "
                    "there",
                    Subject(fact.group, index=batch.index),
                )
        last = fact.batches[-1] if fact.batches else None
        if last is not None and fact.commit >= last.index + last.index_count:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} holds {fact.commit} to be committed and "
                f"has a log up to {last.index + last.index_count - 1}",
                Subject(fact.group, index=fact.commit),
            )


class OffsetsDense(Invariant):
    """Offsets have no holes, whatever elections happened, except where records are superseded."""

    def __init__(self, superseding: Superseding = NOTHING) -> None:
        self._may_lack = superseding.is_possible

    def on_records_read(self, fact: RecordsRead) -> None:
        """The first record is at the requested position, and each next one follows on."""
        due = fact.position
        for offset, _ in fact.records:
            if offset < due or (offset > due and not self._may_lack):
                raise self.broken(
                    f"group {fact.group}: broker {fact.broker} gave offset {offset} where "
                    f"{due} was due",
                    Subject(fact.group, due),
                )
            due = Offset(offset + 1)

    def on_log_audited(self, fact: LogAudited) -> None:
        """Each batch begins where the one before ended, in offsets and in indexes."""
        offset, index = fact.start_offset, fact.start_index
        for batch in fact.batches:
            if (batch.base_offset, batch.index) != (offset, index):
                raise self.broken(
                    f"group {fact.group}: broker {fact.broker} has offset {batch.base_offset} at "
                    f"index {batch.index}, where offset {offset} at index {index} was due",
                    Subject(fact.group, offset),
                )
            is_whole = len(batch.records) == batch.next_offset - offset
            if not is_whole and not self._may_lack:
                raise self.broken(
                    f"group {fact.group}: broker {fact.broker} has {len(batch.records)} records "
                    f"at offset {offset}, where the batch ends at {batch.next_offset}",
                    Subject(fact.group, offset),
                )
            offset = batch.next_offset
            index = Index(index + batch.index_count)
        if offset != fact.end_offset:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} ends its log at {fact.end_offset}, its "
                f"records at {offset}",
                Subject(fact.group, offset),
            )


class HighWatermarkMonotonic(Invariant):
    """A replica's high watermark never goes back while its process lives, nor beyond its log. A
    replica that was removed and added again counts as another one. A leader's high watermark is
    never below the highest one that a broker has shown to a consumer.

    If unflushed visible records are lost with the power, it may go back to the commit. After a
    declared loss it may go back to the first offset at risk."""

    def __init__(self, *, may_lose_unflushed: bool) -> None:
        self._may_lose_unflushed = may_lose_unflushed
        self._seen: dict[tuple[BrokerId, int, GroupId], Offset] = {}
        self._shown: dict[GroupId, tuple[Offset, BrokerId]] = {}
        """{group: (the highest one shown to consumers, the broker)}"""
        self._declared: dict[GroupId, Declaration] = {}
        """{group: its last declared loss}"""

    def on_marks_moved(self, fact: MarksMoved) -> None:
        """The high watermark as the replica knows it."""
        if not self._may_lose_unflushed:
            self._check(fact.broker, fact.life, group=fact.group, end=fact.high_watermark)
        if fact.high_watermark > fact.log_end_offset:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} shows {fact.high_watermark} and has "
                f"records up to {fact.log_end_offset}",
                Subject(fact.group, fact.log_end_offset),
            )

    def on_records_read(self, fact: RecordsRead) -> None:
        """The high watermark as a consumer sees it, at this replica and at others before."""
        end = fact.committed_end if self._may_lose_unflushed else fact.high_watermark
        self._check(fact.broker, fact.life, group=fact.group, end=end)
        shown, by = self._shown.get(fact.group, (Offset(0), fact.broker))
        end = min(end, fact.high_watermark)
        if end > shown:
            if not self._is_declared_lost(fact):
                self._shown[fact.group] = end, fact.broker
        elif fact.is_leader_read and fact.high_watermark < shown:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} answers as leader that it ends at "
                f"{fact.high_watermark}; broker {by} has shown {shown}",
                Subject(fact.group, Offset(shown - 1)),
            )

    def on_loss_recorded(self, fact: LossRecorded) -> None:
        """Leaders may lack the records at risk."""
        declared = self._declared[fact.declaration.group] = fact.declaration
        shown, by = self._shown.get(declared.group, (declared.at_risk_from, declared.leader))
        self._shown[declared.group] = min(shown, declared.at_risk_from), by

    def _is_declared_lost(self, fact: RecordsRead) -> bool:
        """Whether the broker that answers does not know of the declared loss yet."""
        declared = self._declared.get(fact.group)
        return declared is not None and grant_of(fact.epoch) < declared.grant

    def on_replica_removed(self, fact: ReplicaRemoved) -> None:
        """Consumers cannot see this replica any more."""
        self._seen.pop((fact.broker, fact.life, fact.group), None)

    def _check(self, broker: BrokerId, life: int, *, group: GroupId, end: Offset) -> None:
        seen = self._seen.get((broker, life, group), Offset(0))
        if end < seen:
            raise self.broken(
                f"group {group}: broker {broker} showed records up to {seen}, and now up to {end}",
                Subject(group, end),
            )
        self._seen[broker, life, group] = end


class NothingShownTooEarly(Invariant):
    """A replica shows records up to the end that its core made visible, and not one more."""

    def on_records_read(self, fact: RecordsRead) -> None:
        """Neither the high watermark nor the answer is beyond the visible end."""
        shown = fact.records[-1][0] + 1 if fact.records else fact.position
        if fact.high_watermark > fact.visible_end or (fact.records and shown > fact.visible_end):
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} shows up to "
                f"{max(shown, fact.high_watermark)}; its visible records end at {fact.visible_end}",
                Subject(fact.group, fact.visible_end),
            )


class NoAcknowledgedRecordLost(Invariant):
    """A record acknowledged with acks=all stays at its offset, or is superseded by a later one.

    `may_lose`: acks=all does not wait for flushes, and the power may fail. Committed records stay
    all the same (CommittedPrefixEqual)."""

    def __init__(self, superseding: Superseding = NOTHING, *, may_lose: bool = False) -> None:
        self._superseding = superseding
        self._may_lose = may_lose
        self._acknowledged: dict[GroupId, dict[Offset, bytes]] = {}
        self._declared: dict[GroupId, list[Declaration]] = {}

    def on_loss_recorded(self, fact: LossRecorded) -> None:
        """Logs may lack the records at risk."""
        declared = fact.declaration
        self._declared.setdefault(declared.group, []).append(declared)
        known = self._acknowledged.get(declared.group, {})
        for offset in [one for one in known if one >= declared.at_risk_from]:
            del known[offset]

    def may_be_gone(self, group: GroupId, offset: Offset, epoch: Epoch) -> bool:
        """Whether a record acknowledged there, in that epoch, was at risk in a declared loss."""
        return any(
            offset >= one.at_risk_from and grant_of(epoch) < one.grant
            for one in self._declared.get(group, ())
        )

    def on_acknowledged(self, fact: Acknowledged) -> None:
        """Remember the records; two records at one offset break the promise."""
        if fact.acks != QUORUM_ACK or self._may_lose:
            return
        known = self._acknowledged.setdefault(fact.group, {})
        for number, value in enumerate(fact.values):
            offset = Offset(fact.base_offset + number)
            if self.may_be_gone(fact.group, offset, fact.epoch):
                continue
            if known.setdefault(offset, value) != value:
                raise self.broken(
                    f"group {fact.group}: {short(known[offset])} and {short(value)} were both "
                    f"acknowledged at offset {offset}",
                    Subject(fact.group, offset, values=(known[offset], value)),
                )

    def on_log_audited(self, fact: LogAudited) -> None:
        """The committed part of every log has all of them, and in the end the whole log does."""
        known = self._acknowledged.get(fact.group, {})
        found = records_of(fact)
        newest = self._superseding.newest(found)
        for offset, value in known.items():
            if offset < fact.start_offset or not (fact.is_final or offset < fact.committed_end):
                continue
            if offset not in found and self._superseding.is_possible and not fact.is_final:
                continue  # What supersedes it may be on its way here.
            if offset not in found and self._superseding.may_be_gone(
                newest, offset, value, group=fact.group
            ):
                continue
            if found.get(offset) != value:
                raise self.broken(
                    f"group {fact.group}: {short(value)} was acknowledged at offset {offset}; "
                    f"broker {fact.broker} has {short(found.get(offset))} there",
                    Subject(fact.group, offset, values=(value,)),
                )


class NoReadOfWhatDisappeared(Invariant):
    """Records that a consumer has read stay at their offsets.

    Records below the commit always stay; those up to the high watermark stay if no power fails. In
    a compacted log a superseded record may go. After a declared loss the records at risk may go."""

    def __init__(self, superseding: Superseding = NOTHING, *, power_fails: bool) -> None:
        self._superseding = superseding
        self._power_fails = power_fails
        self._read: dict[GroupId, dict[Offset, bytes]] = {}

    def on_loss_recorded(self, fact: LossRecorded) -> None:
        """A consumer that has read a record at risk may find it gone."""
        read = self._read.get(fact.declaration.group, {})
        for offset in [one for one in read if one >= fact.declaration.at_risk_from]:
            del read[offset]

    def on_records_read(self, fact: RecordsRead) -> None:
        """All consumers read the same."""
        read = self._read.setdefault(fact.group, {})
        for offset, value in fact.records:
            if self._power_fails and offset >= fact.committed_end:
                continue
            if read.setdefault(offset, value) != value:
                raise self.broken(
                    f"group {fact.group}: {short(read[offset])} was read at offset {offset}; "
                    f"broker {fact.broker} gave {short(value)}",
                    Subject(fact.group, offset, values=(read[offset], value)),
                )

    def on_log_audited(self, fact: LogAudited) -> None:
        """In the end every record that was read is there."""
        if not fact.is_final:
            return
        found = records_of(fact)
        newest = self._superseding.newest(found)
        for offset, value in self._read.get(fact.group, {}).items():
            if offset not in found and self._superseding.may_be_gone(
                newest, offset, value, group=fact.group
            ):
                continue
            if offset >= fact.start_offset and found.get(offset) != value:
                raise self.broken(
                    f"group {fact.group}: {short(value)} was read at offset {offset}; in the end "
                    f"broker {fact.broker} has {short(found.get(offset))} there",
                    Subject(fact.group, offset, values=(value,)),
                )


class NoStaleLeaderRead(Invariant):
    """A leader that answers knows every acknowledged record, and every one that was read.

    `may_lose`: acknowledged records were not flushed, and the power may fail."""

    def __init__(self, *, may_lose: bool = False) -> None:
        self._may_lose = may_lose
        self._known_end: dict[GroupId, Offset] = {}

    def on_loss_recorded(self, fact: LossRecorded) -> None:
        """Leaders may lack the records at risk."""
        declared = fact.declaration
        known_end = self._known_end.get(declared.group, declared.at_risk_from)
        self._known_end[declared.group] = min(known_end, declared.at_risk_from)

    def on_acknowledged(self, fact: Acknowledged) -> None:
        """Records acknowledged with acks=all are committed."""
        if fact.acks == QUORUM_ACK and not self._may_lose:
            self._raise_end(fact.group, Offset(fact.base_offset + len(fact.values)))

    def on_records_read(self, fact: RecordsRead) -> None:
        """The leader is not behind any other replica."""
        known_end = self._known_end.get(fact.group, Offset(0))
        if fact.is_leader_read and fact.high_watermark < known_end:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} answers as leader with the high "
                f"watermark {fact.high_watermark}; records below {known_end} are committed",
                Subject(fact.group, Offset(known_end - 1)),
            )
        if fact.records:
            end = Offset(fact.records[-1][0] + 1)
            self._raise_end(fact.group, min(end, fact.committed_end))

    def _raise_end(self, group: GroupId, end: Offset) -> None:
        self._known_end[group] = max(end, self._known_end.get(group, Offset(0)))


class NoDuplicateFromIdempotentProducer(Invariant):
    """Each record of an idempotent producer is in the log at most once, and in its order."""

    def __init__(self, producers: Sequence[str]) -> None:
        """`producers` are the names of the idempotent ones; a value is `name/number/...`."""
        self._producers = {name.encode() for name in producers}

    def on_log_audited(self, fact: LogAudited) -> None:
        """The numbers of each producer grow."""
        last: dict[bytes, tuple[int, Offset]] = {}
        for offset, value in records_of(fact).items():
            name, number, _ = value.split(b"/", 2)
            if name not in self._producers:
                continue
            if name in last and int(number) <= last[name][0]:
                before, place = last[name]
                raise self.broken(
                    f"group {fact.group}: broker {fact.broker} has {short(value)} at offset "
                    f"{offset} after number {before} at offset {place}",
                    Subject(fact.group, offset, values=(value,)),
                )
            last[name] = int(number), offset


def records_of(fact: LogAudited) -> dict[Offset, bytes]:
    """{offset: value}, in the order of the log."""
    return {offset: value for batch in fact.batches for offset, value in batch.records}


def short(value: bytes | None) -> str:
    """A value without its padding, for messages."""
    return "nothing" if value is None else value.rsplit(b"/", 1)[0].decode()
