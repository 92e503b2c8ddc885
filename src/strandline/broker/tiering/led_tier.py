"""The leader's work on one partition's buckets: uploads, retention, deletion.

Why:    everything is level-triggered: a look compares the committed state with the log and does
        what is missing. After a change of leader, a restart or a lost uploader the next look goes
        on from the state.
How:    look --> for each bucket:  each intent has an `Attempt` that asks its uploader
                                    DONE --> GoLive    FAILED, UNKNOWN, stalled --> Abandon
                                   a gap in closed, committed, durable records --> Intend
                                   total retention --> Retire;  grace over --> delete --> Forget
                                   the bucket was replaced --> Reset, before anything else
                                   small or dirty objects --> `Rewrites`
        One command per bucket is on its way at a time.
Owns:   the attempts and delays of one partition while this broker leads it; the log has the rest.
Source: decision 0059."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from strandline.base.errors import StorageError
from strandline.broker.tiering.attempt import Attempt
from strandline.broker.tiering.backlog import Backlog
from strandline.broker.tiering.deleting import SeenRemovals, due_removals
from strandline.broker.tiering.rewrites import Rewrites
from strandline.broker.tiering.tier_context import LedReplica, TierContext, TierPlan
from strandline.model.ids import NO_BROKER, BrokerId, Offset
from strandline.protocol.errors import Error
from strandline.tiered.segments.names import SegmentName, draw_attempt
from strandline.tiered.state.commands import (
    Abandon,
    Command,
    Forget,
    GoLive,
    Intend,
    IntendReplace,
    Reset,
    Retire,
)
from strandline.tiered.state.retirement import Limits, retire_before
from strandline.tiered.state.transitions import Refusal
from strandline.tiered.upload.gaps import Gap, is_next, next_gap
from strandline.tiered.upload.uploaders import choose_uploader

INTENTS_AT_ONCE = 2
"""Of one partition and bucket: the next object is read while one is put."""
BACKOFF_MS_MIN = 1_000
BACKOFF_MS_MAX = 60_000
"""Between two attempts after one that failed."""
AVOIDED_MS = 60_000
"""For how long a replica that failed is not chosen again, if there is another."""
SILENT_MS_MAX = 8_000
"""An uploader that has not answered for so long is given up: it answers every few seconds."""
STALL_DOUBLINGS_MAX = 5
"""So often the time without progress doubles: a bucket that is away must not fill the log."""

_log = logging.getLogger("strandline.broker")


@dataclass(slots=True)
class BucketWork:
    """What the leader remembers of one bucket. None of it is needed to go on."""

    rewrites: Rewrites
    attempts: dict[str, Attempt] = field(default_factory=dict)
    """{name: attempt} of the committed intents, a replacement included."""
    own: set[str] = field(default_factory=set)
    """Names of intents that this leader proposed and that no uploader has begun, as far as known:
    these may start."""
    is_proposing: bool = False
    is_deleting: bool = False
    delete_at_ms: int = 0
    """Deletions wait until then, after one that failed."""
    failures_count: int = 0
    retry_at_ms: int = 0
    avoided: dict[BrokerId, int] = field(default_factory=dict)
    """{replica that failed: until when it is avoided}"""
    seen: SeenRemovals = field(default_factory=SeenRemovals)
    pending_bytes: int = 0
    """Closed records that the bucket lacks."""
    pending_since_ms: int = -1
    """Wall time since when the oldest of them has been closed; -1 for none."""


class LedTier:
    """See the module. `again`: asks for another look soon."""

    def __init__(
        self, replica: LedReplica, context: TierContext, again: Callable[[], None]
    ) -> None:
        self._replica = replica
        self._context = context
        self._again = again
        self._work: dict[str, BucketWork] = {}
        self.backlog = Backlog(replica)
        self._mark: object = None
        self._due_ms = 0
        self._is_stopped = False

    @property
    def work(self) -> Mapping[str, BucketWork]:
        """{bucket: what is under way}"""
        return self._work

    def stop(self) -> None:
        """This broker no longer leads the partition, or ends."""
        self._is_stopped = True
        self.backlog.stop()
        for work in self._work.values():
            for attempt in work.attempts.values():
                attempt.stop()

    def is_due(self, now_ms: int, plan: TierPlan) -> bool:
        """Whether a look may find something; cheap, for thousands of idle partitions."""
        return now_ms >= self._due_ms or self._mark != self._marks(plan)

    def _marks(self, plan: TierPlan) -> object:
        replica = self._replica
        return replica.tier.state.index, replica.log.closed.end_offset, plan

    def look(self, now_ms: int, plan: TierPlan) -> None:
        """Do what is missing now."""
        self._mark = self._marks(plan)
        self._due_ms = now_ms + self._context.recheck_ms
        if not self._replica.tier.is_known:
            self.soon(now_ms + self._context.interval_ms)
            return
        self.backlog.measure(plan, now_ms)
        state = self._replica.tier.state
        for bucket in dict.fromkeys((*plan.buckets, *state.buckets)):
            if self._context.has_bucket(bucket):
                self._look_at(bucket, plan, now_ms)

    def soon(self, at_ms: int) -> None:
        """Look again at this time, if not before."""
        self._due_ms = min(self._due_ms, at_ms)

    # ---- one bucket ------------------------------------------------------------------------------

    def _look_at(self, bucket: str, plan: TierPlan, now_ms: int) -> None:
        work = self._work.get(bucket)
        if work is None:
            rewrites = Rewrites(self._replica, self._context, bucket, self._note_failure)
            work = self._work[bucket] = BucketWork(rewrites)
        self._follow_intents(bucket, work)
        self._measure(bucket, work, is_wanted=bucket in plan.buckets)
        if work.is_proposing:
            return
        known = self._replica.tier.state.buckets.get(bucket)
        lag = self._context.generation(bucket) - (0 if known is None else known.generation)
        if lag:
            if lag > 0:
                self._propose(bucket, work, Reset(bucket, self._context.generation(bucket)))
            else:  # The log knows more than this broker's copy of the controller's state.
                self.soon(now_ms + self._context.interval_ms)
            return
        command = (
            self._settled(bucket, work, plan, now_ms)
            or self._settled_rewrite(bucket, work, plan, now_ms)
            or self._retirement(bucket, plan)
            or self._next_intent(bucket, work, plan, now_ms)
            or self._next_rewrite(bucket, work, plan, now_ms)
        )
        if command is not None:
            self._propose(bucket, work, command)
        self._delete(bucket, work, now_ms)

    def _propose(self, bucket: str, work: BucketWork, command: Command) -> None:
        work.is_proposing = True
        if isinstance(command, Intend | IntendReplace):
            work.own.add(command.name)
        if isinstance(command, GoLive):
            entry = replace(command.entry, live_ms=self._context.clock.wall_ms())
            command = replace(command, entry=entry)
        self._replica.tier.propose(command, partial(self._on_proposed, work))

    def _on_proposed(self, work: BucketWork, error: Error, refusal: Refusal | None) -> None:
        """The command is applied or refused, or may never be committed: the state says which."""
        work.is_proposing = False
        if error or refusal is not None:
            now_ms = self._context.clock.monotonic_ms()
            self.soon(now_ms + self._context.interval_ms)
            return
        self._due_ms = 0
        self._again()

    def _follow_intents(self, bucket: str, work: BucketWork) -> None:
        """Every committed intent has an attempt, and no other has one."""
        state = self._replica.tier.state
        replacement = state.replacement(bucket)
        replacements = () if replacement is None else (replacement,)
        pending: dict[str, Intend | IntendReplace] = {
            one.name: one for one in (*state.pending(bucket), *replacements)
        }
        for name in [one for one in work.attempts if one not in pending]:
            work.attempts.pop(name).stop()
            work.own.discard(name)
        for name, intent in pending.items():
            if name not in work.attempts and not self._is_stopped:
                attempt = work.attempts[name] = Attempt(
                    self._replica.group,
                    intent,
                    self._context,
                    generation=self._replica.tier.state.buckets[bucket].generation,
                    on_change=self._on_attempt,
                    cleaning=work.rewrites.cleaning_of(name),
                )
                attempt.begin(may_start=name in work.own)

    def _on_attempt(self) -> None:
        self._due_ms = 0
        self._again()

    def _settled(
        self, bucket: str, work: BucketWork, plan: TierPlan, now_ms: int
    ) -> Command | None:
        """GoLive or Abandon for the first attempt that has come to something."""
        state = self._replica.tier.state
        local_start = self._replica.log.start_offset
        for intent in sorted(state.pending(bucket), key=lambda one: one.base_offset):
            attempt = work.attempts[intent.name]
            if attempt.entry is not None and bucket in plan.buckets:
                if is_next(state, intent, local_start=local_start):
                    work.failures_count = 0
                    return GoLive(bucket, attempt.entry)
                continue
            left_ms = self._left_ms(work, attempt, now_ms)
            reason = attempt.failure
            if reason is None and left_ms <= 0:
                reason = f"no progress for {attempt.stalled_ms(now_ms)} ms: {attempt.reason}"
            if bucket not in plan.buckets:
                reason = "the topic does not use this bucket any more"
            if reason is not None:
                self._note_failure(intent, reason)
                if not attempt.is_forgotten:
                    self._back_off(work, intent.uploader, now_ms)
                return Abandon(bucket, intent.name, self._context.clock.wall_ms())
            self.soon(now_ms + max(1, left_ms))
        return None

    def _left_ms(self, work: BucketWork, attempt: Attempt, now_ms: int) -> int:
        """For how long an attempt may still go on without progress."""
        stall_ms = self._context.stall_ms << min(work.failures_count, STALL_DOUBLINGS_MAX)
        silent_ms = attempt.silent_ms(now_ms)
        return min(stall_ms - attempt.stalled_ms(now_ms), SILENT_MS_MAX - silent_ms)

    def _settled_rewrite(
        self, bucket: str, work: BucketWork, plan: TierPlan, now_ms: int
    ) -> Command | None:
        """Replace or Abandon, once the replacement has come to something."""
        intent = self._replica.tier.state.replacement(bucket)
        if bucket not in plan.buckets:
            work.rewrites.forget_pass()
        if intent is None:
            return None
        attempt = work.attempts[intent.name]
        left_ms = self._left_ms(work, attempt, now_ms)
        command = work.rewrites.settled(
            intent, attempt, is_wanted=bucket in plan.buckets, is_stalled=left_ms <= 0
        )
        if command is None:
            self.soon(now_ms + max(1, left_ms))
        return command

    def _next_rewrite(
        self, bucket: str, work: BucketWork, plan: TierPlan, now_ms: int
    ) -> Command | None:
        """Objects that become one, or are cleaned. Uploads go first."""
        if bucket not in plan.buckets or plan.is_copying_off or now_ms < work.retry_at_ms:
            return None
        command = work.rewrites.next(partial(self._uploader, bucket, work, now_ms))
        if work.rewrites.look_again_ms:
            self.soon(now_ms + work.rewrites.look_again_ms)
        return command

    def _note_failure(self, intent: Intend | IntendReplace, reason: str) -> None:
        _log.warning(
            "%s: the upload of %d..%d to %s by broker %d is given up: %s",
            self._replica.name,
            intent.base_offset,
            intent.end_offset,
            intent.bucket,
            intent.uploader,
            reason,
        )

    def _back_off(self, work: BucketWork, uploader: BrokerId, now_ms: int) -> None:
        """The next attempt waits, and takes another uploader if there is one."""
        backoff_ms = min(BACKOFF_MS_MIN << min(work.failures_count, 10), BACKOFF_MS_MAX)
        work.failures_count += 1
        work.retry_at_ms = now_ms + backoff_ms
        work.avoided[uploader] = now_ms + AVOIDED_MS
        self.soon(work.retry_at_ms)

    # ---- uploads ---------------------------------------------------------------------------------

    def _next_intent(
        self, bucket: str, work: BucketWork, plan: TierPlan, now_ms: int
    ) -> Intend | None:
        state = self._replica.tier.state
        pending = state.pending(bucket)
        if bucket not in plan.buckets or plan.is_copying_off or len(pending) >= INTENTS_AT_ONCE:
            return None
        if now_ms < work.retry_at_ms:
            self.soon(work.retry_at_ms)
            return None
        gap = next_gap(state, bucket, local_start=self._replica.log.start_offset)
        if gap is None:
            return None
        if gap.is_remote and gap.stop is not None:
            base, end = gap.base, gap.stop
        else:
            found = self._local_range(gap, plan, now_ms)
            if found is None:
                return None
            base, end = found
        if base != gap.base and (state.live(bucket) or pending):
            _log.error("%s: %s lacks %d..%d", self._replica.name, bucket, gap.base, base)
            return None
        uploader = self._uploader(bucket, work, now_ms)
        if uploader == NO_BROKER:
            self.soon(now_ms + BACKOFF_MS_MIN)
            return None
        if not self._context.take_turn(bucket):
            self.soon(now_ms + self._context.interval_ms)
            return None
        name = SegmentName(
            *self._context.place_of(self._replica.group),
            base,
            self._replica.epoch,
            draw_attempt(self._context.rng),
        )
        return Intend(bucket, str(name), base, end, uploader)

    def _local_range(self, gap: Gap, plan: TierPlan, now_ms: int) -> tuple[Offset, Offset] | None:
        """The next range of the leader's own log that may and shall go."""
        log = self._replica.log
        limit = self._context.durable_end(self._replica)
        try:
            found = log.closed.next_range(
                gap.base, bytes_max=self._context.object_bytes_max, limit=limit
            )
        except (OSError, StorageError) as error:
            self._replica.on_unreadable(error)
            return None
        if found is None:
            if gap.base < log.closed.end_offset:  # It waits for the flush, or the commit.
                self.soon(now_ms + self._context.interval_ms)
            return None
        end = found.end_offset if gap.stop is None else min(found.end_offset, gap.stop)
        wait_ms = plan.lag.wait_ms(
            age_ms=self._context.clock.wall_ms() - found.max_timestamp,
            bytes_after=partial(log.closed.bytes_from, end),
            recheck_ms=self._context.recheck_ms,
        )
        if wait_ms > 0 and not self.backlog.is_full:
            self.soon(now_ms + wait_ms)
            return None
        return found.base_offset, end

    def _uploader(self, bucket: str, work: BucketWork, now_ms: int) -> BrokerId:
        replica = self._replica
        avoided = [one for one, until_ms in work.avoided.items() if now_ms < until_ms]
        candidates = {
            one: self._context.labels_of(one)
            for one in replica.configuration.members
            if replica.may_count(one)
        }
        return choose_uploader(
            candidates,
            self._context.bucket_labels(bucket),
            leader=replica.self_id,
            spread=replica.group,
            avoided=avoided,
        )

    # ---- retention -------------------------------------------------------------------------------

    def _retirement(self, bucket: str, plan: TierPlan) -> Retire | None:
        replica, clock = self._replica, self._context.clock
        state, log = replica.tier.state, replica.log
        if not state.live(bucket):
            return None
        end = state.live_end(bucket)
        if plan.is_deleting_all or bucket not in plan.buckets:
            # The records are needed still: those on disks, or those in the other buckets.
            start = state.start(bucket)
            covered = state.covered_end(plan.copies_min, plan.buckets, from_offset=start)
            if state.pending(bucket) or state.replacement(bucket):
                return None
            if not plan.is_deleting_all and covered < end:
                return None
            return Retire(bucket, end, clock.wall_ms(), empties=True)
        limits = Limits(
            log.config.retention_ms if log.config.delete else -1,
            log.config.retention_bytes if log.config.delete else -1,
            log.config.retention_records if log.config.delete else -1,
            log.config.timestamp_after_max_ms,
        )
        before = retire_before(
            state,
            bucket,
            limits,
            local_start=log.start_offset,
            local_bytes=log.closed.bytes_from(end),
            committed_end=replica.committed_end,
            now_ms=clock.wall_ms(),
        )
        return None if before is None else Retire(bucket, before, clock.wall_ms())

    def _delete(self, bucket: str, work: BucketWork, now_ms: int) -> None:
        known = self._replica.tier.state.buckets.get(bucket)
        if work.is_deleting or known is None or not known.removals:
            return
        if now_ms < work.delete_at_ms:
            self.soon(work.delete_at_ms)
            return
        wall_ms = self._context.clock.wall_ms()
        names, next_ms = due_removals(
            known.removals.values(), now_ms=wall_ms, grace_ms=self._context.delete_grace_ms
        )
        grace_ms = self._context.delete_grace_ms
        work.seen.note(known.removals, now_ms=now_ms)
        settled = work.seen.settled(names, before_ms=now_ms - grace_ms)
        may = [one for one in settled if self._context.may_delete(self._replica, bucket, one)]
        if next_ms is not None:
            self.soon(now_ms + max(self._context.interval_ms, next_ms - wall_ms))
        if len(may) < len(names):
            self.soon(now_ms + self._context.recheck_ms)
        if not may:
            return
        work.is_deleting = True
        self._context.delete(bucket, may, partial(self._on_deleted, bucket, work, tuple(may)))

    def _on_deleted(
        self, bucket: str, work: BucketWork, names: tuple[str, ...], *, is_done: bool
    ) -> None:
        work.is_deleting = False
        if not is_done or self._is_stopped:
            work.delete_at_ms = self._context.clock.monotonic_ms() + self._context.recheck_ms
            return
        known = self._replica.tier.state.buckets[bucket].removals
        left = tuple(one for one in names if one in known)
        if left and not work.is_proposing:
            self._propose(bucket, work, Forget(bucket, left))
        else:
            self.soon(self._context.clock.monotonic_ms() + self._context.interval_ms)

    # ---- figures ---------------------------------------------------------------------------------

    def _measure(self, bucket: str, work: BucketWork, *, is_wanted: bool) -> None:
        """What the bucket lacks of the closed segments."""
        log = self._replica.log
        end = max(self._replica.tier.state.next_offset(bucket), log.start_offset)
        if not is_wanted or end >= log.closed.end_offset:
            work.pending_bytes, work.pending_since_ms = 0, -1
            return
        work.pending_bytes = log.closed.bytes_from(end) - log.closed.bytes_from(
            log.closed.end_offset
        )
        work.pending_since_ms = log.closed.oldest_after(end)
